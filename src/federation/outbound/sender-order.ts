import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import type { DueDelivery } from '../../persistence/outbound/due-deliveries.js'

/** The place of one delivery in the order of its sender. */
interface SendingTurn {
  /** Resolves when all earlier messages of the sender have ended, delivered or not. */
  readonly predecessors: Promise<unknown>
  finish(): void
}

interface LatestMessage {
  readonly messageId: number
  readonly predecessors: Promise<unknown>
  readonly ends: readonly Promise<void>[]
}

/**
 * Keeps the order of the messages that one local person has written. The deliveries of one message, and all relays, do not wait
 * for each other.
 */
export function openSenderOrder(): (due: DueDelivery) => SendingTurn {
  const latestOfSender = new Map<number | null, LatestMessage>()
  return ({ senderId, messageId, priority }) => {
    if (priority !== DELIVERY_PRIORITY.localUsers) return { predecessors: Promise.resolve(), finish() {} }
    const { promise, resolve } = promiseWithResolvers()
    const latest = latestOfSender.get(senderId)
    const isSameMessage = latest?.messageId === messageId
    const predecessors = isSameMessage ? latest.predecessors : Promise.all(latest?.ends ?? [])
    const ends = isSameMessage ? [...latest.ends, promise] : [promise]
    latestOfSender.set(senderId, { messageId, predecessors, ends })
    return { predecessors, finish: resolve }
  }
}

function promiseWithResolvers(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
