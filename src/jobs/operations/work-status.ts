import { queryRow } from '../../persistence/database/database.js'
import { POD_IS_ASLEEP_SQL, POD_IS_PAUSED_SQL } from '../../persistence/outbound/delivery-conditions.js'
import type { Services } from '../../services/services.js'
import { type QueueCounts, type QueueCountsWithWorkers, SCHEDULED_QUEUE } from '../queues/inspect-queues.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'

export interface QueueStatus extends QueueCounts {
  /** Seconds since the job that is next in line was added; null when none waits. */
  readonly oldestWaiting: number | null
  /** Workers of the queue in all processes. */
  readonly workers: number
}

/** The amount of work, for `pod status`, metrics and health. Ages are in seconds. */
export interface WorkStatus {
  /** Null: the queue is unavailable. */
  readonly queues: Readonly<Record<QueueName, QueueStatus>> | null
  readonly outbox: { readonly waiting: number; readonly dead: number; readonly oldest: number | null }
  /** Waiting messages by the kind of entity they wait for. */
  readonly waitingFor: Readonly<Record<string, number>>
  readonly deliveries: { readonly due: number; readonly waiting: number; readonly dead: number }
  readonly podsAsleep: number
  /** Seconds since the sweeper last ran, anywhere; null: never. */
  readonly lastSweep: number | null
}

/** Reads the amount of work from the queue and the database. */
export async function readWorkStatus(services: Pick<Services, 'db' | 'jobs'>): Promise<WorkStatus> {
  const [queues, rows] = await Promise.all([readQueueStatuses(services).catch(() => null), readRowStatus(services)])
  return { queues, ...rows }
}

/** Reads the queues alone: rows and deliveries take longer to count. Rejects while the queue store is unavailable. */
export async function readQueueStatuses(
  services: Pick<Services, 'jobs'>,
): Promise<Readonly<Record<QueueName, QueueStatus>>> {
  const countsByQueue = await services.jobs.countAllWithWorkers()
  const statuses = await Promise.all(
    QUEUES.map(async (queue) => [queue, await readQueueStatus(services, queue, countsByQueue?.get(queue))] as const),
  )
  return Object.fromEntries(statuses) as Record<QueueName, QueueStatus> // one for each of QUEUES
}

/** Rejects while the queue store is unavailable. `counted`: the counts of the queue, if the caller has read them. */
export async function readQueueStatus(
  services: Pick<Services, 'jobs'>,
  queue: QueueName,
  counted?: QueueCountsWithWorkers,
): Promise<QueueStatus> {
  const { unscheduled, ...counts } = counted ?? (await countWithWorkers(services, queue))
  const oldest = counts.waiting === 0 ? undefined : await services.jobs.oldestWaiting(queue)
  const oldestWaiting = oldest === undefined ? null : Math.max(0, (Date.now() - oldest.timestamp) / 1_000)
  return { ...counts, delayed: Math.min(counts.delayed, unscheduled), oldestWaiting }
}

async function countWithWorkers({ jobs }: Pick<Services, 'jobs'>, queue: QueueName): Promise<QueueCountsWithWorkers> {
  const [counts, unscheduled, workers] = await Promise.all([
    jobs.counts(queue),
    queue === SCHEDULED_QUEUE ? jobs.unscheduled(queue) : Number.POSITIVE_INFINITY,
    jobs.workers(queue),
  ])
  return { ...counts, unscheduled, workers }
}

/** Numbers of PostgreSQL's type `numeric` are read as texts. */
interface StatusRow extends Pick<WorkStatus, 'outbox' | 'deliveries'> {
  readonly waiting_for: WorkStatus['waitingFor']
  readonly asleep: number
  readonly last_sweep: string | null
}

async function readRowStatus({ db }: Pick<Services, 'db'>): Promise<Omit<WorkStatus, 'queues'>> {
  const row = await queryRow<StatusRow>(
    db,
    `
    select
      (select json_build_object(
        'waiting', count(*) filter (where failed_at is null),
        'dead', count(failed_at),
        'oldest', extract(epoch from now() - min(created_at) filter (where failed_at is null))
      ) from outbox) as outbox,
      (select coalesce(json_object_agg(kind, messages), '{}') from (
        select split_part(waits_for, ':', 1) as kind, count(*) as messages from waiting group by kind
      ) as kinds) as waiting_for,
      (select json_build_object(
        'due', count(*) filter (where ${IS_DUE_SQL}),
        'waiting', count(*) filter (where state = 'waiting'),
        'dead', count(*) filter (where state = 'dead')
      ) from deliveries join pods on pods.id = deliveries.pod_id) as deliveries,
      (select count(*) from pods where ${POD_IS_ASLEEP_SQL}) as asleep,
      (select extract(epoch from now() - last_run_at) from periodic where name = 'sweep') as last_sweep`,
  )
  return {
    outbox: row.outbox,
    waitingFor: row.waiting_for,
    deliveries: row.deliveries,
    podsAsleep: Number(row.asleep),
    lastSweep: row.last_sweep === null ? null : Number(row.last_sweep),
  }
}

const IS_DUE_SQL = `state = 'waiting' and due_at <= now() and (next_try_at is null or next_try_at <= now()) and blocked_at is null
  and not ${POD_IS_PAUSED_SQL} and not ${POD_IS_ASLEEP_SQL}`

/**
 * Whether no work is left: no job but the scheduled ones, no outbox row but those of dead letters, no due delivery. Rows are read before
 * and after the queue, because work moves between them.
 */
export async function isIdle(
  services: Pick<Services, 'db' | 'jobs'>,
  queues: readonly QueueName[] = QUEUES,
): Promise<boolean> {
  return (
    (await areRowsIdle(services, queues)) &&
    (await areQueuesIdle(services, queues)) &&
    (await areRowsIdle(services, queues))
  )
}

async function areRowsIdle({ db }: Pick<Services, 'db'>, queues: readonly QueueName[]): Promise<boolean> {
  const { isBusy } = await queryRow<{ readonly isBusy: boolean }>(
    db,
    `select exists (select from outbox where failed_at is null and queue = any(?))
      or (? and exists (select from deliveries join pods on pods.id = deliveries.pod_id where ${IS_DUE_SQL}))
      or (? and exists (select from signer_lookups where next_try_at <= now())) as "isBusy"`,
    [[...queues], queues.includes('outbound'), queues.includes('fetch-unproven')],
  )
  return !isBusy
}

async function areQueuesIdle({ jobs }: Pick<Services, 'jobs'>, queues: readonly QueueName[]): Promise<boolean> {
  const busyFlags = await Promise.all(
    queues.map(async (queue) => {
      if (queue === SCHEDULED_QUEUE) return (await jobs.unscheduled(queue)) > 0
      const { waiting, active, delayed } = await jobs.counts(queue)
      return waiting + active + delayed > 0
    }),
  )
  return !busyFlags.includes(true)
}
