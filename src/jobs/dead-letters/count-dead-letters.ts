import { countDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import { QUEUES } from '../queues/queue-names.js'
import type { DeadLetterFilter, DeadLetterPod } from './dead-letter.js'
import { countFailedRows, type DeadLetterGroup } from './failed-rows.js'
import { failedJobs } from './find-dead-letters.js'

export interface DeadLetterCount {
  /** Null: the property is unknown. */
  readonly value: string | null
  readonly count: number
}

/** Counts dead letters by one of their properties, the most first. No payload is read. */
export async function countDeadLetters(
  pod: DeadLetterPod,
  filter: DeadLetterFilter,
  by: DeadLetterGroup,
  limit: number,
): Promise<readonly DeadLetterCount[]> {
  const isForDeliveries = filter.queue === undefined || filter.queue === 'outbound'
  const counted = [
    await countFailedRows(pod.db, filter, by),
    isForDeliveries ? await countDeadDeliveries(pod.db, by, deliveriesOf(filter)) : [],
    await countJobs(pod, filter, by),
  ].flat()
  const sums = new Map<string | null, number>()
  for (const { value, count } of counted) sums.set(value, (sums.get(value) ?? 0) + count)
  return [...sums]
    .map(([value, count]) => ({ value, count }))
    .toSorted((one, other) => other.count - one.count || String(one.value).localeCompare(String(other.value)))
    .slice(0, limit)
}

function deliveriesOf({ fault, pod, entity, since, until }: DeadLetterFilter) {
  return { fault, pod, entity, since, until }
}

async function countJobs(
  pod: DeadLetterPod,
  filter: DeadLetterFilter,
  by: DeadLetterGroup,
): Promise<DeadLetterCount[]> {
  if (filter.pod !== undefined || filter.entity !== undefined || filter.id !== undefined) return []
  const counts = new Map<string | null, number>()
  for (const queue of filter.queue === undefined ? QUEUES : [filter.queue]) {
    for await (const job of failedJobs(pod, queue, filter, { limit: Number.POSITIVE_INFINITY })) {
      const value = { queue, fault: job.fault, pod: null, entity: null, hour: hourOf(job.finishedAt) }[by]
      counts.set(value, (counts.get(value) ?? 0) + 1)
    }
  }
  return [...counts].map(([value, count]) => ({ value, count }))
}

function hourOf(time: number | null): string | null {
  return time === null ? null : `${new Date(time).toISOString().slice(0, 13)}:00:00Z`
}
