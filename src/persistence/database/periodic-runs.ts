import type { Knex } from 'knex'
import { queryPrepared } from './database.js'

/** Remembers, by the clock of the database, that something that comes again and again has just been done. */
export async function recordRun(db: Knex, name: string): Promise<void> {
  await queryPrepared(
    db,
    'note-run',
    `insert into periodic (name, last_run_at) values ($1, date_trunc('milliseconds', now()))
     on conflict (name) do update set last_run_at = excluded.last_run_at`,
    [name],
  )
}

/** What time it is by the one clock that all processes share. */
export async function readDatabaseTime(db: Knex): Promise<Date> {
  const { rows } = await db.raw('select now()')
  return rows[0].now
}

/** Null: never. */
export async function findSecondsSinceRun(db: Knex, name: string): Promise<number | null> {
  const [run] = await queryPrepared<{ readonly seconds: string }>(
    db,
    'seconds-since-run',
    'select extract(epoch from now() - last_run_at) as seconds from periodic where name = $1',
    [name],
  )
  return run === undefined ? null : Number(run.seconds)
}
