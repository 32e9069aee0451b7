import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Follower, follow } from '../../support/http/event-stream.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { startProcess, type TestProcess } from '../../support/processes/child-process.js'
import { startWebProcess, type WebProcess } from '../../support/processes/web-process.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

const POSTS = 100
const worker = new URL('live-worker.ts', import.meta.url).pathname

describe.each(queueBackends)('web processes, with the queue in $store', (backend) => {
  let api: SampleApiPod
  let web: WebProcess
  const cleanups: (() => unknown)[] = []
  beforeEach(async () => {
    api = await startSampleApiPod({ queue: backend })
    cleanups.push(() => api.close())
    await restartWeb()
  })
  afterEach(async () => {
    for (const step of cleanups.splice(0).reverse()) await step()
  })

  async function restartWeb(): Promise<void> {
    const started = await startWebProcess(api.pod)
    cleanups.push(() => started.kill())
    web = started
  }

  it('a client that reconnects receives every event once while processes are killed', async () => {
    const { databaseUrl, redisUrl } = api.pod.config
    const startWorker = (): TestProcess => {
      const started = startProcess(worker, { databaseUrl, redisUrl, prefix: 'pod-pod.example' })
      cleanups.push(() => started.kill())
      return started
    }
    let announcer = startWorker()
    await announcer.messageWith('ready')
    const follower: Follower = follow(() => ({ base: web.base, token: api.alice.token, query: 'types=post' }))
    cleanups.push(() => follower.close())
    await follower.until(() => follower.placed)

    const before = new Set([api.alicePost, api.bobPost, api.bobFriendsPost, api.bobPoll, api.carolPoll])
    const written: string[] = []
    const receivedGuids = () =>
      new Set(follower.events.map(({ data }) => data.guid).filter((guid) => !before.has(guid)))
    const write = async (upTo: number) => {
      while (written.length < upTo) written.push(await publish(api, api.bob, { text: 'Hello', public: true }))
    }

    const half = write(POSTS / 2)
    await follower.until(() => receivedGuids().size > 10)
    await web.kill()
    await restartWeb()
    await half

    const rest = write(POSTS)
    await follower.until(() => receivedGuids().size > POSTS / 4)
    await announcer.kill()
    announcer = startWorker()
    await rest

    await Promise.all([announcer.kill(), web.kill()])
    announcer = startWorker()
    await restartWeb()
    await write(POSTS + 10)
    await follower.until(() => receivedGuids().size >= POSTS + 10)

    const newEvents = follower.events.filter(({ data }) => !before.has(data.guid))
    expect(newEvents.map(({ data }) => data.guid).toSorted()).toEqual(written.toSorted())
    const ids = follower.events.map(({ id }) => Number(id))
    expect(ids).toEqual([...new Set(ids)].toSorted((one, other) => one - other))
    expect(follower.events.every(({ type }) => type === 'post')).toBe(true)
    expect(follower.connections).toBeGreaterThanOrEqual(3)
  }, 180_000)

  it('a request whose process was killed runs once when it is repeated with its idempotency key', async () => {
    const createPost = async () => {
      const headers = {
        authorization: `Bearer ${api.bob.token}`,
        'idempotency-key': 'important',
        'content-type': 'application/json',
      }
      const body = JSON.stringify({ public: true, body: 'Important' })
      return fetch(`${web.base}/api/v1/posts`, { method: 'POST', headers, body })
    }
    const lockHolder = await api.pod.db.transaction()
    await lockHolder.raw('lock table posts in exclusive mode')
    const lost = createPost().catch(() => 'lost')
    await expect.poll(waiting, { timeout: 10_000 }).toBe(1)
    await web.kill()
    expect(await lost).toBe('lost')
    await lockHolder.rollback()
    await restartWeb()

    const soon = await createPost()
    expect([soon.status, soon.headers.get('retry-after')]).toEqual([409, '2'])
    await api.pod.db('idempotencyKeys').update({ claimedAt: new Date(Date.now() - 241_000) })
    const done = await createPost()
    const again = await createPost()

    expect([done.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 200, 'true'])
    expect(await again.json()).toEqual(await done.json())
    expect(await api.pod.db('posts').where({ text: 'Important' })).toHaveLength(1)
  }, 180_000)

  /** Number of connections that wait for a lock. */
  async function waiting(): Promise<number> {
    const { rows } = await api.pod.db.raw(
      `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0].count
  }
})
