import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { changeRole } from '../../src/domain/moderation/change-role.js'
import type { OpenPod } from '../../src/pod/open-pod.js'
import { addPost } from '../support/databases/rows.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { openPodBySettings } from '../support/pods/pod-by-settings.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod } from './program.js'

describe('pod people forget', { timeout: 60_000 }, () => {
  let place: Place
  let open: OpenPod
  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    await createUser(open, { username: 'alice', password: 'correct horse battery' })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  it('prints what it would delete, and deletes it with --yes', async () => {
    const mallory = await addRemotePerson(open, 'mallory@m.example')
    await addPost(open, mallory)

    const question = await pod(['people', 'forget', 'mallory@m.example'], place.settings)
    expect(question).toMatchObject({ code: 1, stdout: '' })
    expect(question.stderr).toContain('This would delete mallory@m.example (posts 1, photos 0, comments 0')
    expect(await open.db('people').where({ id: mallory.id })).toHaveLength(1)

    const unexplained = await pod(['people', 'forget', 'mallory@m.example', '--yes'], place.settings)
    expect(unexplained).toMatchObject({ code: 1, stderr: expect.stringContaining('needs a reason') })

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

describe('pod user password', { timeout: 60_000 }, () => {
  let place: Place
  let open: OpenPod
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
  let open: OpenPod
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

  /** Runs a command that succeeds; its answer. */
  async function run(...words: readonly string[]) {
    const { code, stdout, stderr } = await pod(words, place.settings)
    expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  async function refused(...words: readonly string[]): Promise<string> {
    const { code, stderr } = await pod(words, place.settings)
    expect({ words, code }).toEqual({ words, code: 1 })
    return stderr
  }

  const lastEntry = () => open.db('auditEntries').orderBy('id', 'desc').first()

  it('hide a post by its guid alone, in the name of a moderator, answer its report, and undo the hiding', async () => {
    const quin = await addRemotePerson(open, 'quin@q.example')
    const { guid } = await addPost(open, quin)
    await open.db('moderationCases').insert({
      ...{ targetType: 'post', targetGuid: guid, kind: 'report', public: true },
      ...{ authorGuid: quin.guid, authorAddress: quin.address },
    })

    expect(await refused('content', 'hide', guid, '--as', 'dan', ...because)).toContain('needs the role')
    const [{ id }] = await run('reports', 'list', '--json')
    expect(await run('reports', 'take', String(id), '--as', 'mod', '--json')).toMatchObject({ id, state: 'taken' })
    expect(await run('content', 'hide', guid, '--as', 'mod', ...because)).toEqual({ type: 'post', guid, changed: true })
    expect(await lastEntry()).toMatchObject({
      ...{ action: 'hide', via: 'command', reason: 'Spam', target: { guid } },
      actor: { name: 'mod', role: 'moderator' },
    })
    expect(await run('content', 'undo', guid, ...because)).toMatchObject({ changed: true })
    expect(await lastEntry()).toMatchObject({ action: 'hide.undo', actor: { name: 'command', role: 'command' } })
    expect(await run('reports', 'dismiss', String(id), '--json')).toMatchObject({ state: 'dismissed' })
  })

  it('act on people and pods, with a confirmation where the admin API needs one', async () => {
    expect(await refused('people', 'close', 'dan', ...because)).toContain('confirm')
    expect(await run('people', 'lock', 'dan', ...because)).toEqual({ person: 'dan', changed: true })
    expect(await run('people', 'undo', 'dan', ...because)).toMatchObject({ changed: true })
    const kinds = (await run('actions', 'list', '--json')).map(({ kind }: { kind: string }) => kind)
    expect(kinds.slice(0, 2)).toEqual(['lock.undo', 'lock'])
    expect(await run('pods', 'set', 'bad.example', 'limited', ...because)).toMatchObject({ changed: true })
    expect(await open.db('podRules').select('domain', 'state')).toEqual([{ domain: 'bad.example', state: 'limited' }])
  })

  it('try and apply filters, and check the audit log', async () => {
    const eve = await addRemotePerson(open, 'eve@e.example')
    await addPost(open, eve, { text: 'Cheap watches' })
    const rule = ['word', 'watches']
    expect(await run('filters', 'test', ...rule, '--json')).toMatchObject({ hits: 1, complete: true })
    const { filter } = await run('filters', 'add', ...rule, '--action', 'hide', '--state', 'active', ...because)
    expect(await refused('filters', 'apply', String(filter.id), ...because)).toContain('Set confirm to 1')
    expect(await run('filters', 'apply', String(filter.id), '--yes', ...because)).toMatchObject({ hits: 1 })
    expect(await run('clusters', 'list', '--json')).toEqual([])
    const { entries } = await run('audit', 'verify', '--json')
    expect(entries).toBe(Number((await open.db('auditEntries').count({ count: '*' }))[0]?.['count']))
  })
})
