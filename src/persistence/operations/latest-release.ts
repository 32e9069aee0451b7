import type { Knex } from 'knex'

/** Claims the check of today for this process. False: another one has made it in the last day. */
export async function claimUpdateCheck(db: Knex): Promise<boolean> {
  const { rows } = await db.raw(claimCheck)
  return rows.length > 0
}

const claimCheck = `
  insert into periodic (name, last_run_at) values ('update-check', date_trunc('milliseconds', now()))
  on conflict (name) do update set last_run_at = excluded.last_run_at
    where periodic.last_run_at <= now() - interval '1 day'
  returning name`

export async function recordLatestRelease(db: Knex, version: string): Promise<void> {
  await db('latest_release')
    .insert({ version, checkedAt: db.raw(`date_trunc('milliseconds', now())`) })
    .onConflict('id')
    .merge()
}

/** The newest known version. Undefined: no check has succeeded. */
export async function findLatestRelease(db: Knex): Promise<string | undefined> {
  const release = await db('latest_release').first('version')
  return release?.version
}
