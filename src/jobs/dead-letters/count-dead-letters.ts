import { countDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import type { QueueName } from '../queues/queue-names.js'
import { type DeadLetterDependencies, type DeadLetterFilter, keysOfSource } from './dead-letter.js'
import { countDeadLetterRows, type DeadLetterGroup } from './dead-letter-rows.js'
import { listFailedQueues } from './find-dead-letters.js'

export interface DeadLetterCount {
  /** Null: the property is unknown. */
  readonly value: string | null
  readonly count: number
}

export interface CountLimits {
  /** Groups that are returned. */
  readonly groups: number
  /**
   * Maximum number of rows, of deliveries, and of failed jobs of each queue that are read, the latest first: a page takes no longer with
   * more of them.
   */
  readonly latest?: number
}

/** Counts dead letters by one of their properties, the largest group first. No payload is read. */
export async function countDeadLetters(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  by: DeadLetterGroup,
  limits: CountLimits,
): Promise<readonly DeadLetterCount[]> {
  return (await countDeadLettersByEach(services, filter, [by], limits)).get(by) ?? []
}

/** Counts dead letters by several of their properties, with one statement for each source. The failed jobs are read once for all. */
export async function countDeadLettersByEach(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  groupings: readonly DeadLetterGroup[],
  { groups, latest }: CountLimits,
): Promise<ReadonlyMap<DeadLetterGroup, readonly DeadLetterCount[]>> {
  const isForDeliveries = filter.queue === undefined || filter.queue === 'outbound'
  const [rows, deliveries, jobs] = await Promise.all([
    countDeadLetterRows(services.db, filter, groupings, latest),
    isForDeliveries ? countDeadDeliveries(services.db, groupings, deliveriesOf(filter), latest) : [],
    countJobs(services, filter, groupings, latest),
  ])
  return new Map(
    groupings.map((by, index) => {
      const rowCounts = [...rows, ...deliveries].filter(({ property }) => property === index)
      return [by, sumByValue([...rowCounts, ...(jobs.get(by) ?? [])]).slice(0, groups)] as const
    }),
  )
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
  latest = Number.MAX_SAFE_INTEGER,
): Promise<ReadonlyMap<DeadLetterGroup, readonly DeadLetterCount[]>> {
  if (filter.ids !== undefined) return new Map()
  const queues = await listFailedQueues(services, filter)
  const countsOfQueues = await Promise.all(
    queues.map((queue) => countJobsOfQueue(services, queue, filter, { groupings, latest })),
  )
  return new Map(groupings.map((by) => [by, countsOfQueues.flatMap(({ counts }) => counts.get(by) ?? [])]))
}

async function countJobsOfQueue(
  services: DeadLetterDependencies,
  queue: QueueName,
  { since, until, fault: wantedFault, pod: wantedPod }: DeadLetterFilter,
  { groupings, latest }: { readonly groupings: readonly DeadLetterGroup[]; readonly latest: number },
): Promise<{
  readonly counts: ReadonlyMap<DeadLetterGroup, readonly DeadLetterCount[]>
  readonly isCut: boolean
}> {
  const { counts, isCut } = await services.jobs.countFailedWithoutRow(queue, {
    since: since?.getTime() ?? 0,
    until: until?.getTime() ?? Number.MAX_SAFE_INTEGER,
    fault: wantedFault,
    pod: wantedPod,
    latest,
  })
  const sums = new Map(groupings.map((by) => [by, new Map<string | null, number>()]))
  for (const { fault, pod, hour, count } of counts) {
    const values = {
      queue,
      fault,
      pod,
      entity: null,
      hour: `${new Date(hour).toISOString().slice(0, 13)}:00:00Z`,
    }
    for (const [by, ofGroup] of sums) ofGroup.set(values[by], (ofGroup.get(values[by]) ?? 0) + count)
  }
  return {
    counts: new Map([...sums].map(([by, ofGroup]) => [by, [...ofGroup].map(([value, count]) => ({ value, count }))])),
    isCut,
  }
}

/** Failed jobs without an outbox row. */
export interface FailedJobs {
  readonly counts: readonly { readonly queue: QueueName; readonly fault: string; readonly count: number }[]
  /** A queue has older failed jobs, which were not read. */
  readonly isCut: boolean
}

/** Counts failed jobs without an outbox row by queue and error. Of each queue only the latest failed jobs are read. */
export async function countFailedJobs(services: DeadLetterDependencies, latest: number): Promise<FailedJobs> {
  const queues = await listFailedQueues(services, {})
  const countsOfQueues = await Promise.all(
    queues.map(async (queue) => ({
      queue,
      ...(await countJobsOfQueue(services, queue, {}, { groupings: ['fault'], latest })),
    })),
  )
  return {
    counts: countsOfQueues.flatMap(({ queue, counts }) =>
      (counts.get('fault') ?? []).map(({ value, count }) => ({ queue, fault: value ?? 'unknown', count })),
    ),
    isCut: countsOfQueues.some(({ isCut }) => isCut),
  }
}
