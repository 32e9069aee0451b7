import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import type { ActivityCounter } from './activity-counters.js'

/** A counter over the last minute, the last 15 and the last 60, without the current one. */
export interface RecentCounter extends Omit<ActivityCounter, 'count'> {
  readonly minute: number
  readonly quarter: number
  readonly hour: number
}

export async function sumRecentCounters(db: Knex, names: readonly string[]): Promise<readonly RecentCounter[]> {
  return queryRows<RecentCounter>(
    db,
    `select name, labels,
       coalesce(sum(count) filter (where minute >= this_minute - interval '1 minute'), 0)::float as minute,
       coalesce(sum(count) filter (where minute >= this_minute - interval '15 minutes'), 0)::float as quarter,
       sum(count)::float as hour
     from figures, (select date_trunc('minute', now()) as this_minute) as clock
     where minute >= this_minute - interval '1 hour' and minute < this_minute and name = any(?)
     group by name, labels`,
    [[...names]],
  )
}

/** A counter in one interval of the last day. */
export interface HistoricCounter extends ActivityCounter {
  readonly at: Date
}

export const HISTORY_MINUTES = 15

/** Counters of the last 24 hours in intervals of 15 minutes, the oldest first. */
export async function listFigureHistory(db: Knex, names: readonly string[]): Promise<readonly HistoricCounter[]> {
  return queryRows<HistoricCounter>(
    db,
    `select date_bin(make_interval(mins => :width), minute, timestamptz '2000-01-01') as at, name, labels, sum(count)::float as count
     from figures
     where minute >= now() - interval '24 hours' and name = any(:names)
     group by at, name, labels
     order by at`,
    { width: HISTORY_MINUTES, names: [...names] },
  )
}

/** The most waiting jobs of all queues together, in intervals of 15 minutes. */
export async function listWaitingHistory(
  db: Knex,
): Promise<readonly { readonly at: Date; readonly waiting: number }[]> {
  return queryRows<{ readonly at: Date; readonly waiting: number }>(
    db,
    `select date_bin(make_interval(mins => ?), minute, timestamptz '2000-01-01') as at, max(waiting)::integer as waiting
     from (
       select minute, sum(waiting) as waiting from queue_samples where minute >= now() - interval '24 hours' group by minute
     ) as minutes
     group by at order by at`,
    [HISTORY_MINUTES],
  )
}

/** Several processes may write the same minute; the first one counts. */
export async function addQueueSamples(
  db: Knex,
  samples: readonly { readonly queue: string; readonly waiting: number }[],
): Promise<void> {
  if (samples.length === 0) return
  await db.raw(
    `insert into queue_samples (minute, queue, waiting)
     select date_trunc('minute', now()), queue, waiting from json_to_recordset(?::json) as added(queue text, waiting integer)
     on conflict do nothing`,
    [JSON.stringify(samples)],
  )
}
