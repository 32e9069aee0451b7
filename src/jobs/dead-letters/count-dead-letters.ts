import { countDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import type { QueueName } from '../queues/queue-names.js'
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
  limits: CountLimits,
): Promise<readonly DeadLetterCount[]> {
  return (await countDeadLettersByEach(services, filter, [by], limits)).get(by) ?? []
}

/** Counts dead letters by several of their properties. Failed jobs, which the queue counts by none of them, are read once for all. */
export async function countDeadLettersByEach(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  groupings: readonly DeadLetterGroup[],
  { groups, latest = Number.MAX_SAFE_INTEGER }: CountLimits,
): Promise<ReadonlyMap<DeadLetterGroup, readonly DeadLetterCount[]>> {
  const isForDeliveries = filter.queue === undefined || filter.queue === 'outbound'
  const jobs = countJobs(services, filter, groupings, latest)
  const counted = groupings.map(async (by) => {
    const sources = await Promise.all([
      countDeadLetterRows(services.db, filter, by, latest),
      isForDeliveries ? countDeadDeliveries(services.db, by, deliveriesOf(filter), latest) : [],
      jobs.then((counts) => counts.get(by) ?? []),
    ])
    return [by, sumByValue(sources.flat()).slice(0, groups)] as const
  })
  return new Map(await Promise.all(counted))
}

function sumByValue(counted: readonly DeadLetterCount[]): readonly DeadLetterCount[] {
  const sums = new Map<string | null, number>()
  for (const { value, count } of counted) sums.set(value, (sums.get(value) ?? 0) + count)
  return [...sums]
    .map(([value, count]) => ({ value, count }))
    .toSorted((one, other) => other.count - one.count || String(one.value).localeCompare(String(other.value)))
}

function deliveriesOf({ ids, fault, pod, entity, since, until }: DeadLetterFilter) {
  const keys = ids && keysOfSource(ids, 'deliveries').map(Number)
  return { ids: keys, fault, pod, entity, since, until }
}

async function countJobs(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  groupings: readonly DeadLetterGroup[],
  latest: number,
): Promise<ReadonlyMap<DeadLetterGroup, readonly DeadLetterCount[]>> {
  if (filter.ids !== undefined) return new Map()
  const queues = await listFailedQueues(services, filter)
  const counted = await Promise.all(queues.map((queue) => countJobsOfQueue(services, queue, filter, groupings, latest)))
  return new Map(groupings.map((by) => [by, counted.flatMap((counts) => counts.get(by) ?? [])]))
}

async function countJobsOfQueue(
  services: DeadLetterDependencies,
  queue: QueueName,
  filter: DeadLetterFilter,
  groupings: readonly DeadLetterGroup[],
  latest: number,
): Promise<ReadonlyMap<DeadLetterGroup, readonly DeadLetterCount[]>> {
  const counts = new Map(groupings.map((by) => [by, new Map<string | null, number>()]))
  let read = 0
  for await (const job of failedJobs(services, queue, filter, { limit: latest })) {
    const values = { queue, fault: job.fault, pod: null, entity: null, hour: hourOf(job.finishedAt) }
    for (const [by, ofGroup] of counts) ofGroup.set(values[by], (ofGroup.get(values[by]) ?? 0) + 1)
    read += 1
    if (read === latest) break // before the list reads its next page
  }
  return new Map([...counts].map(([by, ofGroup]) => [by, [...ofGroup].map(([value, count]) => ({ value, count }))]))
}

function hourOf(time: number | null): string | null {
  return time === null ? null : `${new Date(time).toISOString().slice(0, 13)}:00:00Z`
}
