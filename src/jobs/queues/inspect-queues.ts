import type { Job, JobType } from 'bullmq'
import type { FailedJobPage } from '../bullmq/failed-jobs.js'
import type { JobSummary } from '../bullmq/job-summaries.js'
import { PAUSED_JOBS } from '../bullmq/paused-jobs.js'
import type { QueueClient } from './queue-client.js'
import { QUEUES, type QueueName } from './queue-names.js'
import type { QueueStore } from './queue-store.js'

export interface QueueCounts {
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
}

export interface QueueInspection {
  /** Whether a job that was added under this unique name waits or is running. */
  isUnderWay(queue: QueueName, unique: string): Promise<boolean>
  counts(queue: QueueName): Promise<QueueCounts>
  /** The job that is next in line. */
  oldestWaiting(queue: QueueName): Promise<Job | undefined>
  /** The latest first, with their data. */
  failed(queue: QueueName, from: number, count: number): Promise<readonly Job[]>
  /** Lists jobs without their data: failed ones latest first, others in the order in which they run. */
  list(queue: QueueName, state: JobState, from: number, count: number): Promise<readonly JobSummary[]>
  /** Lists failed jobs that have no outbox row, without their data, from a position on. */
  failedWithoutRow(queue: QueueName, page: FailedJobPage): Promise<readonly JobSummary[]>
  /** The queues that have failed jobs. */
  queuesWithFailedJobs(): Promise<readonly QueueName[]>
  find(queue: QueueName, jobId: string): Promise<Job | undefined>
  /** The ids of all jobs that are not done, failed ones included. A job that changes its state in the meantime is among them. */
  notDone(queue: QueueName): Promise<readonly string[]>
  /** The number of workers that serve the queue, in all processes. */
  workers(queue: QueueName): Promise<number>
  /** The number of waiting, running and delayed jobs that no schedule has made. */
  unscheduled(queue: QueueName): Promise<number>
}

export const JOB_STATES = ['waiting', 'active', 'delayed', 'failed'] as const
export type JobState = (typeof JOB_STATES)[number]

/** Where the library has the jobs of a state. */
const PLACES = {
  waiting: ['wait', PAUSED_JOBS, 'prioritized'],
  active: ['active'],
  delayed: ['delayed'],
  failed: ['failed'],
} as const satisfies Readonly<Record<JobState, readonly JobType[]>>

interface InspectedQueues {
  readonly client: QueueClient
  readonly store: Pick<QueueStore, 'summaries' | 'failedJobs' | 'failedQueues' | 'prefixOf'>
  readonly prefix: string
}

const NOT_DONE = ['wait', 'prioritized', 'delayed', 'active', 'failed'] as const

/** Reads the state of queues; changes nothing. */
export function createQueueInspection({ client, store, prefix }: InspectedQueues): QueueInspection {
  return {
    async isUnderWay(name, unique) {
      return (await client.request(name, (queue) => queue.getDeduplicationJobId(unique))) !== null
    },

    async counts(name) {
      const jobCounts = await client.request(name, (queue) =>
        queue.getJobCounts('waiting', PAUSED_JOBS, 'prioritized', 'active', 'delayed', 'failed'),
      )
      const count = (state: string) => jobCounts[state] ?? 0
      return {
        // The library counts the waiting jobs of a paused queue as `paused`.
        waiting: count('waiting') + count('paused') + count('prioritized'),
        active: count('active'),
        delayed: count('delayed'),
        failed: count('failed'),
      }
    },

    async oldestWaiting(name) {
      return client.request(name, async (queue) => {
        const last = ((await queue.getJobCounts('waiting'))['waiting'] ?? 0) - 1
        const [job] = last < 0 ? [] : await queue.getJobs(['waiting'], last, last)
        return job
      })
    },

    failed: (name, from, count) => client.request(name, (queue) => queue.getJobs(['failed'], from, from + count - 1)),

    list: (name, state, from, count) =>
      client.request(name, async (queue) => {
        const places = PLACES[state]
        // Each place has its own range: with several of them, the jobs before count too.
        const skipped = places.length === 1 ? from : 0
        const ids = await queue.getRanges([...places], skipped, from + count - 1, state !== 'failed')
        const page = ids.slice(from - skipped, from - skipped + count)
        return store.summaries(name, store.prefixOf(prefix, name), page)
      }),

    failedWithoutRow: (name, page) =>
      client.request(name, async (queue) => {
        await queue.waitUntilReady() // only then the tables exist
        return store.failedJobs(name, store.prefixOf(prefix, name), page)
      }),

    queuesWithFailedJobs: () =>
      client.request('maintenance', async (queue) => {
        await queue.waitUntilReady() // only then the tables exist
        const found = await store.failedQueues(
          QUEUES.map((name) => ({ queue: name, prefix: store.prefixOf(prefix, name) })),
        )
        return QUEUES.filter((name) => found.includes(name))
      }),

    find: (name, jobId) => client.request(name, (queue) => queue.getJob(jobId)),

    async notDone(name) {
      // The states may be read one after the other; a job that goes back from running to delayed in between is in the second reading.
      const read = () => client.request(name, (queue) => queue.getRanges([...NOT_DONE], 0, -1))
      return [...new Set([...(await read()), ...(await read())])]
    },

    workers: (name) => client.request(name, (queue) => queue.getWorkersCount()),

    async unscheduled(name) {
      const jobs = await client.request(name, (queue) => queue.getJobs(['waiting', 'active', 'delayed'], 0, 1_000))
      return jobs.filter((job) => job.repeatJobKey === undefined).length
    },
  }
}
