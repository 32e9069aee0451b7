import { countDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import { type DeadLetterDependencies, type DeadLetterFilter, keysOfSource } from './dead-letter.js'
import { countDeadLetterRows, type DeadLetterGroup } from './dead-letter-rows.js'
import { failedJobs, listFailedQueues } from './find-dead-letters.js'

export interface DeadLetterCount {
  /** Null: the property is unknown. */
  readonly value: string | null
  readonly count: number
}

export interface CountLimits {
  /** Groups that are returned. */
  readonly groups: number
  /** Only the latest of rows, deliveries and each queue are counted: for pages that must not take longer with more of them. */
  readonly latest?: number
}

/** Counts dead letters by one of their properties, the most first. No payload is read. */
export async function countDeadLetters(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  by: DeadLetterGroup,
  { groups, latest = Number.MAX_SAFE_INTEGER }: CountLimits,
): Promise<readonly DeadLetterCount[]> {
  const isForDeliveries = filter.queue === undefined || filter.queue === 'outbound'
  const counted = [
    await countDeadLetterRows(services.db, filter, by, latest),
    isForDeliveries ? await countDeadDeliveries(services.db, by, deliveriesOf(filter), latest) : [],
    await countJobs(services, filter, by, latest),
  ].flat()
  const sums = new Map<string | null, number>()
  for (const { value, count } of counted) sums.set(value, (sums.get(value) ?? 0) + count)
  return [...sums]
    .map(([value, count]) => ({ value, count }))
    .toSorted((one, other) => other.count - one.count || String(one.value).localeCompare(String(other.value)))
    .slice(0, groups)
}

function deliveriesOf({ ids, fault, pod, entity, since, until }: DeadLetterFilter) {
  const keys = ids && keysOfSource(ids, 'deliveries').map(Number)
  return { ids: keys, fault, pod, entity, since, until }
}

async function countJobs(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  by: DeadLetterGroup,
  latest: number,
): Promise<DeadLetterCount[]> {
  if (filter.ids !== undefined) return []
  const counts = new Map<string | null, number>()
  for (const queue of await listFailedQueues(services, filter)) {
    let read = 0
    for await (const job of failedJobs(services, queue, filter, { limit: latest })) {
      read += 1
      if (read > latest) break
      const value = { queue, fault: job.fault, pod: null, entity: null, hour: hourOf(job.finishedAt) }[by]
      counts.set(value, (counts.get(value) ?? 0) + 1)
    }
  }
  return [...counts].map(([value, count]) => ({ value, count }))
}

function hourOf(time: number | null): string | null {
  return time === null ? null : `${new Date(time).toISOString().slice(0, 13)}:00:00Z`
}
