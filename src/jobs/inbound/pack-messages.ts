import { groupCommit } from '../../concurrency/group-commit.js'
import { type GrowthLimits, openGroupGrowth } from '../../concurrency/group-growth.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import type { Services } from '../../services/services.js'
import { type DataOf, type PostedEnvelope, receivePrivateJob, receivePublicJob } from '../definitions.js'
import type { InboundQueue } from '../queues/queue-names.js'
import { QueueUnavailable } from '../queues/queue-unavailable.js'
import { sum } from '../sum.js'
import { type Backlog, type BacklogLimits, openBacklog } from './inbound-backlog.js'
import { RECEIVE_LIMITS } from './limits.js'
import { type NetworkSource, networkOf } from './source-shares.js'

type PrivateMessage = DataOf<typeof receivePrivateJob>['messages'][number]

/** Packs received messages into jobs. Both promises resolve once the queue has acknowledged the job of the message. */
export interface Packing extends Pick<Backlog, 'refusalOf' | 'hold' | 'size' | 'close'> {
  acceptPublic(envelope: string, source: NetworkSource, trace?: string): Promise<void>
  acceptPrivate(message: PrivateMessage, source: NetworkSource): Promise<void>
}

export interface PackingLimits extends BacklogLimits {
  readonly acknowledgedMs: number
}

/**
 * While one job is not acknowledged, a second one is added only with this many messages: every job costs Redis and the two
 * processes half a millisecond. Fewer messages wait until the first job is acknowledged.
 */
const SECOND_JOB_MIN_MESSAGES = 32

/**
 * Makes jobs larger under load. The overhead of small jobs would use up the machine long before the messages do, and every message would
 * wait longer than `waitMs`.
 */
const GROWTH: GrowthLimits = {
  loads: [
    { items: 12, ms: 2, pauseMs: 1, waitMs: 8 },
    { items: 2, ms: 6, pauseMs: 4, waitMs: 16 },
  ],
  startItems: 48,
}

/** The priority of separate jobs: jobs with a priority run after all jobs without one. */
const SEPARATE_PRIORITY = 10

/** Whether the job has messages of a source over its share. Jobs into which it is split have its priority, too. */
export function isSeparateJob({ priority = 0 }: { readonly priority?: number | undefined }): boolean {
  return priority > 0
}

/** Jobs of large messages that are added at a time; a second one would take the connections that small messages need. */
const MAX_CONCURRENT_LARGE_JOBS = 1

/** Messages that are received together share a job. A source over its share gets separate jobs, which come later. */
export function openPacking(
  services: Pick<Services, 'config' | 'jobs' | 'now'>,
  limits: PackingLimits = { ...RECEIVE_LIMITS, bytes: services.config.inboundBytes },
): Packing {
  const backlog = openBacklog(services.jobs, limits)
  const publicPackers = openPackers('inbound', (messages: readonly PostedEnvelope[], acceptedAt, priority) =>
    services.jobs.add(receivePublicJob, { acceptedAt, messages }, { priority }),
  )
  const privatePackers = openPackers('inbound-private', (messages: readonly PrivateMessage[], acceptedAt, priority) =>
    services.jobs.add(receivePrivateJob, { acceptedAt, messages }, { priority }),
  )

  function openPackers<Message extends PostedEnvelope>(queue: InboundQueue, add: AddMessages<Message>) {
    const openPacker = (priority?: number, maxConcurrent?: number) =>
      groupCommit(
        groupLimits(limits, maxConcurrent),
        (messages: readonly Message[]) =>
          backlog.add(queue, { messages: messages.length, bytes: sum(messages.map(bytesOf)) }, () =>
            add(messages, services.now().toISOString(), priority),
          ),
        openGroupGrowth(GROWTH),
      )
    const openPackersOfSize = (maxConcurrent?: number) => ({
      shared: openPacker(undefined, maxConcurrent),
      separate: openPacker(SEPARATE_PRIORITY, maxConcurrent),
    })
    // Large messages are jobs of their own and take long: small ones must not wait for them.
    return { small: openPackersOfSize(), large: openPackersOfSize(MAX_CONCURRENT_LARGE_JOBS) }
  }

  function choosePacker<Packer>(packers: Packers<Packer>, source: NetworkSource, bytes: number): Packer {
    const { shared, separate } = packers[bytes > RECEIVE_LIMITS.bytesPerJob ? 'large' : 'small']
    return backlog.needsSeparateJob(source, bytes) ? separate : shared
  }

  return {
    ...backlog,
    acceptPublic: (envelope, source, trace) => {
      const message = postedEnvelope(envelope, networkOf(source), trace)
      const add = choosePacker(publicPackers, source, bytesOf(message))
      return add([message])
    },
    acceptPrivate: ({ recipientGuid, envelope, trace }, source) => {
      const message = { recipientGuid, ...postedEnvelope(envelope, networkOf(source), trace) }
      const add = choosePacker(privatePackers, source, bytesOf(message))
      return add([message])
    },
  }
}

type AddMessages<Message> = (
  messages: readonly Message[],
  acceptedAt: string,
  priority: number | undefined,
) => Promise<void>

/** A packer puts the messages that it gets at the same time into one job. `separate` is for sources over their share. */
type Packers<Packer> = Readonly<Record<'small' | 'large', Readonly<Record<'shared' | 'separate', Packer>>>>

/** Unknown values have no field in the job. */
function postedEnvelope(envelope: string, source: string | undefined, trace: string | undefined): PostedEnvelope {
  return { envelope, ...(source !== undefined && { source }), ...(trace !== undefined && { trace }) }
}

function groupLimits({ acknowledgedMs }: PackingLimits, maxConcurrent: number = RECEIVE_LIMITS.jobsUnderWay) {
  return {
    maxConcurrent,
    minItems: SECOND_JOB_MIN_MESSAGES,
    maxItems: RECEIVE_LIMITS.messagesPerJob,
    maxSize: RECEIVE_LIMITS.bytesPerJob,
    sizeOf: bytesOf,
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
