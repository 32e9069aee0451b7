import pg from 'pg'
import { postgresCountFailedJobs, postgresFailedJobs, postgresFailedQueues } from '../bullmq/failed-jobs.js'
import { postgresNextJobs, postgresSummaries } from '../bullmq/job-summaries.js'
import { postgresBackends } from '../bullmq/postgres-backends.js'
import { postgresCountQueues } from '../bullmq/queue-counts.js'
import { QUEUES } from './queue-names.js'
import type { QueueStore, Report } from './queue-store.js'

/**
 * Makes PostgreSQL use an index for every request. A queue is empty at one moment and long at the next; a plan made for the empty one reads
 * the whole long one for each job. Every request of BullMQ has an index. For tables without an index, such as those that exist in one
 * statement only, older servers estimate a cost at which they would compile the plan; so JIT is off.
 */
const INDEXES_ONLY =
  'set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off; set plan_cache_mode = force_generic_plan; set jit = off'

/**
 * Workers do not wait for the disk. When the server loses the last commits, the jobs they ended run again, as if the worker had
 * died; commits are lost in order, so no job is lost. Waiting for the disk would double the cost of a small job.
 */
const COMMIT_OF_WORKERS = 'set synchronous_commit = off'

/** Connections that a process takes at most when the queue is in PostgreSQL: each for producers, a worker more for its workers. */
export const QUEUE_POOLS = { producers: 8, workers: 9 }

/** Producers wait until a job is on disk, and have connections of their own for it. */
export function openPostgresStore(
  databaseUrl: string,
  { isTuned, report }: { readonly isTuned: boolean; readonly report: Report },
): QueueStore {
  const producers = openPool(databaseUrl, { max: QUEUE_POOLS.producers, report })
  let workers: pg.Pool | undefined

  function openWorkers(): pg.Pool {
    // Without the shared connection each worker listens on one of its own.
    const max = QUEUE_POOLS.workers + (isTuned ? 0 : QUEUES.length)
    workers ??= openPool(databaseUrl, { max, settings: COMMIT_OF_WORKERS, report })
    return workers
  }

  return {
    kind: 'postgresql',
    isTuned,
    pollSeconds: 45, // PostgreSQL notifies all listeners, and a worker polls at once after it has lost its connection
    firstContact: Promise.resolve(),
    backend: postgresBackends({ producers, openWorkers, isTuned, report }),
    isReady: () => true,
    summaries: postgresSummaries(producers),
    nextJobs: postgresNextJobs(producers),
    failedJobs: postgresFailedJobs(producers),
    failedQueues: postgresFailedQueues(producers),
    countFailedJobs: postgresCountFailedJobs(producers),
    countQueues: isTuned ? postgresCountQueues(producers) : undefined, // workers have their locks only then
    prefixOf: (pod) => pod,
    async safely(_prefix, add) {
      await add()
    },
    hasFreeMemory: async () => true,
    warnings: async () => [],
    close: async () => {
      await Promise.all([producers.end(), workers?.end()])
    },
  }
}

function openPool(
  databaseUrl: string,
  { max, settings, report }: { readonly max: number; readonly settings?: string; readonly report: Report },
): pg.Pool {
  const first = ['set search_path = bullmq', 'set statement_timeout = 20000', INDEXES_ONLY, settings]
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max,
    keepAlive: true,
    // A firewall may forget an idle connection, and a listening one sends nothing.
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
    // The timeout is longer than the time between polls of idle workers: opening a connection costs more than the poll.
    idleTimeoutMillis: 60_000,
    // Set by a statement: a pooler refuses unknown settings at the beginning of a connection.
    onConnect: (client) => client.query(first.filter((each) => each !== undefined).join('; ')),
  })
  pool.setMaxListeners(0) // every queue and every worker listens for its errors
  pool.on('error', (error) => report('pool', error))
  // The pool removes its listener before a closing connection has ended; an error without a listener would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}
