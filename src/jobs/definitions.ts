import type { JobsOptions } from 'bullmq'
import type { QueueName } from './queue-names.js'

/** Everything that is said about a job once: where it waits, what it is called, how often it is tried, what it carries. */
export interface JobDefinition<Queue extends QueueName, Name extends string, Data> {
  readonly queue: Queue
  readonly name: Name
  readonly options: JobsOptions
  /** Never set: carries the payload type to `enqueue` and to the worker. */
  readonly data?: Data
}

export type AnyJob = JobDefinition<QueueName, string, unknown>

export type DataOf<Job> = Job extends JobDefinition<QueueName, string, infer Data> ? Data : never

/** One handler for each of these jobs; leaving one out, or adding a stranger, does not compile. */
export type Handlers<Jobs extends AnyJob, Pod, Work> = {
  readonly [Job in Jobs as Job['name']]: (
    pod: Pod,
    work: Work & { readonly data: DataOf<Job> },
    deadline: AbortSignal,
  ) => Promise<void>
}

export function defineJob<Data>() {
  return <Queue extends QueueName, Name extends string>(
    queue: Queue,
    name: Name,
    options: JobsOptions,
  ): JobDefinition<Queue, Name, Data> => ({ queue, name, options })
}

/** Eleven tries in about five hours; what still fails then is a dead letter for the operator. */
export const patient = {
  attempts: 11,
  backoff: { type: 'federation' },
  removeOnComplete: true,
  removeOnFail: { age: 30 * 24 * 3_600, count: 100_000 },
  stackTraceLimit: 3,
} as const satisfies JobsOptions

/** Its schedule brings it back, so a failure is nothing to keep. */
const periodic = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const satisfies JobsOptions

/** Find out who has an address, and remember it. */
export const discoverPersonJob = defineJob<{ readonly address: string }>()('fetch', 'discover-person', patient)

/** The same for somebody who is only mentioned: those who matter go first, and a failure is the end of it. */
export const discoverMentionedJob = defineJob<{ readonly address: string }>()('fetch', 'discover-mentioned', {
  ...patient,
  priority: 10,
})

/** Something public that another pod has. */
export interface WantedEntity {
  readonly type: 'post' | 'poll'
  readonly guid: string
  /** Who is asked: the pod of the person with this address, or the pod at this host. */
  readonly from: string
  /** Only something of this author will do. */
  readonly author?: string | undefined
  /** How many things have led to this one. */
  readonly depth: number
}

export const fetchEntityJob = defineJob<WantedEntity>()('fetch', 'fetch-entity', patient)

/** The same for something that is only linked. */
export const fetchLinkedJob = defineJob<WantedEntity>()('fetch', 'fetch-linked', { ...patient, priority: 10 })

/** Add again what a crash or an emptied store left behind. */
export const sweepJob = defineJob<object>()('maintenance', 'sweep', periodic)

/** Delete what was kept long enough. */
export const pruneJob = defineJob<object>()('maintenance', 'prune', periodic)

/** Does nothing but finish its outbox row: whoever waits for that knows that a worker serves the queue. */
export function probeJob<Queue extends QueueName>(queue: Queue): JobDefinition<Queue, 'probe', object> {
  return defineJob<object>()(queue, 'probe', { attempts: 1, removeOnComplete: true, removeOnFail: true })
}

/** The wait after a failure: 15 s at first, longer each time, with jitter so that a burst does not come back as a burst. */
export function federationBackoff(attemptsMade: number, random = Math.random): number {
  const n = attemptsMade - 1
  return Math.round((n ** 4 + 15 + random() * 9 * (n + 1)) * 1_000)
}
