import { latencyOf } from '../bench.js'

/** The times in milliseconds that other people notice, by what they wait for. */
export interface OrdinaryTimes {
  /** From a request of a client to its answer. */
  readonly api: readonly number[]
  /** From a message of another pod to its 202. */
  readonly accepted: readonly number[]
  /** From a message of another pod to its row, seen by another session. */
  readonly stored: readonly number[]
  /** From the request that publishes a post to its arrival at another pod. */
  readonly delivered: readonly number[]
}

export const JUDGED = ['api', 'accepted', 'stored', 'delivered'] as const satisfies readonly (keyof OrdinaryTimes)[]

/**
 * Without an attack most 99th percentiles are a few milliseconds, and one garbage collection triples them. No user notices
 * a delay below this, so a smaller value counts as this one.
 */
export const UNNOTICED_MS = 50

/** How many times as long the slowest kind of ordinary traffic takes during the attack, by 99th percentiles. */
export function slowdownOf(without: OrdinaryTimes, during: OrdinaryTimes): number {
  return Math.max(
    ...JUDGED.map((kind) => latencyOf(during[kind]).p99 / Math.max(UNNOTICED_MS, latencyOf(without[kind]).p99)),
  )
}
