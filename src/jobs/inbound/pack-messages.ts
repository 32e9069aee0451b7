import type { Pod } from '../../pod/pod.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import { type DataOf, receivePrivateJob, receivePublicJob } from '../definitions.js'
import { groupCommit } from '../group-commit.js'
import { QueueUnavailable } from '../queues/queue-unavailable.js'
import { type Backlog, type BacklogLimits, openBacklog } from './inbound-backlog.js'
import { RECEIVE_LIMITS } from './limits.js'
import { type NetworkSource, networkOf } from './source-shares.js'

/** An envelope with the network address that posted it. */
interface PublicMessage {
  readonly envelope: string
  readonly source: string | undefined
  readonly trace: string | undefined
}
type PrivateMessage = DataOf<typeof receivePrivateJob>['messages'][number]

/** Packs received messages into jobs. Both promises resolve once the queue has acknowledged the job of the message. */
export interface Packing extends Pick<Backlog, 'refusalOf' | 'hold' | 'facts' | 'close'> {
  acceptPublic(envelope: string, source: NetworkSource, trace?: string): Promise<void>
  acceptPrivate(message: PrivateMessage, source: NetworkSource): Promise<void>
}

export interface PackingLimits extends BacklogLimits {
  readonly acknowledgedMs: number
}

/**
 * A second job is added beside one that is not acknowledged yet only with so many messages: every job costs Redis and the two
 * processes half a millisecond. Fewer messages wait until the first job is acknowledged.
 */
const SECOND_JOB_MIN_MESSAGES = 32

/**
 * Makes jobs larger under load. With small jobs their overhead would use up the machine long before the messages do, and every
 * message would wait longer than these milliseconds.
 */
const WHILE_BUSY = { after: 12, slow: 2, enough: 48, ms: 8 }

/** A priority: jobs with one come after all jobs without. */
const LOW_PRIORITY = 10

/** Jobs of large messages that are added at a time; a second one would take the connections that small messages need. */
const MAX_CONCURRENT_LARGE_JOBS = 1

/** Messages that are received together share a job. A source over its share is packed apart, in jobs that come later. */
export function openPacking(
  pod: Pick<Pod, 'jobs' | 'config' | 'now'>,
  limits: PackingLimits = { ...RECEIVE_LIMITS, bytes: pod.config.inboundBytes },
): Packing {
  const backlog = openBacklog(pod.jobs, limits)
  const packPublic = (priority?: number, atOnce?: number) =>
    groupCommit(groups(limits, bytesOf, atOnce), (messages: readonly PublicMessage[]) =>
      backlog.add('inbound', { messages: messages.length, bytes: sum(messages.map(bytesOf)) }, () =>
        pod.jobs.enqueue(receivePublicJob, { acceptedAt: pod.now().toISOString(), ...jobData(messages) }, { priority }),
      ),
    )
  const packPrivate = (priority?: number, atOnce?: number) =>
    groupCommit(groups(limits, bytesOf, atOnce), (messages: readonly PrivateMessage[]) =>
      backlog.add('inbound-private', { messages: messages.length, bytes: sum(messages.map(bytesOf)) }, () =>
        pod.jobs.enqueue(receivePrivateJob, { acceptedAt: pod.now().toISOString(), messages }, { priority }),
      ),
    )
  // Large messages are jobs of their own and take long: small ones must not wait behind them.
  const publicly = {
    small: { together: packPublic(), apart: packPublic(LOW_PRIORITY) },
    large: {
      together: packPublic(undefined, MAX_CONCURRENT_LARGE_JOBS),
      apart: packPublic(LOW_PRIORITY, MAX_CONCURRENT_LARGE_JOBS),
    },
  }
  const privately = {
    small: { together: packPrivate(), apart: packPrivate(LOW_PRIORITY) },
    large: {
      together: packPrivate(undefined, MAX_CONCURRENT_LARGE_JOBS),
      apart: packPrivate(LOW_PRIORITY, MAX_CONCURRENT_LARGE_JOBS),
    },
  }

  function groupFor<Line>(
    lines: Readonly<Record<'small' | 'large', Readonly<Record<'together' | 'apart', Line>>>>,
    source: NetworkSource,
    bytes: number,
  ): Line {
    const size = bytes > RECEIVE_LIMITS.bytesPerJob ? 'large' : 'small'
    return lines[size][backlog.isApart(source, bytes) ? 'apart' : 'together']
  }

  return {
    ...backlog,
    acceptPublic: (envelope, source, trace) => {
      const message = { envelope, source: networkOf(source), trace }
      return groupFor(publicly, source, bytesOf(message))([message])
    },
    acceptPrivate: (message, source) =>
      groupFor(privately, source, bytesOf(message))([withSource(message, networkOf(source))]),
  }
}

function jobData(
  messages: readonly PublicMessage[],
): Pick<DataOf<typeof receivePublicJob>, 'messages' | 'sources' | 'traces'> {
  const sources = messages.map(({ source }) => source ?? null)
  const traces = messages.map(({ trace }) => trace ?? null)
  return {
    messages: messages.map(({ envelope }) => envelope),
    ...(sources.some((source) => source !== null) && { sources }),
    ...(traces.some((trace) => trace !== null) && { traces }),
  }
}

function withSource({ recipientGuid, envelope, trace }: PrivateMessage, source: string | undefined): PrivateMessage {
  return { recipientGuid, envelope, ...(source !== undefined && { source }), ...(trace !== undefined && { trace }) }
}

function groups<Message>(
  { acknowledgedMs }: PackingLimits,
  sizeOf: (message: Message) => number,
  atOnce: number = RECEIVE_LIMITS.jobsUnderWay,
) {
  return {
    atOnce,
    enough: SECOND_JOB_MIN_MESSAGES,
    growth: WHILE_BUSY,
    items: RECEIVE_LIMITS.messagesPerJob,
    size: RECEIVE_LIMITS.bytesPerJob,
    sizeOf,
    // Covers the wait for a group as well as the request to the queue.
    timeLimit: {
      ms: acknowledgedMs,
      error: () => new QueueUnavailable('The queue did not accept the message in time.'),
    },
  }
}

function bytesOf({ envelope }: { readonly envelope: string }): number {
  return envelopeBytes(envelope)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
