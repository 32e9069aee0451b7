import { afterEach, describe, expect, it, vi } from 'vitest'
import { listDeadLetters } from '../../../src/jobs/dead-letters/find-dead-letters.js'
import { migrateQueue } from '../../../src/jobs/queues/queue-schema.js'
import { migrate } from '../../../src/persistence/database/migrate.js'
import { startCrashingDatabase } from '../../support/databases/crashing-database.js'
import { openQueuePod, type QueuePod } from '../../support/pods/queue-pod.js'
import { startProcess, type TestProcess } from '../../support/processes/child-process.js'
import { queueBackends } from '../../support/queues/queue-backends.js'
import { startTestRedis } from '../../support/queues/redis-server.js'
import { untilIdle } from '../../support/queues/test-workers.js'

const JOBS = 1_000
const worker = new URL('../no-op-worker.ts', import.meta.url).pathname
const producer = new URL('../no-op-producer.ts', import.meta.url).pathname

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const step of cleanups.splice(0).reverse()) await step()
})

describe.each(queueBackends)('workers, with the queue in $store', ({ store }) => {
  it('run every job once while processes are killed', async () => {
    const database = await startCrashingDatabase()
    cleanups.push(() => database.stop())
    const redis = store === 'Redis' ? await startTestRedis() : undefined
    if (redis) cleanups.push(() => redis.stop())
    const instructions = {
      databaseUrl: database.url,
      redisUrl: redis?.url,
      prefix: redis?.prefix ?? 'pod',
      jobs: JOBS,
    }
    await migrateQueue(database.url)
    const pod = await openQueuePod(instructions)
    cleanups.push(() => pod.close())
    await makeTables(pod)

    const start = (file: string): TestProcess => {
      const started = startProcess(file, instructions)
      cleanups.push(() => started.kill())
      return started
    }
    let one = start(worker)
    let other = start(worker)
    let web = start(producer)

    await untilDone(pod, JOBS * 0.1)
    await one.kill()
    one = start(worker)

    await untilDone(pod, JOBS * 0.2)
    await web.kill()
    web = start(producer)

    await untilDone(pod, JOBS * 0.35)
    await database.crash()

    await untilDone(pod, JOBS * 0.5)
    await other.kill()
    other = start(worker)

    await untilDone(pod, JOBS * 0.65)
    await database.crash()
    if (redis?.crash) await redis.crash()

    await untilDone(pod, JOBS * 0.8)
    await Promise.all([one.kill(), other.kill(), web.kill()])
    one = start(worker)
    other = start(worker)
    web = start(producer)

    expect(await web.ended).toEqual({ code: 0, signal: null })
    await untilDone(pod, JOBS)
    await untilIdle(pod, 120_000)

    expect(await pod.db('produced').count({ rows: '*' })).toEqual([{ rows: JOBS }])
    expect(await pod.db('effects').count({ rows: '*' })).toEqual([{ rows: JOBS }])
    expect(await pod.db('effects').countDistinct({ rows: 'key' })).toEqual([{ rows: JOBS }])
    expect(await pod.db('outbox')).toEqual([])
    expect(await listDeadLetters(pod)).toEqual([])
  }, 300_000)
})

async function makeTables({ db }: QueuePod): Promise<void> {
  await migrate(db)
  await db.schema.createTable('produced', (table) => table.integer('key').primary())
  // Only the outbox prevents a second row with the same key.
  await db.schema.createTable('effects', (table) => table.integer('key').notNullable())
}

async function untilDone({ db }: QueuePod, jobs: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const [found] = await db('effects').count({ rows: '*' })
      const done = Number(found?.rows)
      if (!(done >= jobs)) throw new Error(`${done} of ${jobs} are done`)
    },
    { timeout: 120_000, interval: 50 },
  )
}
