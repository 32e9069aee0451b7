import type { Job, Queue } from 'bullmq'
import type { FailedJobCounts, FailedJobPage, FailedJobSelection } from '../bullmq/failed-jobs.js'
import type { JobSummary } from '../bullmq/job-summaries.js'
import { PAUSED_JOBS } from '../bullmq/paused-jobs.js'
import type { OpenQueue, QueueClient } from './queue-client.js'
import { QUEUES, type QueueName } from './queue-names.js'
import type { QueueStore } from './queue-store.js'

export interface QueueCounts {
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
}

export interface QueueCountsWithWorkers extends QueueCounts {
  /** Workers in all processes. */
  readonly workers: number
  /** Waiting, running and delayed jobs that no schedule has made. */
  readonly unscheduled: number
}

export interface QueueInspection {
  /** Whether a job that was added under this deduplication key waits or is running. */
  isUnderWay(queue: QueueName, deduplicationKey: string): Promise<boolean>
  counts(queue: QueueName): Promise<QueueCounts>
  /** The jobs and workers of all queues, with one statement. Undefined: this store counts one queue after the other. */
  countAllWithWorkers(): Promise<ReadonlyMap<QueueName, QueueCountsWithWorkers> | undefined>
  /** The oldest of the next jobs in line: with a priority and without one, also while the queue is paused. */
  oldestWaiting(queue: QueueName): Promise<Job | undefined>
  /** Lists failed jobs with their data, the latest first. */
  failed(queue: QueueName, from: number, count: number): Promise<readonly Job[]>
  /** Lists jobs without their data: failed ones latest first, others in the order in which they run. */
  list(queue: QueueName, state: JobState, from: number, count: number): Promise<readonly JobSummary[]>
  /** Lists the ids at these places of the list of a state. */
  listIds(queue: QueueName, state: JobState, from: number, end: number): Promise<readonly string[]>
  /** The list that a job is in; undefined: none of them. */
  stateOf(queue: QueueName, jobId: string): Promise<JobState | undefined>
  /** Lists failed jobs that have no outbox row, without their data, from a position on. */
  failedWithoutRow(queue: QueueName, page: FailedJobPage): Promise<readonly JobSummary[]>
  /** Counts failed jobs that have no outbox row, by error and hour. */
  countFailedWithoutRow(queue: QueueName, selection: FailedJobSelection): Promise<FailedJobCounts>
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

interface InspectedQueues {
  readonly client: QueueClient
  readonly store: Pick<
    QueueStore,
    'summaries' | 'nextJobs' | 'failedJobs' | 'failedQueues' | 'countFailedJobs' | 'countQueues' | 'prefixOf'
  >
  readonly prefix: string
}

/** The only queue with schedules. */
export const SCHEDULED_QUEUE = 'maintenance'

const NOT_DONE = ['wait', 'prioritized', 'delayed', 'active', 'failed'] as const

/** The names of the states of waiting jobs in the library. Its types leave out the state in a paused queue. */
const WAITING_STATES: readonly string[] = ['waiting', 'prioritized', PAUSED_JOBS]

type JobLists = Pick<Queue, 'getRanges' | 'getJobCounts'>

/** The ids of the jobs of a state at these places of its list. */
async function listIds(queue: JobLists, state: JobState, from: number, end: number): Promise<readonly string[]> {
  if (state === 'active')
    return listInRunOrder(queue, 'active', { count: await countInList(queue, 'active'), from, end })
  if (state !== 'waiting') return queue.getRanges([state], from, end - 1, state !== 'failed')
  const unprioritizedCount = await countInList(queue, 'wait')
  const first = await listInRunOrder(queue, 'wait', { count: unprioritizedCount, from, end })
  if (end <= unprioritizedCount) return first
  const prioritized = await queue.getRanges(
    ['prioritized'],
    Math.max(0, from - unprioritizedCount),
    end - unprioritizedCount - 1,
    true,
  )
  return [...first, ...prioritized]
}

/**
 * The ids of jobs without a priority, in the order in which they run. They are read newest first and reversed: in the ascending order
 * of the library, a part of the list has other jobs with PostgreSQL than with Redis.
 */
async function listInRunOrder(
  queue: JobLists,
  list: 'wait' | 'active',
  { count, from, end }: { readonly count: number; readonly from: number; readonly end: number },
): Promise<readonly string[]> {
  if (from >= count) return []
  return (await queue.getRanges([list], count - Math.min(end, count), count - from - 1)).toReversed()
}

async function countInList(queue: JobLists, list: 'wait' | 'active'): Promise<number> {
  const counts = await queue.getJobCounts(...(list === 'wait' ? (['wait', PAUSED_JOBS] as const) : ['active' as const]))
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function toQueueCounts(jobCounts: Readonly<Record<string, number>>): QueueCounts {
  const count = (state: string) => jobCounts[state] ?? 0
  return {
    // The library counts the waiting jobs of a paused queue as `paused`.
    waiting: count('waiting') + count('paused') + count('prioritized'),
    active: count('active'),
    delayed: count('delayed'),
    failed: count('failed'),
  }
}

/** Reads the state of queues; changes nothing. */
export function createQueueInspection({ client, store, prefix }: InspectedQueues): QueueInspection {
  return {
    async isUnderWay(name, deduplicationKey) {
      return (await client.request(name, (queue) => queue.getDeduplicationJobId(deduplicationKey))) !== null
    },

    async counts(name) {
      const jobCounts = await client.request(name, (queue) =>
        queue.getJobCounts('waiting', PAUSED_JOBS, 'prioritized', 'active', 'delayed', 'failed'),
      )
      return toQueueCounts(jobCounts)
    },

    async countAllWithWorkers() {
      const { countQueues } = store
      if (countQueues === undefined) return undefined
      const queueCounts = await whenReady(SCHEDULED_QUEUE, () => countQueues(QUEUES, SCHEDULED_QUEUE))
      return new Map(queueCounts.map(({ queue, ...counts }) => [queue as QueueName, counts])) // one of QUEUES
    },

    async oldestWaiting(name) {
      return whenReady(name, async (queue) => {
        const ids = await store.nextJobs(name, store.prefixOf(prefix, name))
        const jobs: readonly (Job | undefined)[] = await Promise.all(ids.map((id) => queue.getJob(id)))
        return jobs
          .filter((job) => job !== undefined)
          .toSorted((one, other) => one.timestamp - other.timestamp)
          .at(0)
      })
    },

    failed: (name, from, count) => client.request(name, (queue) => queue.getJobs(['failed'], from, from + count - 1)),

    list: (name, state, from, count) =>
      client.request(name, async (queue) => {
        const ids = await listIds(queue, state, from, from + count)
        return store.summaries(name, store.prefixOf(prefix, name), ids)
      }),

    listIds: (name, state, from, end) => client.request(name, (queue) => listIds(queue, state, from, end)),

    async stateOf(name, jobId) {
      const state = await client.request(name, (queue) => queue.getJobState(jobId))
      return JOB_STATES.find((each) => each === (WAITING_STATES.includes(state) ? 'waiting' : state))
    },

    failedWithoutRow: (name, page) => whenReady(name, () => store.failedJobs(name, store.prefixOf(prefix, name), page)),

    countFailedWithoutRow: (name, selection) =>
      whenReady(name, () => store.countFailedJobs(name, store.prefixOf(prefix, name), selection)),

    queuesWithFailedJobs: () =>
      whenReady('maintenance', async () => {
        const failedQueues = await store.failedQueues(
          QUEUES.map((name) => ({ queue: name, prefix: store.prefixOf(prefix, name) })),
        )
        return QUEUES.filter((name) => failedQueues.includes(name))
      }),

    find: (name, jobId) => client.request(name, (queue) => queue.getJob(jobId)),

    async notDone(name) {
      // The states may be read one after the other; a job that changes from running to delayed between the two is in the second reading.
      const read = () => client.request(name, (queue) => queue.getRanges([...NOT_DONE], 0, -1))
      return [...new Set([...(await read()), ...(await read())])]
    },

    workers: (name) => client.request(name, (queue) => queue.getWorkersCount()),

    async unscheduled(name) {
      const jobs = await client.request(name, (queue) => queue.getJobs(['waiting', 'active', 'delayed'], 0, 1_000))
      return jobs.filter((job) => job.repeatJobKey === undefined).length
    },
  }

  /** Runs a statement of our own: the tables exist only once the queue is ready. */
  function whenReady<Result>(name: QueueName, read: (queue: OpenQueue) => Promise<Result>): Promise<Result> {
    return client.request(name, async (queue) => {
      await queue.waitUntilReady()
      return read(queue)
    })
  }
}
