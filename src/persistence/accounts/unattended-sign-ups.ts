import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** Since when sign-ups need a decision because no moderator or admin was active; null: they do not. */
export async function findUnattendedSince(db: Knex): Promise<Date | null> {
  return (await db('unattended_sign_ups').first('since'))?.since ?? null
}

/**
 * When a moderator or admin was last active, in a browser, with an application or by an action; a command counts too. Not before the
 * first account, nor before an admin has ended the approval. Null: there is no account.
 */
export async function findLastStaffActivity(db: Knex): Promise<Date | null> {
  const { at } = await queryRow<{ readonly at: Date | null }>(
    db,
    `select greatest(
       (select created_at from users order by id limit 1),
       (select ended_at from unattended_sign_ups),
       (select max(sign_in_at) from users where role is not null),
       (select max(last_used_at) from browser_sessions join users on users.id = user_id where role is not null),
       (select at from audit_entries where via <> 'system' order by id desc limit 1)
     ) as at`,
  )
  return at
}

/** Begins the period. False: it has begun before. */
export async function insertUnattendedPeriod(transaction: Knex.Transaction, since: Date): Promise<boolean> {
  const insertedRows = await transaction('unattended_sign_ups')
    .insert({ since })
    .onConflict('id')
    .merge()
    .whereRaw('unattended_sign_ups.since is null')
    .returning('id')
  return insertedRows.length > 0
}

/** Ends the period. False: there was none. */
export async function closeUnattendedPeriod(transaction: Knex.Transaction, endedAt: Date): Promise<boolean> {
  return (await transaction('unattended_sign_ups').whereNotNull('since').update({ since: null, endedAt })) > 0
}
