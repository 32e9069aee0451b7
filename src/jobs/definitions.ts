import type { JobsOptions } from 'bullmq'
import type { MailKind } from '../persistence/mail/mail-kinds.js'
import type { TextIds } from '../persistence/models/mention.js'
import type { LiveEventRows } from '../persistence/notifications/live-event-sources.js'
import type { FetchableKind, RecordKind, RelayableKind } from '../protocol/entities/registry.js'
import type { QueueName } from './queues/queue-names.js'

/**
 * The definition of a job: its queue, name, options and data. Queues and outbox rows store the name, so it never changes: some names
 * are older than those of their constants (`announce` is `liveEventJob`).
 */
export interface JobDefinition<Queue extends QueueName, Name extends string, Data> {
  readonly queue: Queue
  readonly name: Name
  readonly options: JobsOptions
  /** Raised when workers of earlier versions would misread the data; they put such jobs back. Not set: 1. */
  readonly version?: number | undefined
  /** Never set: carries the payload type to `add` and to the worker. */
  readonly data?: Data
}

export type AnyJob = JobDefinition<QueueName, string, unknown>

export type DataOf<Job> = Job extends JobDefinition<QueueName, string, infer Data> ? Data : never

export function defineJob<Data>() {
  return <Queue extends QueueName, Name extends string>(
    queue: Queue,
    name: Name,
    options: JobsOptions,
    version?: number,
  ): JobDefinition<Queue, Name, Data> => ({ queue, name, options, version })
}

/** Eleven attempts in about five hours; after the last one the job is a dead letter for the operator. */
export const retriedForHours = {
  attempts: 11,
  backoff: { type: 'federation' },
  removeOnComplete: true,
  removeOnFail: { age: 30 * 24 * 3_600, count: 100_000 },
  stackTraceLimit: 3,
} as const satisfies JobsOptions

/** One attempt, and no failed job is kept: a schedule adds the job again, or rows keep the work that the job only starts. */
const withoutRetention = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const satisfies JobsOptions

/** A public message as it was posted. */
export interface PostedEnvelope {
  readonly envelope: string
  /** The network address that posted it; absent: it is not known. */
  readonly source?: string | undefined
  /** The id of the request: 32 hexadecimal digits. */
  readonly trace?: string | undefined
}

/** Public messages that were received together. */
export const receivePublicJob = defineJob<{
  readonly acceptedAt: string
  /** Texts are the envelopes of jobs of earlier versions. */
  readonly messages: readonly (PostedEnvelope | string)[]
  /** Sources and traces of the messages, in jobs of earlier versions. */
  readonly sources?: readonly (string | null)[]
  readonly traces?: readonly (string | null)[]
  /** The message has failed in a batch, and runs without others from now on. */
  readonly alone?: boolean
}>()('inbound', 'receive-public', retriedForHours)

/** Receives messages encrypted for local people. Private-key work must not delay public messages. */
export const receivePrivateJob = defineJob<{
  readonly acceptedAt: string
  readonly messages: readonly (PostedEnvelope & { readonly recipientGuid: string })[]
  readonly alone?: boolean
}>()('inbound-private', 'receive-private', retriedForHours)

/** A record that has to be sent to other pods. */
export type OutgoingRecord =
  | {
      /** A poll is sent with its post. */
      readonly record: Exclude<RecordKind, 'poll'>
      readonly guid: string
    }
  /** The profile of a local person, for all contacts or for one person. */
  | { readonly record: 'profile'; readonly personId: number; readonly to?: number }
  /** The relation of a user to a person, as it was when this was written. */
  | {
      readonly record: 'contact'
      readonly userId: number
      readonly personId: number
      readonly sharing: boolean
      readonly blocking: boolean
    }

/** Determines the recipients of a record, and writes a delivery for each. */
export const dispatchJob = defineJob<OutgoingRecord>()('outbound', 'dispatch', retriedForHours)

