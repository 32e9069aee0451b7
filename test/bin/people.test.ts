import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { changeRole } from '../../src/domain/moderation/change-role.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { addPost } from '../support/databases/rows.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { openPodBySettings } from '../support/pods/pod-by-settings.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod } from './program.js'

describe('pod people forget', { timeout: 180_000 }, () => {
  let place: Place
  let open: OpenServices
  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    await createUser(open, { username: 'alice', password: 'correct horse battery' })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  it('prints the rows that it would delete, and deletes them with --yes', async () => {
    const mallory = await addRemotePerson(open, 'mallory@m.example')
    await addPost(open, mallory)

    const question = await pod(['people', 'forget', 'mallory@m.example'], place.settings)
    expect(question).toMatchObject({ code: 1, stdout: '' })
    expect(question.stderr).toContain('This would delete mallory@m.example (posts 1, photos 0, comments 0')
    expect(await open.db('people').where({ id: mallory.id })).toHaveLength(1)

    const unexplained = await pod(['people', 'forget', 'mallory@m.example', '--yes'], place.settings)
    expect(unexplained).toMatchObject({ code: 1, stderr: 'This action needs a reason. Add --reason TEXT.\n' })

    const forget = ['people', 'forget', 'acct:Mallory@m.example', '--yes', '--reason', 'A wrong guid', '--json']
    const done = await pod(forget, place.settings)
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(done.stdout)).toMatchObject({
      address: 'mallory@m.example',
      guid: mallory.guid,
      deleted: { posts: 1 },
    })
    expect(await open.db('people').where({ id: mallory.id })).toEqual([])
  })

  it.each([
    ['alice@pod.example', 'is a local person'],
    ['ghost@m.example', 'No person with the address ghost@m.example is known.'],
  ])('refuses %s', async (address, reason) => {
    const { code, stderr } = await pod(['people', 'forget', address, '--yes', '--reason', 'Spam'], place.settings)

    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(reason) })
    expect(await open.db('people').where({ address: 'alice@pod.example' })).toHaveLength(1)
  })
})

describe('pod user password', { timeout: 180_000 }, () => {
  let place: Place
  let open: OpenServices
  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    await createUser(open, { username: 'alice', password: 'correct horse battery' })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  it('ends tokens, unless --keep-applications is given', async () => {
    await mintToken(open, 'alice', { scopes: ['openid'], lifetime: 60 })
    const password = ['user', 'password', 'alice', '--password', 'another horse battery']

    const kept = await pod([...password, '--keep-applications'], place.settings)
    expect({ ...kept, tokens: await open.db('accessTokens') }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('applications keep their access'),
      tokens: [expect.anything()],
    })

    const ended = await pod(password, place.settings)
    expect({ ...ended, tokens: await open.db('accessTokens') }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('All sessions and tokens have ended'),
      tokens: [],
    })
  })
})

