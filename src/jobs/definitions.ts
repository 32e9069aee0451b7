import type { JobsOptions } from 'bullmq'
import type { TextIds } from '../persistence/models/mention.js'
import type { AnnouncedRows } from '../persistence/notifications/announcements.js'
import { QUEUES, type QueueName } from './queues/queue-names.js'

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

/** Public messages that came together: envelopes as they were posted. */
export const receivePublicJob = defineJob<{
  readonly acceptedAt: string
  readonly messages: readonly string[]
  /** The network address that posted each message; absent: none is known. */
  readonly sources?: readonly (string | null)[]
  /** It has failed among others, and runs without them from now on. */
  readonly alone?: boolean
}>()('inbound', 'receive-public', patient)

/** The same for messages that were encrypted for people of this pod; private keys must not delay public traffic. */
export const receivePrivateJob = defineJob<{
  readonly acceptedAt: string
  readonly messages: readonly {
    readonly recipientGuid: string
    readonly envelope: string
    readonly source?: string | undefined
  }[]
  readonly alone?: boolean
}>()('inbound-private', 'receive-private', patient)

/** A record whose coming has to be told to other pods. */
export type OutgoingRecord =
  | {
      readonly record:
        | 'post'
        | 'photo'
        | 'comment'
        | 'like'
        | 'poll_participation'
        | 'participation'
        | 'conversation'
        | 'message'
      readonly guid: string
    }
  /** Of one of our people; to all contacts, or to one person. */
  | { readonly record: 'profile'; readonly personId: number; readonly to?: number }
  /** What is between a user and a person, as it was when this was written. */
  | {
      readonly record: 'contact'
      readonly userId: number
      readonly personId: number
      readonly sharing: boolean
      readonly blocking: boolean
    }

/** Finds out who should hear of a record, and writes a delivery for each. */
export const dispatchJob = defineJob<OutgoingRecord>()('outbound', 'dispatch', patient)

/** Comments, likes and votes of people of other pods under local posts. */
export interface RelayedRecords {
  readonly relays: readonly { readonly record: 'comment' | 'like' | 'poll_participation'; readonly guid: string }[]
}

/** Finds the subscribers of the posts, and writes deliveries for a batch of relayables. */
export const dispatchRelaysJob = defineJob<RelayedRecords>()('relay', 'dispatch-relays', patient)

/** Lets those who listen know of what has been written. */
export const announceJob = defineJob<AnnouncedRows>()('notify', 'announce', patient)

/** Asks the authors of public posts, of any number that came together, for what will be said under them. */
export const participateJob = defineJob<{ readonly postGuids: readonly string[] }>()('relay', 'participate', {
  ...patient,
  priority: 10,
})

/** The work is in rows and the job only starts it, so that a failed job is not kept. */
const startOnly = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const satisfies JobsOptions

/** Sends one pod what is due: pods that have proven to answer have a lane of their own. */
export const deliverJob = defineJob<{ readonly podId: number }>()('outbound', 'deliver', startOnly)
export const deliverSlowlyJob = defineJob<{ readonly podId: number }>()('outbound-slow', 'deliver', {
  ...startOnly,
  priority: 10,
})

/** Looks how another pod is. Goes before deliveries: pods that never answer hold all slots as long as there are new ones. */
export const checkPodJob = defineJob<{ readonly podId: number }>()('outbound-slow', 'check-pod', startOnly)

/** Find out who has an address, and remember it. */
export const discoverPersonJob = defineJob<{ readonly address: string }>()('fetch', 'discover-person', patient)

/** Looks up the signers at one host that messages name and no signature has proven; which ones is in `signer_lookups`. */
export const discoverSignersJob = defineJob<{ readonly host: string }>()(
  'fetch-unproven',
  'discover-signers',
  startOnly,
)

/** The same for somebody who is only mentioned: those who matter go first, and a failure is the end of it. */
export const discoverMentionedJob = defineJob<{
  readonly address: string
  /** A public text of our own people, which goes to whoever it names. */
  readonly namedIn?: NamingText
  /** Texts of other pods, which send them themselves: here they only show whom they name. */
  readonly arrivedIn?: TextIds
}>()('fetch', 'discover-mentioned', { ...patient, priority: 10 })

/** The same for somebody who is searched for: whoever asks looks for a moment, and asks again if they still want to know. */
export const discoverSearchedJob = defineJob<{ readonly address: string }>()('fetch', 'discover-searched', startOnly)

/** Fetch the recent public posts of a person who was found by a search; behind everything else, and a failure is the end of it. */
export const fetchStreamJob = defineJob<{ readonly address: string }>()('fetch', 'fetch-stream', {
  ...startOnly,
  priority: 100,
})

/** Where a person is looked up: by their address, or by the page that the pod at a host has of them. */
export type WantedPerson = { readonly address: string } | { readonly host: string; readonly guid: string }

