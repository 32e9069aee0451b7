import type { Knex } from 'knex'

/** An increment of a counter. */
export interface Figure {
  readonly name: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly count: number
}

/** Adds increments to the current minute with one statement. */
export async function addFigures(db: Knex, figures: readonly Figure[]): Promise<void> {
  if (figures.length > 0) await db.raw(insertFigures, [JSON.stringify(figures)])
}

/** Sums counters over the last full minutes; unless `full`, the current minute is included. */
export async function sumFigures(
  db: Knex,
  { minutes, full }: { readonly minutes: number; readonly full: boolean },
): Promise<readonly Figure[]> {
  const { rows } = await db.raw(selectSums, [minutes, full])
  return rows
}

const insertFigures = `
  insert into figures (minute, name, labels, count)
  select date_trunc('minute', now()), name, labels, sum(count)
  from json_to_recordset(?::json) as added(name text, labels jsonb, count bigint)
  group by name, labels
  order by name, labels
  on conflict (minute, name, labels) do update set count = figures.count + excluded.count`

const selectSums = `
  select name, labels, sum(count)::float as count
  from figures
  where minute >= date_trunc('minute', now()) - make_interval(mins => ?::integer)
    and (minute < date_trunc('minute', now()) or not ?::boolean)
  group by name, labels
  order by name, labels`
