import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

/** An increment of a counter. */
export interface ActivityCounter {
  readonly name: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly count: number
}

/** Adds increments to the current minute with one statement. */
export async function addCounters(db: Knex, counters: readonly ActivityCounter[]): Promise<void> {
  if (counters.length > 0) await db.raw(NEW_FIGURES_SQL, [JSON.stringify(counters)])
}

/** Sums counters over the last full minutes; unless `full`, the current minute is included. */
export async function sumCounters(
  db: Knex,
  { minutes, full }: { readonly minutes: number; readonly full: boolean },
): Promise<readonly ActivityCounter[]> {
  return queryRows<ActivityCounter>(db, SUMS_OF_COUNTERS_SQL, [minutes, full])
}

/** Sums of a counter from a minute on. */
export interface CounterSums extends ActivityCounter {
  /** The part from `nextSince` on. */
  readonly sinceNext: number
}

/** The beginning of the minute before the current one: increments are not stored for earlier minutes. */
export async function readNextMinute(db: Knex): Promise<Date> {
  const row = await queryRow<{ readonly minute: Date }>(
    db,
    `select date_trunc('minute', now()) - interval '1 minute' as minute`,
  )
  if (row === undefined) throw new Error('The database returned no time.')
  return row.minute
}

/** Sums counters from a minute on, and from a later one on. */
export async function sumCountersFrom(
  db: Knex,
  { since, nextSince }: { readonly since: Date; readonly nextSince: Date },
): Promise<readonly CounterSums[]> {
  return queryRows<CounterSums>(db, SUMS_FROM_MINUTE_SQL, [nextSince, since])
}

const SUMS_FROM_MINUTE_SQL = `
  select name, labels, sum(count)::float as count, coalesce(sum(count) filter (where minute >= ?), 0)::float as "sinceNext"
  from figures
  where minute >= ?
  group by name, labels
  order by name, labels`

const NEW_FIGURES_SQL = `
  insert into figures (minute, name, labels, count)
  select date_trunc('minute', now()), name, labels, sum(count)
  from json_to_recordset(?::json) as added(name text, labels jsonb, count bigint)
  group by name, labels
  order by name, labels
  on conflict (minute, name, labels) do update set count = figures.count + excluded.count`

const SUMS_OF_COUNTERS_SQL = `
  select name, labels, sum(count)::float as count
  from figures
  where minute >= date_trunc('minute', now()) - make_interval(mins => ?::integer)
    and (minute < date_trunc('minute', now()) or not ?::boolean)
  group by name, labels
  order by name, labels`
