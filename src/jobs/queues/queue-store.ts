import type { BackendFactory, IQueueBackend } from 'bullmq'
import type { CountFailedJobs, FindFailedQueues, ReadFailedJobs } from '../bullmq/failed-jobs.js'
import type { FindNextJobs, ReadSummaries } from '../bullmq/job-summaries.js'
import type { CountQueues } from '../bullmq/queue-counts.js'

/** The server that stores the queues. Code beyond the stores does not depend on whether it is Redis or PostgreSQL. */
export interface QueueStore {
  readonly kind: 'redis' | 'postgresql'
  /** False: without what src/jobs/bullmq changes for speed. */
  readonly isTuned: boolean
  /** Gives every queue and every worker its own backend on the shared connections. */
  readonly backend: BackendFactory<IQueueBackend, 'shared'>
  /**
   * Seconds after which a waiting worker polls. It is notified of jobs, and polls only to be known as alive, and in case that a
   * notification was lost; each poll costs the store four requests.
   */
  readonly pollSeconds: number
  /** Resolves when the first connection was made, or failed. */
  readonly firstContact: Promise<void>
  /** False: a request now could only wait. */
  isReady(): boolean
  /** Reads jobs without their data. */
  readonly summaries: ReadSummaries
  readonly nextJobs: FindNextJobs
  readonly failedJobs: ReadFailedJobs
  readonly failedQueues: FindFailedQueues
  readonly countFailedJobs: CountFailedJobs
  /** Undefined: the library counts jobs and workers of one queue after the other. */
  readonly countQueues: CountQueues | undefined
  /** The prefix of the keys of a queue. */
  prefixOf(pod: string, queue: string): string
  /** Resolves when the added job is as durable as this store can make it. */
  safely(prefix: string, add: () => Promise<unknown>): Promise<void>
  /** False: new messages have to be refused, because the workers need memory to remove jobs. */
  hasFreeMemory(): Promise<boolean>
  /** Advice to the operator, in sentences. */
  warnings(): Promise<readonly string[]>
  close(): Promise<void>
}

/** Reports an error of a connection, and which one. */
export type Report = (where: string, error: Error) => void
