import type { Knex } from 'knex'
import { NOW_SQL } from '../sql/database-time.js'
import { queryPrepared, queryRow, queryRows } from './database.js'

/** Records that a periodic task has just run, by the clock of the database. */
export async function recordRun(db: Knex, name: string): Promise<void> {
  await queryPrepared(
    db,
    'record-run',
    `insert into periodic (name, last_run_at) values ($1, ${NOW_SQL})
     on conflict (name) do update set last_run_at = excluded.last_run_at`,
    [name],
  )
}

/** Records the first run of a task on a day (YYYY-MM-DD, UTC). False: the task has run on that day. */
export async function claimRunOfDay(
  transaction: Knex.Transaction,
  name: string,
  now: Date,
  day: string,
): Promise<boolean> {
  const rows = await queryRows<{ readonly name: string }>(transaction, CLAIM_RUN_OF_DAY_SQL, {
    name,
    now,
    midnight: `${day}T00:00:00Z`,
  })
  return rows.length > 0
}

const CLAIM_RUN_OF_DAY_SQL = `
  insert into periodic (name, last_run_at) values (:name, :now)
  on conflict (name) do update set last_run_at = excluded.last_run_at where periodic.last_run_at < :midnight
  returning name`

/** The time of the database, the clock that all processes share. */
export async function readDatabaseTime(db: Knex): Promise<Date> {
  const { now } = await queryRow<{ readonly now: Date }>(db, 'select now()')
  return now
}

/** Null: the task has never run. */
export async function findSecondsSinceRun(db: Knex, name: string): Promise<number | null> {
  const [run] = await queryPrepared<{ readonly seconds: string }>(
    db,
    'seconds-since-run',
    'select extract(epoch from now() - last_run_at) as seconds from periodic where name = $1',
    [name],
  )
  return run === undefined ? null : Number(run.seconds)
}