/** Comments, likes and votes of remote people on local posts. */
export interface RelayedRecords {
  readonly relays: readonly { readonly record: RelayableKind; readonly guid: string }[]
}

/** Finds the subscribers of the posts, and writes deliveries for a batch of relayables. */
export const dispatchRelaysJob = defineJob<RelayedRecords>()('relay', 'dispatch-relays', retriedForHours)

/** Sends live events about new records. */
export const liveEventJob = defineJob<LiveEventRows>()('notify', 'announce', retriedForHours)

/** Subscribes to the interactions on public posts that were received together. */
export const participateJob = defineJob<{ readonly postGuids: readonly string[] }>()('relay', 'participate', {
  ...retriedForHours,
  priority: 10,
})

/** The job under its former queue, for rows that an earlier version has written. */
export const formerParticipateJob = defineJob<{ readonly postGuids: readonly string[] }>()(
  'outbound-slow',
  'participate',
  participateJob.options,
)

/** Sends the due deliveries of pods; proven pods (docs/pod-states.md) have a queue of their own. */
export const deliverJob = defineJob<{ readonly podIds: readonly number[] }>()('outbound', 'deliver', withoutRetention)
export const deliverToUnprovenPodsJob = defineJob<{ readonly podIds: readonly number[] }>()(
  'outbound-slow',
  'deliver',
  {
    ...withoutRetention,
    priority: 10,
  },
)

/** Checks another pod. Has priority over deliveries, because deliveries to pods that never answer would hold all slots. */
export const checkPodJob = defineJob<{ readonly podId: number }>()('outbound-slow', 'check-pod', withoutRetention)

/** Discovers the person of an address, and stores them. */
export const discoverPersonJob = defineJob<{
  readonly address: string
  /** Moves that were followed to this address, one after the other. */
  readonly movesFollowed?: number | undefined
}>()('fetch', 'discover-person', retriedForHours)

/** Looks up the unverified signers of one host that messages claim; they are in `signer_lookups`. */
export const discoverSignersJob = defineJob<{ readonly host: string }>()(
  'fetch-unproven',
  'discover-signers',
  withoutRetention,
)

/** Discovers a mentioned person, with a lower priority. Protocol faults are not retried. */
export const discoverMentionedJob = defineJob<{
  readonly address: string
  /** A local public text, which is sent to the people it mentions. */
  readonly namedIn?: LocalText
  /** Remote texts, in which the mention is stored; their own pods deliver them. */
  readonly arrivedIn?: TextIds
}>()('fetch', 'discover-mentioned', { ...retriedForHours, priority: 10 })

/** Looks up a person for a search: without a retry, because the user repeats the search. */
export const discoverSearchedJob = defineJob<{ readonly address: string }>()(
  'fetch',
  'discover-searched',
  withoutRetention,
)

/** Fetches the recent public posts of a person who was found by a search; with the lowest priority, and without a retry. */
export const fetchStreamJob = defineJob<{ readonly address: string }>()('fetch', 'fetch-stream', {
  ...withoutRetention,
  priority: 100,
})

/** Where a person is looked up: by their address, or by the page that the pod at a host has of them. */
export type WantedPerson = { readonly address: string } | { readonly host: string; readonly guid: string }

/** A person whom anybody may look up without an account; the page that requests it reloads itself. */
export const lookUpPersonJob = defineJob<WantedPerson>()('fetch-unproven', 'look-up-person', withoutRetention)

export interface LocalText {
  readonly record: 'post' | 'comment'
  readonly guid: string
}

/** A public entity of another pod. */
export interface FetchRequest {
  readonly type: FetchableKind
  readonly guid: string
  /** The source: the pod of the person with this address, or the pod at this host. */
  readonly from: string
  /** The second source, when the first one does not have it. */
  readonly orFrom?: string | undefined
  /** Only an entity of this author is accepted. */
  readonly author?: string | undefined
  /** The entity is stored, but not visible to the author of the message that refers to it: it is fetched as if it were unknown. */
  readonly isUnreadable?: true
  /** An archive refers to it: this pod neither subscribes to it nor follows its links. */
  readonly isForArchive?: true
  /** Length of the chain of references that has led to it. */
  readonly depth: number
  /**
   * Maximum number of further fetches that this fetch may cause, over all levels. Not set: as many as a message may cause at depth 0,
   * none at a greater depth.
   */
  readonly fetchesLeft?: number | undefined
}

