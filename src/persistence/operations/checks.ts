import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { NOW_SQL } from '../sql/database-time.js'

export interface CheckResult {
  readonly name: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
  readonly certificateEndsAt: Date | null
}

export interface StoredCheck extends CheckResult {
  readonly checkedAt: Date
}

/** Replaces all results. */
export async function replaceChecks(db: Knex, results: readonly CheckResult[]): Promise<void> {
  await db.transaction(async (transaction) => {
    await transaction('checks').delete()
    if (results.length > 0) await transaction('checks').insert([...results])
  })
}

/** Lists checks; those that need an action come first. */
export async function listChecks(db: Knex): Promise<readonly StoredCheck[]> {
  return db('checks')
    .orderByRaw(`array_position(array['fail', 'warn', 'ok'], state), name`)
    .select('name', 'state', 'message', 'certificateEndsAt', 'checkedAt')
}

/**
 * Claims the checks of these six hours for this process; false: they were made. Those of a new pod begin some minutes after its start,
 * when its web process answers.
 */
export async function claimChecks(db: Knex): Promise<boolean> {
  const [claim] = await queryRows<{ readonly isDue: boolean }>(
    db,
    `
    insert into periodic (name, last_run_at)
    values ('checks', date_trunc('milliseconds', now() - interval '6 hours' + interval '4 minutes'))
    on conflict (name) do update set last_run_at = ${NOW_SQL}
      where periodic.last_run_at <= now() - interval '6 hours'
    returning last_run_at > now() - interval '1 hour' as "isDue"`,
  )
  return claim?.isDue === true
}

/** The address of an open local account, whose WebFinger document is requested. */
export async function findCheckedAddress(db: Knex): Promise<string | undefined> {
  const person = await db('people').whereNull('podId').whereNull('closedAt').orderBy('id').first('address')
  return person?.address
}