/** A person whom anybody may look up without an account; the page that requests it reloads itself. */
export const lookUpPersonJob = defineJob<WantedPerson>()('fetch-unproven', 'look-up-person', startOnly)

export interface NamingText {
  readonly record: 'post' | 'comment'
  readonly guid: string
}

/** Something public that another pod has. */
export interface WantedEntity {
  readonly type: 'post' | 'poll' | 'comment'
  readonly guid: string
  /** Who is asked: the pod of the person with this address, or the pod at this host. */
  readonly from: string
  /** Who is asked when that one does not have it. */
  readonly orFrom?: string | undefined
  /** Only something of this author will do. */
  readonly author?: string | undefined
  /** It is here already, but the author of what refers to it does not receive it: it is fetched as if it were unknown. */
  readonly isUnreadable?: true
  /** How many things have led to this one. */
  readonly depth: number
  /** How many more fetches this one may cause, all levels together; not set: as for the first of a message, below it none. */
  readonly fetchesLeft?: number | undefined
}

/** Something linked that anybody may look up without an account. */
export const lookUpLinkedJob = defineJob<WantedEntity>()('fetch-unproven', 'look-up-linked', startOnly)

export const fetchEntityJob = defineJob<WantedEntity>()('fetch', 'fetch-entity', patient)

/** The same for something that is only linked. */
export const fetchLinkedJob = defineJob<WantedEntity>()('fetch', 'fetch-linked', { ...patient, priority: 10 })

/** Find the pods that somebody should look at again. */
export const checkPodsJob = defineJob<object>()('maintenance', 'check-pods', periodic)

/** Tell of the birthdays of the day. */
export const birthdaysJob = defineJob<object>()('maintenance', 'birthdays', periodic)

/** Resume messages that wait for these things, beyond those that the transaction which stored them has resumed. */
export const wakeWaitingJob = defineJob<{ readonly things: readonly string[] }>()(
  'maintenance',
  'wake-waiting',
  patient,
)

/** Delete soft-deleted posts with what is under them. */
export const purgePostsJob = defineJob<object>()('maintenance', 'purge-posts', periodic)

/** Delete what was kept long enough. */
export const pruneJob = defineJob<object>()('maintenance', 'prune', periodic)

/** A picture that a web process has taken in, and what is to become of it. */
export interface Upload {
  /** Of the photo. */
  readonly guid: string
  /** Where it lies, in the folder of uploads. */
  readonly file: string
  /** Under which its sizes will be found; the ending says what it is. */
  readonly name: string
  readonly userId: number
  readonly use: PhotoUse
  /** Whom a published one is for. */
  readonly aspectIds: readonly number[]
  /** What the photo shows, in words. */
  readonly altText?: string
}

/** Kept until it becomes part of a post, shown as the picture of its owner, or given to some of their contacts. */
export type PhotoUse = 'pending' | 'profile' | 'published'

/** Makes a photo of an upload. Somebody waits for it, so what fails is tried again soon or not at all. */
export const makePhotoJob = defineJob<Upload>()('photos', 'make-photo', {
  ...patient,
  attempts: 3,
  backoff: { type: 'fixed', delay: 1_000 },
})

/** Deletes the files of photos that are gone; the database asks for it itself (migration 0022). */
export const removePhotoFilesJob = defineJob<{ readonly names: readonly string[] }>()(
  'photos',
  'remove-photo-files',
  patient,
)

/** Does nothing but finish its outbox row: whoever waits for that knows that a worker serves the queue. */
export function probeJob<Queue extends QueueName>(queue: Queue): JobDefinition<Queue, 'probe', object> {
  return defineJob<object>()(queue, 'probe', { attempts: 1, removeOnComplete: true, removeOnFail: true })
}

/** Every job that is added to a queue. Their options are found here by queue and name: see job-options.ts. */
export const JOB_DEFINITIONS: readonly AnyJob[] = [
  receivePublicJob,
  receivePrivateJob,
  dispatchJob,
  dispatchRelaysJob,
  announceJob,
  participateJob,
  deliverJob,
  deliverSlowlyJob,
  checkPodJob,
  discoverPersonJob,
  discoverSignersJob,
  discoverMentionedJob,
  discoverSearchedJob,
  fetchStreamJob,
  lookUpPersonJob,
  lookUpLinkedJob,
  fetchEntityJob,
  fetchLinkedJob,
  checkPodsJob,
  birthdaysJob,
  wakeWaitingJob,
  purgePostsJob,
  pruneJob,
  makePhotoJob,
  removePhotoFilesJob,
  // For rows that an earlier version has written: the job has another queue now.
  { ...participateJob, queue: 'outbound-slow' },
  ...QUEUES.map(probeJob),
]

/** The wait after a failure: 15 s at first, longer each time, with jitter so that a burst does not come back as a burst. */
export function federationBackoff(attemptsMade: number, random = Math.random): number {
  const n = attemptsMade - 1
  return Math.round((n ** 4 + 15 + random() * 9 * (n + 1)) * 1_000)
}
