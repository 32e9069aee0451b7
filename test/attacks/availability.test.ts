import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { blockHost } from '../../src/domain/moderation/pods/pod-rules.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { openPacking } from '../../src/jobs/inbound/pack-messages.js'
import { WRITE_LIMITS } from '../../src/web/api/limits.js'
import { openKeyedRateLimit, openRateLimit } from '../../src/web/limits/rate-limit.js'
import { OIDC_LIMITS } from '../../src/web/oidc/limits.js'
import { openWrongPasswords } from '../../src/web/oidc/wrong-passwords.js'
import { buildApp } from '../../src/web/server/app.js'
import { HTTP_LIMITS, type HttpLimits } from '../../src/web/server/limits.js'
import { addPost } from '../support/databases/rows.js'
import { likeBy, postBy } from '../support/federation/entities.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { viewerOf } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'
import { startSampleApiPod } from '../support/pods/sample-api-pod.js'
import { recordInboundQueue } from '../support/queues/inbound-queue-recorder.js'
import { readOperations, tryCall } from './api-operations.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

let fakePods: FakePods
let pod: AttackedPod
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({ fakePods })
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})

describe('S80: a client that', () => {
  let quick: TestPod
  let app: FastifyInstance
  const sockets: Socket[] = []
  beforeAll(async () => {
    quick = await buildPod()
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await app?.close()
  })
  afterAll(() => quick.close())

  /** With milliseconds for seconds, and bytes as they are. */
  async function listen(limits: Partial<HttpLimits> = {}): Promise<number> {
    const short = { headersTimeoutMs: 100, requestTimeoutMs: 300, idleTimeoutMs: 400, connectionsCheckMs: 20 }
    app = await buildApp(quick.pod, { limits: { ...HTTP_LIMITS, ...short, ...limits } })
    await app.listen({ host: '127.0.0.1', port: 0 })
    return (app.server.address() as AddressInfo).port // it listens on a port
  }

  /** Sends `begin`, then `goOn` every few milliseconds, and returns everything received until the end. */
  async function talk(port: number, begin: string, goOn = ''): Promise<string> {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk
    })
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(begin)
    const timer = goOn === '' ? undefined : setInterval(() => socket.writable && socket.write(goOn), 20)
    await once(socket, 'close')
    clearInterval(timer)
    return heard
  }

  const post = (path: string, more: string) => `POST ${path} HTTP/1.1\r\nhost: a\r\n${more}\r\n\r\n`

  it.each<[string, string, string]>([
    ['says nothing', '', ''],
    ['sends a header a byte at a time', 'GET / HTTP/1.1\r\nhost: a\r\nx: ', 'a'],
    ['sends headers without end', 'GET / HTTP/1.1\r\nhost: a\r\n', 'x: y\r\n'],
    ['trickles a message', post('/receive/public', 'content-length: 100000'), 'x'],
    ['trickles a message in chunks', post('/receive/public', 'transfer-encoding: chunked'), '1\r\nx\r\n'],
    [
      'trickles a form',
      post(
        '/api/openid_connect/access_tokens',
        'content-type: application/x-www-form-urlencoded\r\ncontent-length: 1000',
      ),
      'x',
    ],
    [
      'trickles JSON',
      post('/api/openid_connect/clients', 'content-type: application/json\r\ncontent-length: 1000'),
      ' ',
    ],
  ])('%s is let go of', async (_what, begin, goOn) => {
    const port = await listen()

    expect(await talk(port, begin, goOn)).not.toMatch(/^HTTP\/1\.1 (2|5)/)
  })

  it('sends more than the body limit gets a 413 during the upload', async () => {
    const port = await listen({ headersTimeoutMs: 30_000, requestTimeoutMs: 30_000, idleTimeoutMs: 30_000 })
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => undefined)
    const answered = once(socket, 'data')
    socket.write(post('/receive/public', 'transfer-encoding: chunked'))
    const part = `${(512 * 1024).toString(16)}\r\n${'x'.repeat(512 * 1024)}\r\n`
    const more = () => {
      if (socket.writable) socket.write(part, more)
    }
    more()

    const [answer] = await answered

    expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('does all that on a hundred connections delays no other client', async () => {
    const port = await listen({ headersTimeoutMs: 5_000, requestTimeoutMs: 5_000, idleTimeoutMs: 5_000 })
    for (let count = 0; count < 100; count += 1) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      sockets.push(socket)
      socket.write('GET / HTTP/1.1\r\nx: ')
    }

    expect(await talk(port, 'GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 200 /,
    )
  })

  it('smuggles a request behind another is cut off', async () => {
    const port = await listen()
    for (const more of [
      'content-length: 3\r\ntransfer-encoding: chunked',
      'content-length: 3\r\ncontent-length: 4',
      'transfer-encoding: identity, chunked, x',
    ]) {
      expect(
        await talk(port, `${post('/receive/public', more)}0\r\n\r\nGET /health/live HTTP/1.1\r\nhost: a\r\n\r\n`),
      ).not.toMatch(/HTTP\/1\.1 200/)
    }
  })
})

