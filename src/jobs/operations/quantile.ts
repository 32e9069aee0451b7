/** Observations up to a bound, above the next smaller one. */
export interface Bucket {
  readonly bound: number
  readonly count: number
}

/**
 * Estimates a quantile as Prometheus does: linear within the bucket that has it, and the largest finite bound for the last one. Null:
 * there are no observations.
 */
export function quantile(buckets: readonly Bucket[], fraction: number): number | null {
  const byBound = new Map<number, number>()
  for (const { bound, count } of buckets) byBound.set(bound, (byBound.get(bound) ?? 0) + count)
  const sortedBuckets = [...byBound].sort(([one], [other]) => one - other)
  const total = sortedBuckets.reduce((all, [, count]) => all + count, 0)
  if (total === 0) return null
  const rank = fraction * total
  let below = 0
  let lower = 0
  for (const [bound, count] of sortedBuckets) {
    if (below + count >= rank)
      return Number.isFinite(bound) ? lower + ((bound - lower) * (rank - below)) / count : lower
    below += count
    lower = bound
  }
  return lower
}
