import { latencyOf } from '../bench.js'

/** Latencies of ordinary traffic in milliseconds, by kind. */
export interface OrdinaryTimes {
  /** From the request of a client to its response. */
  readonly api: readonly number[]
  /** From a message of another pod to its 202. */
  readonly accepted: readonly number[]
  /** From a message of another pod to its committed row. */
  readonly stored: readonly number[]
  /** From the request that publishes a post to its arrival at another pod. */
  readonly delivered: readonly number[]
}

export const MEASURED_KINDS = [
  'api',
  'accepted',
  'stored',
  'delivered',
] as const satisfies readonly (keyof OrdinaryTimes)[]

/**
 * Without an attack most 99th percentiles are a few milliseconds, and one garbage collection triples them. No user notices
 * a delay below this, so a smaller value counts as this one.
 */
export const UNNOTICED_MS = 50

/** The largest ratio of the 99th percentiles during the attack and without it, over all kinds of traffic. */
export function slowdownOf(baseline: OrdinaryTimes, during: OrdinaryTimes): number {
  return Math.max(
    ...MEASURED_KINDS.map(
      (kind) => latencyOf(during[kind]).p99 / Math.max(UNNOTICED_MS, latencyOf(baseline[kind]).p99),
    ),
  )
}
