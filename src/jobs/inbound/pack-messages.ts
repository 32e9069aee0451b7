import { RECEIVE_LIMITS } from '../../limits.js'
import type { Pod } from '../../pod/pod.js'
import { type DataOf, receivePrivateJob, receivePublicJob } from '../definitions.js'
import { groupCommit } from '../group-commit.js'
import { QueueUnavailable } from '../queues/queue-unavailable.js'
import { type Backlog, type BacklogLimits, neighbourhoodOf, openBacklog, type Source } from './inbound-backlog.js'

/** An envelope with the network address that posted it. */
interface PublicMessage {
  readonly envelope: string
  readonly source: string | undefined
}
type PrivateMessage = DataOf<typeof receivePrivateJob>['messages'][number]

/** The way from the door to the queue. Both promises resolve once the queue has acknowledged the job with the message in it. */
export interface Packing extends Pick<Backlog, 'refusalOf' | 'hold' | 'facts' | 'close'> {
  acceptPublic(envelope: string, source: Source): Promise<void>
  acceptPrivate(message: PrivateMessage, source: Source): Promise<void>
}

export interface PackingLimits extends BacklogLimits {
  readonly acknowledgedMs: number
}

/**
 * A second job sets out beside one that is on its way only with so many messages: whatever is in it, a job costs Redis and the
 * processes at its two ends half a millisecond. Fewer wait until the first one has arrived, a moment later.
 */
const WORTH_A_SECOND_JOB = 32

/**
 * A pod that is busy would be busy with nothing but jobs if they stayed small, long before there are too many messages for it, and
 * all of them would wait longer than these. One that is not busy takes a job of this size in less time.
 */
const WHILE_BUSY = { after: 12, slow: 2, enough: 48, ms: 8 }

/** The first that are behind all others when the queue hands out work; messages that nobody keeps waiting have no priority. */
const APART = 10

/** Jobs with one large message on their way to the queue; a second one would take the connections that small messages need. */
const LARGE_AT_ONCE = 1

/** Messages that come together share a job; whoever fills the queue is packed apart, in jobs that let the others pass. */
export function openPacking(
  pod: Pick<Pod, 'jobs' | 'config' | 'now'>,
  limits: PackingLimits = { ...RECEIVE_LIMITS, bytes: pod.config.inboundBytes },
): Packing {
  const backlog = openBacklog(pod.jobs, limits)
  const packPublic = (priority?: number, atOnce?: number) =>
    groupCommit(groups(limits, lengthOfPublic, atOnce), (messages: readonly PublicMessage[]) =>
      backlog.add('inbound', { messages: messages.length, bytes: sum(messages.map(lengthOfPublic)) }, () =>
        pod.jobs.enqueue(receivePublicJob, { acceptedAt: pod.now().toISOString(), ...inJob(messages) }, { priority }),
      ),
    )
  const packPrivate = (priority?: number, atOnce?: number) =>
    groupCommit(groups(limits, lengthOfPrivate, atOnce), (messages: readonly PrivateMessage[]) =>
      backlog.add('inbound-private', { messages: messages.length, bytes: sum(messages.map(lengthOfPrivate)) }, () =>
        pod.jobs.enqueue(receivePrivateJob, { acceptedAt: pod.now().toISOString(), messages }, { priority }),
      ),
    )
  // Large messages are jobs of their own and take long: in one line with small ones they would keep those waiting.
  const publicly = {
    small: { together: packPublic(), apart: packPublic(APART) },
    large: { together: packPublic(undefined, LARGE_AT_ONCE), apart: packPublic(APART, LARGE_AT_ONCE) },
  }
  const privately = {
    small: { together: packPrivate(), apart: packPrivate(APART) },
    large: { together: packPrivate(undefined, LARGE_AT_ONCE), apart: packPrivate(APART, LARGE_AT_ONCE) },
  }

  function lineOf<Line>(
    lines: Readonly<Record<'small' | 'large', Readonly<Record<'together' | 'apart', Line>>>>,
    source: Source,
    bytes: number,
  ): Line {
    const size = bytes > RECEIVE_LIMITS.bytesPerJob ? 'large' : 'small'
    return lines[size][backlog.isApart(source, bytes) ? 'apart' : 'together']
  }

  return {
    ...backlog,
    acceptPublic: (envelope, source) => {
      const message = { envelope, source: neighbourhoodOf(source) }
      return lineOf(publicly, source, lengthOfPublic(message))([message])
    },
    acceptPrivate: (message, source) =>
      lineOf(privately, source, lengthOfPrivate(message))([withSource(message, neighbourhoodOf(source))]),
  }
}

function inJob(messages: readonly PublicMessage[]): Pick<DataOf<typeof receivePublicJob>, 'messages' | 'sources'> {
  const sources = messages.map(({ source }) => source ?? null)
  return {
    messages: messages.map(({ envelope }) => envelope),
    ...(sources.some((source) => source !== null) && { sources }),
  }
}

function withSource({ recipientGuid, envelope }: PrivateMessage, source: string | undefined): PrivateMessage {
  return source === undefined ? { recipientGuid, envelope } : { recipientGuid, envelope, source }
}

function groups<Message>(
  { acknowledgedMs }: PackingLimits,
  sizeOf: (message: Message) => number,
  atOnce: number = RECEIVE_LIMITS.jobsUnderWay,
) {
  return {
    atOnce,
    enough: WORTH_A_SECOND_JOB,
    swell: WHILE_BUSY,
    items: RECEIVE_LIMITS.messagesPerJob,
    bytes: RECEIVE_LIMITS.bytesPerJob,
    sizeOf,
    // The queue has a time limit of its own, but a message may have waited for its group before.
    patience: { ms: acknowledgedMs, error: () => new QueueUnavailable('The queue did not take the message in time.') },
  }
}

/** Envelopes and coats are base64: a character is a byte. */
function lengthOfPublic({ envelope }: PublicMessage): number {
  return envelope.length
}

function lengthOfPrivate({ envelope }: PrivateMessage): number {
  return envelope.length
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
