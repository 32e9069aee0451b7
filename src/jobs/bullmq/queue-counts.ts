import type pg from 'pg'
import { IS_HELD_SHARED_LOCK_SQL, workerLockIdSql } from './postgres-connections.js'

/** The jobs of a queue by state; those of a paused queue are waiting. Without jobs that schedules have made: `unscheduled`. */
interface CountedQueue {
  readonly queue: string
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
  readonly unscheduled: number
  readonly workers: number
}

/** Counts the jobs and workers of queues. Schedules make jobs of the queue `scheduled` only. */
export type CountQueues = (queues: readonly string[], scheduled: string) => Promise<readonly CountedQueue[]>

const countOf = (state: string) =>
  `(select count(*) from job where job.queue = input.queue and state = '${state}')::integer as ${state}`

/** A job with a schedule is delayed or, for a moment, in one of the other states. */
const countUnscheduled = ['waiting', 'active', 'delayed']
  .map((state) => `(select count(*) from job where queue = $2 and state = '${state}' and scheduler_id is null)`)
  .join(' + ')

/**
 * One statement for all queues. Each state has an index of its own, without the columns of the job: the library reads all jobs of a
 * queue to count them, one queue after the other. The locks of the server are listed once.
 */
const COUNT_QUEUES_SQL = `
  with workers as (
    select classid, objid, count(*)::integer as workers from pg_locks where ${IS_HELD_SHARED_LOCK_SQL}
    group by classid, objid
  )
  select input.queue, ${['waiting', 'active', 'delayed', 'failed'].map(countOf).join(', ')},
    case when input.queue = $2 then (${countUnscheduled})::integer end as unscheduled,
    coalesce((select workers from workers where (classid, objid) = ${workerLockIdSql('input.queue')}), 0) as workers
  from unnest($1::text[]) as input(queue)`

export function postgresCountQueues(pool: Pick<pg.Pool, 'query'>): CountQueues {
  return async (queues, scheduled) => {
    const { rows } = await pool.query(COUNT_QUEUES_SQL, [[...queues], scheduled])
    return rows.map(({ unscheduled, ...counts }) => ({
      ...counts,
      unscheduled: unscheduled ?? counts.waiting + counts.active + counts.delayed,
    }))
  }
}
