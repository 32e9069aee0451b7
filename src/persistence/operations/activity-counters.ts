import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

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
