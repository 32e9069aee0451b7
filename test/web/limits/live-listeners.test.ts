import { type AddressInfo, connect, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Knex } from 'knex'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { sendSignal } from '../../../src/jobs/signals.js'
import { findLiveEventRange } from '../../../src/persistence/notifications/live-event-sources.js'
import { LIVE_LIMITS, type LiveLimits } from '../../../src/web/live/limits.js'
import { buildApp } from '../../../src/web/server/app.js'
import { openEventStream } from '../../support/http/event-stream.js'
import type { ApiPerson } from '../../support/pods/api-pod.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

describe('live listeners', () => {
  let api: SampleApiPod
  let alice: ApiPerson
  let app: FastifyInstance
  let base: string
  let idOf: ReadonlyMap<string, number>
  const idOfAlicePost = () => idOf.get(api.alicePost) ?? 0
  const idOfBobPost = () => idOf.get(api.bobPost) ?? 0
  const idOfBobPoll = () => idOf.get(api.bobPoll) ?? 0
  const sockets = new Set<Socket>()
  const held = new Set<Knex.Transaction>()
  beforeAll(async () => {
    api = await startSampleApiPod({ environment: { DATABASE_POOL: '10' } })
    alice = api.alice
    const posts = await api.pod
      .db('posts')
      .whereIn('guid', [api.alicePost, api.bobPost, api.bobPoll])
      .select('guid', 'id')
    idOf = new Map(posts.map(({ guid, id }) => [guid, id]))
    await announce(idOfBobPost())
  })
  afterAll(() => api.close())
  beforeEach(() => start())
  afterEach(async () => {
    for (const transaction of held) if (!transaction.isCompleted()) await transaction.rollback()
    await app.close()
  })

  async function start(limits: Partial<LiveLimits> = {}): Promise<void> {
    app = await buildApp(api.pod, { live: { ...LIVE_LIMITS, ...limits } })
    sockets.clear()
    app.server.on('connection', (socket) => sockets.add(socket))
    await app.listen({ port: 0, host: '127.0.0.1' })
    base = `http://127.0.0.1:${port()}`
  }
  const port = () => (app.server.address() as AddressInfo).port // it listens on a port
  const newest = async () => (await findLiveEventRange(api.pod.db)).newest

  /** Announces a post to alice as if it were new. */
  async function announce(subjectId: number, transaction?: Knex.Transaction): Promise<void> {
    if (transaction === undefined) return api.pod.db.transaction((own) => announce(subjectId, own))
    await transaction('announcements').insert({ kind: 'post', subjectId, userId: alice.viewer.userId })
    await sendSignal(transaction, 'announced')
  }

  /** Locks a table: reads of it wait until the transaction ends. */
  async function hold(table: string): Promise<Knex.Transaction> {
    const transaction = await api.pod.db.transaction()
    held.add(transaction)
    await transaction.raw(`lock table ${table} in access exclusive mode`)
    return transaction
  }

  /** Resolves when this many statements wait for a locked table. */
  function waiting(count: number): Promise<void> {
    return expect
      .poll(async () => {
        const { rows } = await api.pod.db.raw(
          `select count(*) from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`,
        )
        return rows[0].count
      })
      .toBe(count)
  }

  function send(...paths: readonly string[]): Socket {
    const socket = connect({ port: port(), host: '127.0.0.1' })
    for (const path of paths) {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: pod.example\r\nAuthorization: Bearer ${alice.token}\r\n\r\n`)
    }
    return socket
  }

  it('are removed when they disconnect before the stream has begun', async () => {
    const tokens = await hold('access_tokens')
    const socket = send('/api/v1/streaming')
    await waiting(1)
    socket.destroy()
    await expect.poll(() => [...sockets].every(({ destroyed }) => destroyed)).toBe(true)
    await tokens.rollback()

    await expect(openEventStream({ base, token: alice.token })).resolves.toMatchObject({ status: 200 })
    expect(app.live.listeners).toBe(1)
  })

  it('are removed with their connection, also when it carries several streams', async () => {
    const socket = send('/api/v1/streaming', '/api/v1/streaming')
    await expect.poll(() => app.live.listeners).toBe(2)

    socket.destroy()

    await expect.poll(() => app.live.listeners).toBe(0)
  })

  it('receive every event when the up-to-date listeners leave during a catch-up', async () => {
    await app.close()
    await start({ heartbeatMs: 20 })
    const before = String(await newest())
    await announce(idOfAlicePost())
    await using other = await openEventStream({ base, token: alice.token, query: 'types=notification' })
    await other.placed()

    // The late listener has read that there is one event.
    const posts = await hold('posts')
    await using late = await openEventStream({ base, token: alice.token, query: 'types=post', lastEventId: before })
    await waiting(1)
    // The other one has received the second, and leaves while it reads the third.
    await announce(idOfBobPost())
    await expect.poll(async () => other.lastEventId).toBe(String(await newest()))
    const announcements = await hold('announcements')
    await api.pod.db.transaction((transaction) => sendSignal(transaction, 'announced'))
    await waiting(2)
    other.close()
    await expect.poll(() => app.live.listeners).toBe(1)
    await posts.rollback()
    expect((await late.take(1)).map(({ data }) => data.guid)).toEqual([api.alicePost])
    await announce(idOfBobPoll(), announcements)
    await announcements.commit()

    expect((await late.take(2)).map(({ data }) => data.guid)).toEqual([api.bobPost, api.bobPoll])
  })

  it('that do not read have few bytes buffered, with any number of missed events', async () => {
    const before = String(await newest())
    const text = '\u{1F375}'.repeat(30_000)
    for (let number = 0; number < 100; number += 1)
      await announce((await publishPost(api.pod, alice.viewer, { text, public: true })).id)
    await using slow = await openEventStream({ base, token: alice.token, query: 'types=post', lastEventId: before })
    slow.pause()

    const largestBuffer = () => Math.max(...[...sockets].map(({ writableLength }) => writableLength))
    await expect.poll(largestBuffer).toBeGreaterThan(LIVE_LIMITS.unsentBytes)
    expect(largestBuffer()).toBeLessThan(2_000_000)
    slow.resume()
    expect(await slow.take(100)).toHaveLength(100)
    expect(slow.events.every(({ type }) => type === 'post')).toBe(true)
  })
})
