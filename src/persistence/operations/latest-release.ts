import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { NOW_SQL } from '../sql/database-time.js'

/** Claims the check of today for this process. False: another one has made it in the last day. */
export async function claimUpdateCheck(db: Knex): Promise<boolean> {
  const rows = await queryRows<{ readonly name: string }>(db, CLAIMED_CHECK_SQL)
  return rows.length > 0
}

const CLAIMED_CHECK_SQL = `
  insert into periodic (name, last_run_at) values ('update-check', ${NOW_SQL})
  on conflict (name) do update set last_run_at = excluded.last_run_at
    where periodic.last_run_at <= now() - interval '1 day'
  returning name`

export async function recordLatestRelease(db: Knex, version: string): Promise<void> {
  await db('latest_release')
    .insert({ version, checkedAt: db.raw(NOW_SQL) })
    .onConflict('id')
    .merge()
}

/** The newest known version. Undefined: no check has succeeded. */
export async function findLatestRelease(db: Knex): Promise<string | undefined> {
  const release = await db('latest_release').first('version')
  return release?.version
}
