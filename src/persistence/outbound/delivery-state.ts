import type { KnownPod } from './known-pods.js'

/** The states of docs/pod-states.md that concern deliveries. */
export type DeliveryState = 'blocked' | 'paused' | 'asleep' | 'away' | 'proven' | 'unproven'

export type PodStateFields = Pick<KnownPod, 'blockedAt' | 'pausedUntil' | 'asleep' | 'nextTryAt' | 'isProven'>

/** The state of a pod for deliveries, in one word: the first one that fits. */
export function toDeliveryState(
  { blockedAt, pausedUntil, asleep, nextTryAt, isProven }: PodStateFields,
  now: Date,
): DeliveryState {
  if (blockedAt !== null) return 'blocked'
  if (pausedUntil !== null && pausedUntil > now) return 'paused'
  if (asleep) return 'asleep'
  if (nextTryAt !== null && nextTryAt > now) return 'away'
  return isProven ? 'proven' : 'unproven'
}