describe('S81: every', () => {
  it('list of the API has at most a hundred items, for any amount of data and any parameters', async () => {
    await using api = await startSampleApiPod()
    const { alice, bob, alicePost } = api
    const post = await api.pod.db('posts').where({ guid: alicePost }).first('id')
    await api.pod.db.raw(
      `with made as (
         insert into posts (guid, author_id, type, public, text)
         select md5('p' || n), :bob, 'StatusMessage', true, '#tea' from generate_series(1, 150) n
       )
       insert into comments (guid, post_id, author_id, text) select md5('c' || n), :post, :bob, 'x' from generate_series(1, 150) n`,
      { bob: bob.viewer.personId, post: post.id },
    )
    const lists = (await readOperations()).filter(
      ({ method, queryParameters }) => method === 'GET' && queryParameters.includes('per_page'),
    )
    expect(lists.length).toBeGreaterThan(8)
    const lengths: number[] = []
    for (const list of lists) {
      const parameters = { post_guid: alicePost, person_guid: bob.guid, aspect_id: api.friendsAspectId }
      for (const query of ['per_page=100000', 'per_page=100000&name_or_handle=a&query=te']) {
        const answer = await tryCall(api.app, list, { token: alice.token, parameters, query })
        const items = answer.statusCode === 200 ? answer.json() : []
        lengths.push(items.length)
      }
    }
    expect(Math.max(...lengths)).toBe(100)
  })

  it('statement of the web process ends after five seconds at the latest', async () => {
    await using web = await buildPod()
    const { rows } = await web.pod.db.raw(
      `select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`,
    )

    expect(rows).toEqual([{ statement: '5s', lock: '3s', idle: '30s' }])
  })
})

describe('S82: memory that unknown clients can fill', () => {
  const now = () => new Date()

  it('the number of remembered rate-limited addresses is bounded', () => {
    const limit = openRateLimit({ limit: 'pages', times: 1, perSeconds: 3_600, sources: 100, now })
    limit('203.0.113.1')
    for (let address = 0; address < 1_000; address += 1) limit(`198.51.${address >> 8}.${address & 255}`)

    // It has been forgotten, as the oldest of all: so its place was given away.
    expect(() => limit('203.0.113.1')).not.toThrow()
  })

  it('the memory for people who write is limited', () => {
    const { users } = WRITE_LIMITS
    const limit = openKeyedRateLimit<number>({ limit: 'pages', times: 1, perSeconds: 3_600, sources: users, now })
    for (let person = 0; person <= users; person += 1) limit(person)

    expect(() => limit(users)).toThrow()
    expect(() => limit(0)).not.toThrow()
  })

  it('the memory for wrong passwords is limited', () => {
    const passwords = openWrongPasswords(now)
    const guess = (ip: string) => passwords.count(ip, 'alice')
    for (let time = 0; time <= OIDC_LIMITS.wrongPasswords; time += 1) guess('203.0.113.1')
    expect(passwords.waitFor('203.0.113.1', 'alice')).toMatchObject({ status: 429 })
    for (let address = 0; address < OIDC_LIMITS.sources; address += 1)
      guess(`10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`)

    expect(passwords.waitFor('203.0.113.1', 'alice')).toBeUndefined()
  })

  it('the memory for names in a wrong password is limited', () => {
    const passwords = openWrongPasswords(now)
    const long = 'x'.repeat(1_000_000)
    for (let time = 0; time <= OIDC_LIMITS.wrongPasswords; time += 1) passwords.count('203.0.113.1', long)

    expect(passwords.waitFor('203.0.113.1', `${'x'.repeat(255)}another`)).toMatchObject({ status: 429 })
  })
})

