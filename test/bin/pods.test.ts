import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod, type Settings } from './program.js'

/** Commands about outbound deliveries, on prepared tables. No worker runs. */
describe('the commands about deliveries', { timeout: 180_000 }, () => {
  let place: Place
  let db: Knex
  let fakePods: FakePods
  let settings: Settings
  let senderId: number

  beforeAll(async () => {
    place = await makePlace({ ...KNOWN_POD, ALLOW_PRIVATE_ADDRESSES: 'true' })
    settings = place.settings
    fakePods = await startFakePods()
    db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: place.databaseUrl, applicationName: 'test' })
    senderId = await personAt(null, 'ann@pod.example')
  })
  afterAll(async () => {
    await db.destroy()
    await fakePods.close()
    await place.remove()
  })

  const reason = ['--reason', 'For a test']

  async function json(...words: string[]): Promise<unknown> {
    const { code, stdout, stderr } = await pod([...words, '--json'], settings)
    if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}`)
    return JSON.parse(stdout)
  }

  async function podAt(host: string, row: object = {}): Promise<number> {
    const [{ id }] = await db('pods')
      .insert({ host, ...row })
      .returning('id')
    return id
  }

  async function personAt(podId: number | null, address: string): Promise<number> {
    const person = { guid: newGuid(), address, podId, publicKey: newGuid() }
    const [{ id }] = await db('people').insert(person).returning('id')
    return id
  }

  async function messageAbout(guid: string, verb = 'create'): Promise<number> {
    const row = { record: 'post', guid, verb, senderId, public: true, entity: '<status_message/>' }
    const [{ id }] = await db('outbound_messages').insert(row).returning('id')
    return id
  }

  it('list and show pods by the state of their deliveries', async () => {
    const fine = await podAt('fine.example', { status: 'no_errors', lastSuccessAt: new Date(), software: 'diaspora' })
    const away = await podAt('away.example', { port: 3000, failures: 2, nextTryAt: new Date(Date.now() + 60_000) })
    await podAt('gone.example', { offlineSince: new Date(0), status: 'dns_failed', lastError: 'no such name' })
    await personAt(fine, 'quin@fine.example')
    const messageId = await messageAbout(newGuid())
    await db('deliveries').insert([
      { messageId, podId: fine },
      { messageId, podId: away },
    ])

    expect(await json('pods', 'list')).toMatchObject([
      { pod: 'away.example:3000', state: 'away', waiting: 1, failures: 2 },
      { pod: 'fine.example', state: 'proven', people: 1, waiting: 1, software: 'diaspora' },
      { pod: 'gone.example', state: 'asleep', last_error: 'no such name' },
    ])
    expect(await json('pods', 'list', '--state', 'asleep')).toMatchObject([{ pod: 'gone.example' }])
    await db('pod_days').insert({ podId: fine, day: db.raw('current_date'), delivered: 3, refused: 1 })
    expect(await json('pods', 'show', 'quin@fine.example')).toMatchObject({
      pod: 'fine.example',
      people: 1,
      delivery_ms: { p50: null, p95: null },
      days: [{ delivered: 3, failed: 0, received: 0, refused: 1 }],
    })
    await db('pods').where({ id: away }).update({ status: 'net_failed', lastError: 'connection refused' })
    expect(await json('pods', 'show', 'http://away.example:3000/')).toMatchObject({
      pod: 'away.example:3000',
      errors: [{ at: expect.any(String), status: 'net_failed', error: 'connection refused' }],
    })
    expect((await pod(['pods', 'show', 'away.example:3000'], settings)).stdout).toMatch(
      /Z {2}net_failed {2}connection refused\n$/,
    )
    const nobody = await pod(['pods', 'show', 'nobody.example'], settings)
    expect(nobody).toMatchObject({ code: 1, stderr: 'There is no known pod at nobody.example.\n' })
  })

  it('block an unknown pod by any spelling of its name, and never the local pod', async () => {
    expect(await json('pods', 'block', 'https://Never.Example/', ...reason)).toMatchObject({
      pod: 'never.example',
      state: 'blocked',
    })
    expect(await db('pods').where({ host: 'never.example' }).select('port')).toEqual([{ port: 443 }])
    expect(await json('pods', 'block', 'someone@bücher.example', ...reason)).toMatchObject({
      pod: 'xn--bcher-kva.example',
    })

    const own = await pod(['pods', 'block', new URL(String(settings['POD_URL'])).host], settings)
    expect([own.code, own.stderr]).toEqual([1, expect.stringContaining('is this pod')])
    expect((await pod(['pods', 'unblock', 'unmet.example'], settings)).stderr).toContain(
      'no known pod at unmet.example',
    )
  })

  it('delete the people of a blocked pod with their data, and no other people', async () => {
    const podId = await podAt('spam.example')
    const spammer = await personAt(podId, 'spammer@spam.example')
    const other = await personAt(await podAt('honest.example'), 'quin@honest.example')
    const postOf = (authorId: number) => ({ guid: newGuid(), authorId, type: 'StatusMessage', public: true })
    const [post, kept] = await db('posts')
      .insert([postOf(spammer), postOf(other)])
      .returning('id')
    await db('comments').insert({ guid: newGuid(), postId: kept.id, authorId: spammer, text: 'Buy' })
    await db('comments').insert({ guid: newGuid(), postId: post.id, authorId: other, text: 'No' })
    await db('posts').update({ commentsCount: 1 })

    await db('users').insert({ username: 'mod', personId: await personAt(null, 'mod@pod.example'), role: 'moderator' })
    const question = ['pods', 'block', 'spam.example', '--purge']
    const wouldDelete = {
      ...{ people: 1, posts: 1, photos: 0, comments: 1, likes: 0, votes: 0 },
      ...{ conversations: 0, messages: 0, contacts: 0 },
    }
    const asked = await pod(question, settings)
    expect([asked.code, asked.stderr]).toEqual([1, expect.stringMatching(/^would delete comments +1$/m)])
    expect(asked.stderr).toContain('Nothing was changed. Add --yes to do it.')
    expect(JSON.parse((await pod([...question, '--json'], settings)).stderr)).toMatchObject({
      reason: 'confirmation_needed',
      preview: { domain: 'spam.example', would_delete: wouldDelete },
    })
    expect(await json(...question, '--dry-run', '--yes')).toMatchObject({ people: 1, would_delete: wouldDelete })
    for (const options of [[], ['--dry-run']]) {
      const refused = await pod([...question, ...options, '--as', 'mod'], settings)
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('needs the role')])
    }
    expect(await json('pods', 'block', 'unmet.example', '--purge', '--dry-run')).toMatchObject({
      would_delete: { people: 0, posts: 0 },
    })
    expect(await db('pods').where({ id: podId }).first('blocked_at')).toEqual({ blockedAt: null })

    const purge = ['pods', 'block', 'spam.example', '--purge', '--yes', ...reason]
    const refused = await pod([...purge, '--as', 'mod'], settings)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('needs the role')])
    expect(await db('pods').where({ id: podId }).first('blocked_at')).toEqual({ blockedAt: null })
    expect(await db('people').where({ podId }).pluck('id')).toEqual([spammer])
    expect(await json(...purge)).toMatchObject({
      state: 'blocked',
      people: 0,
    })
    expect(await db('posts').whereNotNull('authorId').select('id', 'commentsCount')).toEqual([
      { id: kept.id, commentsCount: 0 },
    ])
    expect(await db('comments').pluck('id')).toEqual([])
    expect(await db('audit_entries').where({ action: 'pod.purge' }).select('target', 'reason', 'after')).toEqual([
      { target: expect.objectContaining({ label: 'spam.example' }), reason: 'For a test', after: { people: 1 } },
    ])
  })

  it('block a pod, which gives up its pending deliveries, and unblock it', async () => {
    const podId = await podAt('bad.example')
    await db('deliveries').insert({ messageId: await messageAbout(newGuid()), podId })

    const [{ id: userId }] = await db('users')
      .insert({ username: 'follower', personId: await personAt(null, 'follower@pod.example') })
      .returning('id')
    const personId = await personAt(podId, 'friend@bad.example')
    await db('contacts').insert({ userId, personId, receiving: true })
    for (const words of [
      ['pods', 'block', 'bad.example', ...reason],
      ['pods', 'set', 'bad.example', 'blocked', ...reason],
    ]) {
      const unconfirmed = await pod(words, settings)
      expect([unconfirmed.code, unconfirmed.stderr]).toEqual([1, expect.stringMatching(/^contacts +1$/m)])
      expect(unconfirmed.stderr).toContain('Nothing was changed. Add --yes to do it.')
    }
    expect(await json('pods', 'block', 'bad.example', '--dry-run', '--yes')).toMatchObject({ contacts: 1, people: 1 })
    expect(await db('pod_rules').where({ domain: 'bad.example' })).toEqual([])
    expect(await json('pods', 'block', 'bad.example', '--yes', ...reason)).toMatchObject({
      state: 'blocked',
      waiting: 0,
      dead: 1,
    })
    expect(await db('deliveries').where({ podId }).first()).toMatchObject({ state: 'dead', lastFault: 'pod_blocked' })
    expect(await pod(['pods', 'probe', 'bad.example'], settings)).toMatchObject({ code: 1 })
    expect(await json('pods', 'unblock', 'bad.example', ...reason)).toMatchObject({
      state: 'unproven',
      blocked_at: null,
      waiting: 1,
    })
  })

  it('set, list, preview and unset rules for domains, with audit entries', async () => {
    await personAt(await podAt('sub.rules.example'), 'quin@sub.rules.example')

    expect((await pod(['pods', 'set', 'rules.example', 'normal'], settings)).stderr).toContain('needs a reason')
    expect(await json('pods', 'preview', 'rules.example')).toMatchObject({
      people: 1,
      pods: [{ host: 'sub.rules.example' }],
    })
    expect(await json('pods', 'set', 'rules.example', 'blocked', '--until', '7d', ...reason)).toMatchObject({
      domain: 'rules.example',
      pods_met: 1,
      until: expect.any(String),
    })
    expect(await json('pods', 'show', 'sub.rules.example')).toMatchObject({ state: 'blocked' })
    expect(await json('pods', 'rules', '--state', 'blocked')).toContainEqual(
      expect.objectContaining({ domain: 'rules.example', created_by: 'command' }),
    )
    expect(await json('pods', 'unset', 'rules.example', ...reason)).toEqual({ changed: true })
    expect(
      await db('audit_entries').whereRaw(`target->>'guid' = 'rules.example'`).orderBy('id').pluck('action'),
    ).toEqual(['pod_rule', 'pod_rule.delete'])
  })

  it('put a pod to sleep and wake it, which revives the deliveries that were given up', async () => {
    const podId = await podAt('sleepy.example', { lastSuccessAt: new Date() })
    await db('deliveries').insert({ messageId: await messageAbout(newGuid()), podId })

    const asleep = await json('pods', 'sleep', 'sleepy.example', ...reason)
    expect(asleep).toMatchObject({ state: 'asleep', waiting: 0, dead: 1 })
    const { offline_since: since } = asleep as { offline_since: string }
    expect(Date.now() - Date.parse(since)).toBeLessThan(60_000)
    expect(await json('pods', 'wake', 'sleepy.example', ...reason)).toMatchObject({
      state: 'proven',
      offline_since: null,
      waiting: 1,
      dead: 0,
    })

    await db('pods')
      .where({ id: podId })
      .update({ offlineSince: new Date(Date.now() + 1_000) })
    expect(await json('pods', 'show', 'sleepy.example')).not.toMatchObject({ state: 'asleep' })
  })

  it('check a pod at once, and store the result', async () => {
    const port = fakePods.server.port
    const host = `localhost:${port}`
    fakePods.script(`${host}/`, (_request, response) => response.end('a pod'))
    await podAt('localhost', { port, offlineSince: new Date(), failures: 3, nextTryAt: new Date(Date.now() + 60_000) })

    const { code, stdout } = await pod(['pods', 'probe', host, '--json'], settings)

    expect(code).toBe(1) // the pod has no NodeInfo
    const found = JSON.parse(stdout)
    expect(found).toMatchObject({ status: 'version_failed', offline_since: null, next_try_at: null })
    expect(found.probe.steps).toMatchObject(['dns', 'address', 'tcp', 'http'].map((step) => ({ step, ok: true })))
  })

  it('report the delivery state of a post', async () => {
    const guid = newGuid()
    const [arrived, waits, refuses] = [await podAt('a.example'), await podAt('b.example'), await podAt('c.example')]
    const messageId = await messageAbout(guid)
    await db('deliveries').insert([
      { messageId, podId: arrived },
      { messageId, podId: waits },
    ])
    await db('deliveries').insert({ messageId, podId: refuses })
    await db('deliveries').where({ podId: arrived }).delete()
    const dead = { state: 'dead', diedAt: new Date(), attempts: 10, lastFault: 'refused', lastStatus: 403 }
    await db('deliveries').where({ podId: refuses }).update(dead)

    expect(await json('post', guid)).toMatchObject({
      guid,
      messages: [
        {
          verb: 'create',
          sent_to: 3,
          arrived: 1,
          missing: [
            { state: 'dead', pod: 'c.example', attempts: 10, fault: 'refused', status: 403, next_try_at: null },
            { state: 'waiting', pod: 'b.example', attempts: 0, fault: null, next_try_at: expect.any(String) },
          ],
        },
      ],
    })
    const { stdout } = await pod(['post', guid], settings)
    expect(stdout).toContain('1 of 3 arrived, 1 waiting, 1 given up')
    expect(stdout).toMatch(/given up +c\.example +10 attempts +refused \(403\)/)
    expect(await pod(['post', newGuid()], settings)).toMatchObject({ code: 1 })
  })

  it('show dead deliveries beside other dead letters, replay and drop them', async () => {
    await db('deliveries').delete()
    const guid = newGuid()
    const messageId = await messageAbout(guid)
    const pods = [await podAt('x.example'), await podAt('y.example')]
    const dead = { messageId, state: 'dead', diedAt: new Date(), attempts: 10, lastFault: 'refused', lastStatus: 400 }
    const rows = await db('deliveries')
      .insert(pods.map((podId) => ({ ...dead, podId })))
      .returning('id')
    const [one, other] = rows.map(({ id }: { id: number }) => `delivery-${id}`)

    expect(await json('dead', 'list', '--queue', 'outbound', '--fault', 'refused')).toHaveLength(2)
    expect(await json('dead', 'list', '--queue', 'inbound')).toEqual([])
    expect(await json('dead', 'list', '--pod', 'x.example')).toMatchObject([
      { id: one, pod: 'x.example', entity: 'post' },
    ])
    expect(await json('dead', 'list', '--group-by', 'pod')).toEqual({
      groups: [
        { value: 'x.example', count: 1 },
        { value: 'y.example', count: 1 },
      ],
    })
    expect(await json('dead', 'show', `${one}`)).toMatchObject({
      name: 'deliver',
      fault: 'refused',
      attempts: 10,
      data: { pod: 'x.example', guid, record: 'post', verb: 'create', status: 400 },
    })
    expect(await json('dead', 'replay', `${one}`, '--reason', 'A test')).toEqual({ replayed: 1 })
    expect(await json('dead', 'drop', `${other}`, '--yes', '--reason', 'A test')).toEqual({ dropped: 1 })

    expect(await db('deliveries')).toMatchObject([{ podId: pods[0], state: 'waiting', attempts: 0, diedAt: null }])
    expect(await json('post', guid)).toMatchObject({ messages: [{ sent_to: 1, arrived: 0 }] })
    expect(await json('status')).toMatchObject({ deliveries: { due: 1, waiting: 1, dead: 0 } })
  })
})
