import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { StartError } from '../../src/errors/start-error.js'
import { defineJob, federationBackoff, retriedForHours } from '../../src/jobs/definitions.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { throttledLog } from '../../src/jobs/queues/throttled-log.js'
import { administer, createTestDatabase } from '../support/databases/test-database.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { redisProgram, startTestRedis, whyNoRedis } from '../support/queues/redis-server.js'

const log = pino({ level: 'silent' })

describe.each(queueBackends)('the queues, in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())

  it('report their store and no warnings', async () => {
    expect(pod.jobs.store).toBe(backend.store.toLowerCase())
    expect(await pod.jobs.warnings()).toEqual([])
  })

  it('count a worker as alive that gets each next job without a separate fetch', async () => {
    const job = defineJob<{ turn: number }>()('notify', 'turn', retriedForHours)
    for (const turn of [1, 2]) await pod.jobs.add(job, { turn })
    const heard: number[] = []
    const options = { concurrency: 1, lockMs: 5_000, stalledCheckMs: 5_000, backoff: () => 10 }
    const worker = pod.jobs.serve(
      'notify',
      async () => {
        heard.push(worker.lastAnswerAt)
        worker.lastAnswerAt = 0
      },
      options,
    )

    await vi.waitFor(() => expect(heard).toHaveLength(2))
    expect(heard).not.toContain(0)
    await worker.close()
  })

  it('reject a job that cannot be stored with a specific error, not as unavailable', async () => {
    const job = defineJob<{ text: string }>()('notify', 'text', retriedForHours)
    const adding = pod.jobs.add(job, { text: 'a\u0000b' })

    // Redis stores anything; PostgreSQL has no NUL in its texts.
    if (backend.store === 'Redis') await adding
    else await expect(adding).rejects.toMatchObject({ code: '22P05' })
  })
})

describe('the queue in PostgreSQL', () => {
  it('names the migration command when its tables are missing', async () => {
    const database = await createTestDatabase()
    await administer(database.url, (client) => client.query('drop schema bullmq cascade'))
    const opening = openJobQueues({ redisUrl: undefined, databaseUrl: database.url, log })

    await expect(opening).rejects.toThrow(StartError)
    await expect(opening).rejects.toThrow('db migrate')

    await migrateQueue(database.url)
    await migrateQueue(database.url)
    const queues = await openJobQueues({ redisUrl: undefined, databaseUrl: database.url, log })
    expect(await queues.counts('notify')).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 })
    await queues.close()
    await database.drop()
  })
})

describe.runIf(redisProgram() !== undefined)('the queue in Redis', () => {
  it('warns of a Redis that may lose or evict jobs', async () => {
    const redis = await startTestRedis('--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru')
    const queues = await openJobQueues({ redisUrl: redis.url, databaseUrl: 'postgres://127.0.0.1:1/none', log })

    expect(await queues.warnings()).toEqual([
      expect.stringContaining('append-only file'),
      expect.stringContaining('maxmemory-policy is allkeys-lru'),
    ])
    await queues.close()
    await redis.stop()
  })
})

it('prints the stores on which the queue tests ran', () => {
  console.info(whyNoRedis() ?? 'The queue tests ran on both stores: PostgreSQL and Redis.')
  expect(queueBackends.map(({ store }) => store)).toContain('PostgreSQL')
})

describe('the back-off of the federation', () => {
  it('spreads ten more attempts over about five hours', () => {
    const waits = Array.from({ length: 10 }, (_, index) => federationBackoff(index + 1, () => 0) / 1_000)

    expect(waits).toEqual([15, 16, 31, 96, 271, 640, 1_311, 2_416, 4_111, 6_576])
    expect(federationBackoff(1, () => 1)).toBe(24_000)
    expect(federationBackoff(10, () => 1)).toBe(6_666_000)
  })
})

describe('log lines of queue errors', () => {
  it('are written once a minute and kind', () => {
    const warn = vi.fn()
    let now = 0
    const report = throttledLog({ ...log, warn } as unknown as typeof log, () => now)
    const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED' })

    for (let times = 0; times < 100; times += 1) report('worker', refused)
    expect(warn).toHaveBeenCalledTimes(1)
    report('producer', refused)
    report('worker', new TypeError('something else'))
    expect(warn).toHaveBeenCalledTimes(3)
    now = 60_000
    report('worker', refused)
    expect(warn).toHaveBeenCalledTimes(4)
  })
})
