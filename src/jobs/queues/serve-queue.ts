import type { Job } from 'bullmq'
import { type ObservedWorker, openObservedWorker } from '../bullmq/observed-worker.js'
import { QUEUES, type QueueName } from './queue-names.js'
import type { QueueStore, Report } from './queue-store.js'

export interface ServeOptions {
  readonly concurrency: number
  /** Milliseconds a job is locked after the last heartbeat of its worker. */
  readonly lockMs: number
  /** Milliseconds between two searches for jobs whose worker is gone. */
  readonly stalledCheckMs: number
  backoff(attemptsMade: number): number
}

interface StoreOfQueue {
  readonly store: QueueStore
  readonly prefix: string
  readonly report: Report
}

/** Starts a worker for a queue. */
export function serveQueue(
  { store, prefix, report }: StoreOfQueue,
  name: QueueName,
  run: (job: Job) => Promise<void>,
  { concurrency, lockMs, stalledCheckMs, backoff }: ServeOptions,
): ObservedWorker {
  // Workers that poll at the same moment need a connection each.
  const apart = 1 + QUEUES.indexOf(name) / 100
  const worker = openObservedWorker(name, run, {
    backend: store.backend,
    isTuned: store.isTuned,
    options: {
      connection: 'shared',
      prefix: store.prefixOf(prefix, name),
      concurrency,
      lockDuration: lockMs,
      stalledInterval: Math.round(stalledCheckMs * apart),
      drainDelay: store.pollSeconds * apart,
      maxStalledCount: 1_000, // suspects.ts has the limit; the default fails a job whose worker was killed twice
      runRetryDelay: 2_000, // the default of 15 s is how late a worker would notice that PostgreSQL is back
      removeOnComplete: { count: 0 }, // of a job whose own options Redis has evicted
      settings: { backoffStrategy: backoff },
    },
  })
  worker.on('error', (error: Error) => report(`worker ${name}`, error))
  return worker
}