/** Fetches a linked entity for an anonymous visitor. */
export const lookUpLinkedJob = defineJob<FetchRequest>()('fetch-unproven', 'look-up-linked', withoutRetention)

export const fetchEntityJob = defineJob<FetchRequest>()('fetch', 'fetch-entity', retriedForHours)

/** Fetches an entity to which a text links. */
export const fetchLinkedJob = defineJob<FetchRequest>()('fetch', 'fetch-linked', { ...retriedForHours, priority: 10 })

/** Finds the pods that have to be checked again. */
export const checkPodsJob = defineJob<object>()('maintenance', 'check-pods', withoutRetention)

/** Lets moderators decide about sign-ups when none of them has been active for long. */
export const checkStaffActivityJob = defineJob<object>()('maintenance', 'check-attendance', withoutRetention)

/** Ends rules for pods whose time is over. */
export const endPodRulesJob = defineJob<object>()('maintenance', 'end-pod-rules', withoutRetention)

/** Ends rules for networks whose time is over. */
export const endNetworkRulesJob = defineJob<object>()('maintenance', 'end-network-rules', withoutRetention)

/** Restricts people of pods with a rule whom no operation has restricted. */
export const restrictRemainingPeopleJob = defineJob<object>()('maintenance', 'restrict-missed-people', withoutRetention)

/** Hides or shows content of people whose operation has lost its job. */
export const continueContentChangeJob = defineJob<object>()('maintenance', 'change-missed-content', withoutRetention)

/** Creates the notifications of birthdays. */
export const birthdaysJob = defineJob<object>()('maintenance', 'birthdays', withoutRetention)

/** Resumes messages that wait for these entities, beyond those that the storing transaction has resumed. */
export const resumeWaitingJob = defineJob<{ readonly entityKeys: readonly string[] }>()(
  'maintenance',
  'wake-waiting',
  retriedForHours,
)

/** Moves the interactions of a person who has moved to another account, beyond those that were moved with the account. */
export const moveInteractionsJob = defineJob<{ readonly personId: number }>()(
  'maintenance',
  'move-interactions',
  retriedForHours,
)

/** Deletes soft-deleted posts with their interactions. */
export const purgePostsJob = defineJob<object>()('maintenance', 'purge-posts', withoutRetention)

/** Runs long work of a moderator or admin in chunks. */
export const runBackgroundTaskJob = defineJob<{ readonly operationId: number }>()(
  'maintenance',
  'run-operation',
  retriedForHours,
)

/** Groups new public content that has a text, link, photo or set of mentions in common. */
export const findClustersJob = defineJob<object>()('maintenance', 'find-clusters', withoutRetention)

/** Closes accounts whose grace period is over. */
export const closeAccountsJob = defineJob<object>()('maintenance', 'close-accounts', withoutRetention)

/** Warns the owners of unused accounts, and closes these accounts. */
export const closeInactiveJob = defineJob<object>()('maintenance', 'close-inactive', withoutRetention)

/** Counts the pictures of the store. */
export const countPicturesJob = defineJob<object>()('maintenance', 'count-pictures', withoutRetention)

/** Deletes the picture files of accounts that have moved away, when their time is over. */
export const deleteMovedFilesJob = defineJob<object>()('maintenance', 'delete-moved-files', withoutRetention)

/** Deletes expired rows. */
export const pruneJob = defineJob<object>()('maintenance', 'prune', withoutRetention)

