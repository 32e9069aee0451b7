import { POD_IS_ASLEEP, POD_IS_PAUSED } from '../../persistence/outbound/due-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import type { QueueCounts } from '../queues/inspect-queues.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'

interface FactsOfQueue extends QueueCounts {
  /** Seconds since the job that is next in line was added; null when none waits. */
  readonly oldestWaiting: number | null
  /** In all processes. */
  readonly workers: number
}

/** The amount of work, for `pod status`, metrics and health. Ages are in seconds. */
export interface QueueFacts {
  /** Null: the queue is unavailable. */
  readonly queues: Readonly<Record<QueueName, FactsOfQueue>> | null
  readonly outbox: { readonly waiting: number; readonly dead: number; readonly oldest: number | null }
  /** Waiting messages by the kind of entity they wait for. */
  readonly waitingFor: Readonly<Record<string, number>>
  readonly deliveries: { readonly due: number; readonly waiting: number; readonly dead: number }
  readonly podsAsleep: number
  /** Seconds since the sweeper last ran, anywhere; null: never. */
  readonly lastSweep: number | null
}

/** Reads the amount of work from the queue and the database. */
export async function queueFacts(pod: Pick<Pod, 'db' | 'jobs'>): Promise<QueueFacts> {
  const [queues, rows] = await Promise.all([factsOfQueues(pod).catch(() => null), factsOfRows(pod)])
  return { queues, ...rows }
}

/** Reads the queues alone: rows and deliveries take longer to count. Rejects while the queue store is unavailable. */
export async function factsOfQueues({ jobs }: Pick<Pod, 'jobs'>): Promise<Readonly<Record<QueueName, FactsOfQueue>>> {
  const queueFacts = await Promise.all(
    QUEUES.map(async (queue) => {
      const [counts, unscheduled, oldest, workers] = await Promise.all([
        jobs.counts(queue),
        queue === 'maintenance' ? jobs.unscheduled(queue) : Number.POSITIVE_INFINITY,
        jobs.oldestWaiting(queue),
        jobs.workers(queue),
      ])
      const oldestWaiting = oldest === undefined ? null : Math.max(0, (Date.now() - oldest.timestamp) / 1_000)
      return [queue, { ...counts, delayed: Math.min(counts.delayed, unscheduled), oldestWaiting, workers }] as const
    }),
  )
  return Object.fromEntries(queueFacts) as Record<QueueName, FactsOfQueue> // one for each of QUEUES
}

async function factsOfRows({ db }: Pick<Pod, 'db'>): Promise<Omit<QueueFacts, 'queues'>> {
  const { rows } = await db.raw(`
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
        'due', count(*) filter (where ${isDue}),
        'waiting', count(*) filter (where state = 'waiting'),
        'dead', count(*) filter (where state = 'dead')
      ) from deliveries join pods on pods.id = deliveries.pod_id) as deliveries,
      (select count(*) from pods where ${POD_IS_ASLEEP}) as asleep,
      (select extract(epoch from now() - last_run_at) from periodic where name = 'sweep') as last_sweep`)
  const [row] = rows
  return {
    outbox: row.outbox,
    waitingFor: row.waiting_for,
    deliveries: row.deliveries,
    podsAsleep: Number(row.asleep),
    lastSweep: row.last_sweep === null ? null : Number(row.last_sweep),
  }
}

const isDue = `state = 'waiting' and due_at <= now() and (next_try_at is null or next_try_at <= now()) and blocked_at is null
  and not ${POD_IS_PAUSED} and not ${POD_IS_ASLEEP}`

/**
 * Whether no work is left: no job but the scheduled ones, no outbox row but those of dead letters, no due delivery. Rows are read before
 * and after the queue, because work moves between them.
 */
export async function isIdle(pod: Pick<Pod, 'db' | 'jobs'>, queues: readonly QueueName[] = QUEUES): Promise<boolean> {
  return (await rowsAreIdle(pod, queues)) && (await queuesAreIdle(pod, queues)) && (await rowsAreIdle(pod, queues))
}

async function rowsAreIdle({ db }: Pick<Pod, 'db'>, queues: readonly QueueName[]): Promise<boolean> {
  const { rows } = await db.raw(
    `select exists (select from outbox where failed_at is null and queue = any(?))
      or (? and exists (select from deliveries join pods on pods.id = deliveries.pod_id where ${isDue}))
      or (? and exists (select from signer_lookups where next_try_at <= now())) as busy`,
    [[...queues], queues.includes('outbound'), queues.includes('fetch-unproven')],
  )
  return !rows[0].busy
}

async function queuesAreIdle({ jobs }: Pick<Pod, 'jobs'>, queues: readonly QueueName[]): Promise<boolean> {
  const busy = await Promise.all(
    queues.map(async (queue) => {
      if (queue === 'maintenance') return (await jobs.unscheduled(queue)) > 0
      const { waiting, active, delayed } = await jobs.counts(queue)
      return waiting + active + delayed > 0
    }),
  )
  return !busy.includes(true)
}
