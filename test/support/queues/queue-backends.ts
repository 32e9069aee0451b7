import type { Client } from 'pg'
import { QUEUE_TIMEOUTS } from '../../../src/jobs/queues/queue-client.js'
import { administer, createTestDatabase } from '../databases/test-database.js'
import type { TcpProxy } from '../http/tcp-proxy.js'
import { openQueuePod, type PodStores, type QueuePod } from '../pods/queue-pod.js'
import { startTestRedis, type TestRedis, whyNoRedis } from './redis-server.js'

export interface QueueBackend {
  readonly store: 'PostgreSQL' | 'Redis'
}

/** The back ends of the queue. Every test of the pipeline runs on each of them. */
export const queueBackends: readonly QueueBackend[] =
  whyNoRedis() === undefined ? [{ store: 'PostgreSQL' }, { store: 'Redis' }] : [{ store: 'PostgreSQL' }]

/** A database, and a Redis if the backend needs one, for one test file. */
export interface TestStores extends PodStores {
  readonly redis: TestRedis | undefined
  /** Opens another pod on these stores, or on other URLs of them. */
  openPod(elsewhere?: Partial<PodStores>): Promise<QueuePod>
  /** URLs that reach the queue through a proxy, with the timeouts of a real pod. */
  queueThrough(proxy: TcpProxy): Partial<PodStores>
  /** Deletes all queue data; the tables of the pod stay. */
  emptyQueue(): Promise<void>
  close(): Promise<void>
}

export async function openTestStores({ store }: QueueBackend): Promise<TestStores> {
  const database = await createTestDatabase()
  const redis = store === 'Redis' ? await startTestRedis() : undefined
  const stores = { databaseUrl: database.url, redisUrl: redis?.url, prefix: redis?.prefix ?? 'pod' }
  const pods: QueuePod[] = []
  return {
    ...stores,
    redis,
    async openPod(elsewhere) {
      const pod = await openQueuePod({ ...stores, ...elsewhere })
      pods.push(pod)
      return pod
    },
    queueThrough(proxy) {
      const through = (address: string) => Object.assign(new URL(address), { port: `${proxy.port}` }).href
      const urls = redis ? { redisUrl: through(redis.url) } : { databaseUrl: through(database.url) }
      return { ...urls, timeouts: QUEUE_TIMEOUTS }
    },
    emptyQueue: () => (redis ? redis.empty() : administer(database.url, deleteJobs)),
    async close() {
      await Promise.all(pods.map((pod) => pod.close()))
      await redis?.stop()
      await database.drop()
    },
  }
}

/** Empties the queue of a database. */
export async function deleteJobs(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select format('bullmq.%I', tablename) as name from pg_tables where schemaname = 'bullmq' and tablename <> 'migration'`,
  )
  // An abandoned statement may still hold locks; the longer timeout makes it the victim of a deadlock.
  await client.query(`set deadlock_timeout = '10s'`)
  await client.query(`truncate ${rows.map(({ name }) => name).join(', ')}`)
}