it('S83: likes by two hundred people are one notification, with fifty of them', async () => {
  const { ann } = await pod.people('ann')
  const { guid } = await publishPost(pod, await viewerOf(pod, ann), { text: 'Like it', public: true })
  const first = fakePods.person('fan0@fans.example')
  const fans = Array.from({ length: 200 }, (_, index) =>
    fakePods.person(`fan${index}@fans.example`, { publicKey: first.publicKey, privateKey: first.privateKey }),
  )
  for (const fan of fans) await pod.addRemotePerson(fan)

  await Promise.all(fans.map((fan) => pod.post('/receive/public', envelopeOf(fan, likeBy(fan, { guid })))))
  await pod.waitUntilIdle(30_000)

  expect(await pod.db('posts').where({ guid }).first('likesCount')).toEqual({ likesCount: 200 })
  const { body } = await ann.get('/api/v1/notifications?per_page=100')
  const notifications: readonly { readonly type: string; readonly event_creators: readonly object[] }[] =
    JSON.parse(body)
  expect(notifications.map(({ type, event_creators: people }) => [type, people.length])).toEqual([['liked', 50]])
})

describe('S84: a source that fills the queue', () => {
  it('is packed after all other sources, and rejected beyond its share', async () => {
    await using silent = await startAttackedPod({ fakePods, queues: [] })
    const limits = {
      ...RECEIVE_LIMITS,
      bytes: 2 ** 28,
      fairFromMessages: 10,
      messagesPerShare: 5,
      messagesOfSource: 20,
      pollIntervalMs: 3_600_000,
    }
    const packing = openPacking(silent, limits)
    onTestFinished(() => packing.close())
    const flood = { ip: '198.51.100.1' }
    const quiet = { ip: '203.0.113.1' }
    for (let count = 0; count < 60; count += 1) {
      if (packing.refusalOf(flood) === undefined) await packing.acceptPublic(`flood ${count}`, flood)
    }

    expect(packing.refusalOf(flood)).toBe('over_share')
    expect(packing.refusalOf(quiet)).toBeUndefined()
    await packing.acceptPublic('quiet', quiet)
    await using taken = recordInboundQueue(silent)
    const order = (await taken.until(21)).map(({ envelope }) => envelope)
    expect(order.indexOf('quiet')).toBeGreaterThan(0)
    expect(order.slice(order.indexOf('quiet')).length).toBeGreaterThan(5)
  })
})

it('S85: messages from a blocked pod get a 202 and are not stored; a like of a local post is answered', async () => {
  const mallory = fakePods.person('mallory@blocked.example')
  await pod.addRemotePerson(mallory)
  await blockHost(pod, COMMAND_ACTOR, { host: 'blocked.example', port: 443 }, { reason: 'Spam', isConfirmed: true })
  const { ann } = await pod.people('ann')
  const post = await addPost(pod, { id: (await viewerOf(pod, ann)).personId })

  const result = await pod.send(
    envelopeOf(mallory, postBy(mallory)),
    envelopeOf(mallory, likeBy(mallory, post)),
    envelopeOf(fakePods.person('unknown@blocked.example'), postBy({ address: 'unknown@blocked.example' })),
  )

  expect(result.statuses).toEqual([202, 202, 202])
  expect(result.changes).toEqual({ outbound_messages: 1, deliveries: 1 })
  expect(await pod.db('outbound_messages').orderBy('id', 'desc').first()).toMatchObject({
    record: 'like',
    verb: 'retract',
  })
  expect(fakePods.requests.filter((request) => request.startsWith('blocked.example'))).toEqual([])
})