describe('the commands of moderators', { timeout: 120_000 }, () => {
  let place: Place
  let open: OpenServices
  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    for (const username of ['dan', 'mod']) {
      await createUser(open, { username, password: `the password of ${username}` })
    }
    const { guid } = await open.db('people').where({ address: 'mod@pod.example' }).first('guid')
    await changeRole(open, COMMAND_ACTOR, guid, { role: 'moderator', reason: 'For a test', confirm: 'mod' })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  const because = ['--reason', 'Spam', '--json']

  /** Runs a command that succeeds; returns its answer. */
  async function run(...words: readonly string[]) {
    const { code, stdout, stderr } = await pod(words, place.settings)
    expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  async function expectRefusal(...words: readonly string[]): Promise<string> {
    const { code, stderr } = await pod(words, place.settings)
    expect({ words, code }).toEqual({ words, code: 1 })
    return stderr
  }

  const lastEntry = () => open.db('auditEntries').orderBy('id', 'desc').first()

  async function addRemotePost(address: string) {
    const author = await addRemotePerson(open, address)
    return { author, guid: (await addPost(open, author)).guid }
  }

  it('hide a post by its guid in the name of a moderator, and undo the hiding', async () => {
    const { guid } = await addRemotePost('quin@q.example')

    expect(await expectRefusal('content', 'hide', guid, '--as', 'dan', ...because)).toContain('needs the role')
    expect(await run('content', 'hide', guid, '--as', 'mod', ...because)).toEqual({ type: 'post', guid, changed: true })
    expect(await lastEntry()).toMatchObject({
      ...{ action: 'hide', via: 'command', reason: 'Spam', target: { guid } },
      actor: { name: 'mod', role: 'moderator' },
    })
    expect(await run('content', 'undo', guid, ...because)).toMatchObject({ changed: true })
    expect(await lastEntry()).toMatchObject({ action: 'hide.undo', actor: { name: 'command', role: 'command' } })
  })

  it('list, take and dismiss a report', async () => {
    const { author, guid } = await addRemotePost('remy@r.example')
    await open.db('moderationCases').insert({
      ...{ targetType: 'post', targetGuid: guid, kind: 'report', public: true },
      ...{ authorGuid: author.guid, authorAddress: author.address },
    })

    const [{ id }] = await run('reports', 'list', '--json')
    const take = ['reports', 'take', String(id)]
    expect(await run(...take, '--json')).toMatchObject({ id, state: 'taken' })
    expect(JSON.parse(await expectRefusal(...take, '--as', 'mod', '--json'))).toMatchObject({
      error: 'A command or a deleted account has taken this case.',
      reason: 'taken_by_other',
    })
    const taken = await run(...take, '--as', 'mod', '--force', '--json')
    expect(taken).toMatchObject({ id, state: 'taken' })
    expect(JSON.parse(await expectRefusal('reports', 'dismiss', String(id), '--json'))).toEqual({
      error: 'This action needs a reason. Add --reason TEXT.',
      reason: 'reason_needed',
    })
    expect(await run('reports', 'dismiss', String(id), ...because)).toMatchObject({ state: 'dismissed' })
  })

  it('need a confirmation for the closing of an account, as the admin API does', async () => {
    const { error, preview } = JSON.parse(await expectRefusal('people', 'close', 'dan', ...because))
    expect([error, preview]).toEqual([expect.stringContaining('Add --yes'), expect.objectContaining({ contacts: 0 })])
  })

  it('lock a person and undo the lock', async () => {
    const person = await open.db('people').where({ address: 'dan@pod.example' }).first('guid')
    const target = { targetType: 'person', targetGuid: person.guid, public: true }
    const [{ id }] = await open.db('moderationCases').insert(target).returning('id')
    const ofCase = ['--case', String(id)]
    expect(await run('people', 'lock', 'dan', ...ofCase, ...because)).toEqual({ person: 'dan', changed: true })
    expect(await run('people', 'undo', 'dan', ...because)).toMatchObject({ changed: true })
    const kinds = (await run('actions', 'list', '--json')).map(({ kind }: { kind: string }) => kind)
    expect(kinds.slice(0, 2)).toEqual(['lock.undo', 'lock'])
    await run('people', 'warn', 'dan', '--text', 'No adverts.', ...ofCase, ...because)
    expect((await run('reports', 'show', String(id), '--json')).actions).toMatchObject([
      { kind: 'lock' },
      { kind: 'lock.undo' },
      { kind: 'warn' },
    ])
    await open.db('userNotices').delete()
  })

  it('set the rule for a domain', async () => {
    expect(await run('pods', 'set', 'bad.example', 'limited', ...because)).toMatchObject({ changed: true })
    expect(await open.db('podRules').select('domain', 'state')).toEqual([{ domain: 'bad.example', state: 'limited' }])
  })

  it('dry-run, add and apply filters, and verify the audit log', async () => {
    const eve = await addRemotePerson(open, 'eve@e.example')
    await addPost(open, eve, { text: 'Cheap watches' })
    const rule = ['word', 'watches']
    expect(await run('filters', 'test', ...rule, '--json')).toMatchObject({ hits: 1, complete: true })
    const { filter } = await run('filters', 'add', ...rule, '--action', 'hide', '--state', 'active', ...because)
    expect(await expectRefusal('filters', 'apply', String(filter.id), ...because)).toContain('"hits":1')
    const dryRun = ['filters', 'apply', String(filter.id), '--dry-run', '--yes', '--json']
    expect(await run(...dryRun)).toEqual({ hits: 1, authors: 1, complete: true })
    expect(await run('filters', 'apply', String(filter.id), '--yes', ...because)).toMatchObject({ hits: 1 })
    expect(await run('clusters', 'list', '--json')).toEqual([])
    const { entries } = await run('audit', 'verify', '--json')
    expect(entries).toBe(Number((await open.db('auditEntries').count({ count: '*' }))[0]?.['count']))
  })

  it('warn a member, and block and unblock a person of another pod', async () => {
    const rita = await addRemotePerson(open, 'rita@r.example')

    expect(await expectRefusal('people', 'block', 'dan', ...because)).toContain('has an account on this pod')
    expect(await expectRefusal('people', 'warn', rita.address, '--text', 'No adverts.', ...because)).toContain(
      'has no account on this pod',
    )
    expect(await run('people', 'warn', 'dan', '--text', 'No adverts.', '--as', 'mod', ...because)).toMatchObject({
      ...{ person: 'dan', changed: true },
    })
    expect(await open.db('userNotices').where({ kind: 'warning' }).select('text')).toEqual([{ text: 'No adverts.' }])
    expect(await run('people', 'block', rita.address, ...because)).toEqual({ person: rita.address, changed: true })
    expect(await lastEntry()).toMatchObject({ action: 'block', via: 'command', target: { guid: rita.guid } })
    expect(await open.db('people').where({ id: rita.id }).first('restriction')).toEqual({ restriction: 'block' })
    expect(await run('people', 'block', rita.address, ...because)).toMatchObject({ changed: false })
    expect(await run('people', 'undo', rita.address, ...because)).toMatchObject({ changed: true })
    expect(await open.db('people').where({ id: rita.id }).first('restriction')).toEqual({ restriction: null })
  })

  it('preview and clean a cluster, and dismiss another one', async () => {
    const sam = await addRemotePerson(open, 'sam@s.example')
    const post = await addPost(open, sam, { text: 'Buy now' })
    const clusters = await open
      .db('clusters')
      .insert(['one', 'two'].map((label) => ({ key: label, kind: 'text', label })))
      .returning('id')
    const [cleaned, dismissed] = clusters.map(({ id }: { readonly id: number }) => String(id))
    await open
      .db('clusterItems')
      .insert({ clusterId: cleaned, type: 'post', contentId: post.id, authorId: sam.id, at: new Date() })
    const isHidden = async () =>
      (await open.db('posts').where({ id: post.id }).first('publicBeforeHiding')).publicBeforeHiding !== null
    const clean = ['clusters', 'clean', cleaned ?? '', '--hide', '--authors', 'silence', ...because]

    expect(await expectRefusal('clusters', 'clean', cleaned ?? '', ...because)).toContain('--hide')
    expect(await expectRefusal(...clean)).toContain('--yes')
    expect(await run(...clean, '--dry-run')).toMatchObject({ hide: 1, authors: 1, changed: false })
    expect(await isHidden()).toBe(false)
    expect(await run(...clean, '--yes')).toMatchObject({ hide: 1, changed: true, operation: null })
    expect(await isHidden()).toBe(true)
    const [{ id, kind }] = await run('actions', 'list', '--json')
    expect(kind).toBe('cluster.clean')
    expect(await run('actions', 'undo', String(id), ...because)).toMatchObject({ changed: true })
    expect(await isHidden()).toBe(false)
    expect(await run('clusters', 'dismiss', dismissed ?? '', ...because)).toMatchObject({ changed: true })
    expect(await lastEntry()).toMatchObject({ action: 'cluster.dismiss', reason: 'Spam' })
  })

  it('make, list and recall invitations', async () => {
    const create = ['invitations', 'create', '--uses', '3', '--note', 'Choir', '--as', 'mod']
    expect(await expectRefusal(...create)).toContain('reason')
    const { id, url, uses } = await run(...create, ...because)
    expect({ uses, url }).toEqual({ uses: 3, url: expect.stringContaining('/users/sign_up?invitation=') })
    expect(await run('invitations', 'list', '--json')).toMatchObject([{ id, uses: 3, used: 0, note: 'Choir' }])
    expect(await run('invitations', 'recall', String(id), ...because)).toMatchObject({ id, changed: true })
    expect(await run('invitations', 'recall', String(id), ...because)).toMatchObject({ id, changed: false })
    expect(await lastEntry()).toMatchObject({ action: 'invitation.recall', via: 'command' })
  })

  it('list the actions that are in force', async () => {
    const { guid } = await open.db('people').where({ address: 'dan@pod.example' }).first('guid')
    const lock = ['people', 'lock', 'dan', ...because]
    await run(...lock)
    await run('people', 'undo', 'dan', ...because)
    await run(...lock)

    const list = ['actions', 'list', '--target', guid, '--json']
    const kindsOf = async (words: readonly string[]) => (await run(...words)).map(({ kind }: { kind: string }) => kind)
    expect((await kindsOf(list)).slice(0, 3)).toEqual(['lock', 'lock.undo', 'lock'])
    expect(await kindsOf([...list, '--in-force'])).toEqual(['lock'])
    await run('people', 'undo', 'dan', ...because)
  })
})
