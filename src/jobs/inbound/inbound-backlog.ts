import { openWindowCounter } from '../../concurrency/rate-counters.js'
import { siteOfNetwork } from '../../networks/network-source.js'
import type { JobQueues } from '../queues/job-queues.js'
import { type InboundQueueSize, openInboundQueueSize } from './inbound-queue-size.js'
import type { RECEIVE_LIMITS } from './limits.js'
import { type NetworkSource, networkOf, openSourceShares } from './source-shares.js'

/** Why a message is not accepted now: the queue is full, or its source has used up its share. */
export type BacklogRejection = 'full' | 'over_share'

export type BacklogLimits = Pick<
  { readonly [Name in keyof typeof RECEIVE_LIMITS]: number },
  | 'queuedMessages'
  | 'sharedMessagesPerSecond'
  | 'fairFromMessages'
  | 'fairFromBytes'
  | 'messagesPerShare'
  | 'bytesPerShare'
  | 'messagesOfSource'
  | 'bytesPercentOfSource'
  | 'sharesOfSite'
  | 'sources'
  | 'pollIntervalMs'
> & {
  /** Bytes that this process holds, and bytes in the queue. */
  readonly bytes: number
}

interface BacklogSize {
  /** Bytes of this process: bodies that are being received, and bodies on their way to the queue. */
  readonly heldBytes: number
  /** Estimates; the queue counts jobs. */
  readonly queuedBytes: number
  readonly queuedMessages: number
}

/** Messages that are accepted and not yet stored. */
export interface Backlog extends Pick<InboundQueueSize, 'add' | 'close'> {
  /** Called before a message is read. */
  refusalOf(source: NetworkSource): BacklogRejection | undefined
  /** Adds bytes of this source that this process holds; a negative number removes them. */
  hold(source: NetworkSource, bytes: number): void
  /**
   * Counts a message of this source; true when it needs a separate job after the messages of others: the source is fast, or it has
   * used up its share of a long queue.
   */
  needsSeparateJob(source: NetworkSource, bytes: number): boolean
  size(): BacklogSize
}

/** Bounds the accepted messages of all sources together, and of each source while the queue is long. */
export function openBacklog(jobs: Pick<JobQueues, 'counts' | 'hasFreeMemory'>, limits: BacklogLimits): Backlog {
  const shares = openSourceShares({ ...limits, bytesOfSource: (limits.bytes * limits.bytesPercentOfSource) / 100 })
  const queue = openInboundQueueSize({
    jobs,
    countIntervalMs: limits.pollIntervalMs,
    onCounted: () => void (isLong() || shares.clearSent()),
  })
  const countInSecond = openWindowCounter<string>({
    perMs: 1_000,
    sources: limits.sources,
    now: () => performance.now(),
  })
  let heldBytes = 0

  function isFast(source: NetworkSource): boolean {
    const name = siteOfNetwork(source.ip ?? '') ?? networkOf(source)
    return name !== undefined && countInSecond(name).count > limits.sharedMessagesPerSecond
  }

  /** A few large messages are as much work as many small ones. */
  function isLong(): boolean {
    const { messages, bytes } = queue.total()
    return messages > limits.fairFromMessages || bytes > limits.fairFromBytes
  }

  return {
    add: queue.add,
    close: queue.close,

    refusalOf(source) {
      queue.keepCounting()
      const { messages, bytes } = queue.total()
      if (!queue.hasFreeMemory() || heldBytes + bytes >= limits.bytes || messages >= limits.queuedMessages)
        return 'full'
      return shares.isUsedUp(source) ? 'over_share' : undefined
    },

    hold(source, bytes) {
      heldBytes += bytes
      shares.hold(source, bytes)
    },

    needsSeparateJob(source, bytes) {
      const isOverShare = isLong() && shares.count(source, bytes)
      return isFast(source) || isOverShare
    },

    size() {
      const { messages, bytes } = queue.total()
      return { heldBytes, queuedBytes: bytes, queuedMessages: messages }
    },
  }
}