/** A picture that a web process has received, and its use. */
export interface Upload {
  /** Guid of the photo. */
  readonly guid: string
  /** The name of the picture in the folder of uploads. */
  readonly file: string
  /** The name of the sizes of the picture; the extension gives the format. */
  readonly name: string
  readonly userId: number
  readonly use: PhotoUse
  /** The aspects to which a published photo is visible. */
  readonly aspectIds: readonly number[]
  /** The description of the photo. */
  readonly altText?: string
}

/** Kept for a later post, used as profile picture, or published to aspects. */
export type PhotoUse = 'pending' | 'profile' | 'published'

export interface ForwardedEnvelope {
  /** The envelope as it was received; a private one is encrypted for the old identity. */
  readonly envelope: string
  readonly podId: number
  /** The people who have the keys of a private envelope. */
  readonly encryptedFor?: { readonly oldId: number; readonly newestId: number }
}

/** Forwards an envelope of another author, unchanged: the author of its parent has moved to that pod. */
export const forwardEnvelopeJob = defineJob<ForwardedEnvelope>()('outbound-slow', 'forward-envelope', retriedForHours)

/** Creates a photo from an upload. A user waits for it, so it is retried soon or not at all. */
export const makePhotoJob = defineJob<Upload>()('photos', 'make-photo', {
  ...retriedForHours,
  attempts: 3,
  backoff: { type: 'fixed', delay: 1_000 },
})

/** Creates the sizes that a picture of a pod that was taken over lacks, from its original. */
export const makeMissingSizesJob = defineJob<{ readonly name: string }>()('photos', 'make-missing-sizes', {
  ...retriedForHours,
  attempts: 3,
  backoff: { type: 'fixed', delay: 1_000 },
})

/** Creates the copies of a reported picture that moderators see. A moderator waits for it. */
export const previewPictureJob = defineJob<{ readonly photoGuid: string }>()('photos', 'preview-picture', {
  ...retriedForHours,
  attempts: 3,
  backoff: { type: 'fixed', delay: 1_000 },
})

/** Deletes the files of deleted photos; a trigger of the database writes its outbox row (migration 0022). */
export const removePhotoFilesJob = defineJob<{ readonly names: readonly string[] }>()(
  'photos',
  'remove-photo-files',
  retriedForHours,
)

/** A mail by its kind and the ids of its subject. The worker reads the rest, and creates tokens, when it sends. */
export interface MailData {
  /** Id of the row of `mails`. */
  readonly mailId: number
  readonly kind: MailKind
  readonly userId?: number | undefined
  readonly signUpId?: number | undefined
  /** Id of the row of `email_undos`. */
  readonly undoId?: number | undefined
  readonly notificationId?: number | undefined
  readonly conversationId?: number | undefined
}

/** Sends one mail. Its attempts are counted in `mails`, because they are further apart than those of other jobs. */
export const sendMailJob = defineJob<MailData>()('mail', 'send-mail', retriedForHours)

/** Enqueues the immediate mails about notifications and messages, two minutes after them. */
export const notificationMailsJob = defineJob<{
  readonly notifications?: readonly number[]
  readonly messages?: readonly number[]
}>()('mail', 'enqueue-notices', retriedForHours)

/** Enqueues the daily summaries that are due. */
export const digestsJob = defineJob<object>()('maintenance', 'digests', withoutRetention)

/** Looks up the account for which a password reset was requested, by the typed text. */
export const resetPasswordJob = defineJob<{ readonly typed: string }>()('mail', 'reset-password', retriedForHours)

/** Only finishes its outbox row, which shows that a worker serves the queue. */
export function probeJob<Queue extends QueueName>(queue: Queue): JobDefinition<Queue, 'probe', object> {
  return defineJob<object>()(queue, 'probe', withoutRetention)
}

/** Milliseconds from a failed attempt to the next one: 15 s at first, longer each time, with jitter so that a burst is spread. */
export function federationBackoff(attemptsMade: number, random = Math.random): number {
  const n = attemptsMade - 1
  return Math.round((n ** 4 + 15 + random() * 9 * (n + 1)) * 1_000)
}
