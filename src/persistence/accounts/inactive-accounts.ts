import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

const DAY_SQL = `interval '1 day'`

/** The last use of an account by its owner: a sign-in, a page in a browser, or a token of an application. */
const LAST_USE_SQL = `greatest(
  users.created_at, users.signed_up_at, users.last_sign_in_at, users.sign_in_at, users.active_at,
  (select max(last_used_at) from browser_sessions where browser_sessions.user_id = users.id),
  (select max(last_used_at) from authorizations where authorizations.user_id = users.id)
)`

/**
 * Accounts that may be closed because they are unused: their owner can be warned and can sign in. A valid token of the operator is a
 * use, because only the operator knows what uses it.
 */
const MAY_END_SQL = `users.closed_at is null and users.close_at is null and users.locked_at is null
  and users.email is not null and users.email_confirmed_at is not null and users.mail_state <> 'suppressed'
  and users.username is distinct from :kept::text
  and not exists (
    select from authorizations join access_tokens on access_tokens.authorization_id = authorizations.id
    where authorizations.user_id = users.id and authorizations.client_id is null
      and (access_tokens.expires_at is null or access_tokens.expires_at > now())
  )`

export interface InactivityTerms {
  /** The account of the podmin, which stays. */
  readonly kept: string | null
  readonly now: Date
  /** Days without use after which the owner is warned, and those after which the account is closed. */
  readonly warnAfter: number
  readonly closeAfter: number
  readonly limit: number
}

export interface EndingTerms extends InactivityTerms {
  /** Days since the warning. */
  readonly warnedDays: number
}

/** Marks unused accounts, and returns the ids of their users. */
export async function markUnusedAccounts(
  transaction: Knex.Transaction,
  terms: InactivityTerms,
): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly id: number }>(
    transaction,
    `with unused as (
       select users.id from users
       where ${MAY_END_SQL} and ${LAST_USE_SQL} < :now::timestamptz - :warnAfter * ${DAY_SQL}
         and (users.inactive_warned_at is null or users.inactive_warned_at < ${LAST_USE_SQL})
       order by users.id limit :limit
       for no key update of users skip locked
     )
     update users set inactive_warned_at = :now from unused where users.id = unused.id returning users.id`,
    { ...terms },
  )
  return rows.map(({ id }) => id)
}

/** Removes the marks of accounts whose warning was given up without being sent, so that they are warned again. */
export async function unmarkUnsentWarnings(
  db: Knex,
  unsent: { readonly now: Date; readonly kind: string; readonly givenUpDays: number; readonly listedDays: number },
): Promise<void> {
  await db.raw(
    `update users set inactive_warned_at = null
     where close_at is null and inactive_warned_at < :now::timestamptz - :givenUpDays * ${DAY_SQL}
       and inactive_warned_at > :now::timestamptz - :listedDays * ${DAY_SQL}
       and not exists (
         select from mails where mails.user_id = users.id and mails.kind = :kind and mails.sent_at is not null
       )`,
    { ...unsent },
  )
}

/** The usernames of accounts whose warning is old enough and that were not used since; with a username, only that one. */
export async function findEndingAccounts(
  db: Knex,
  { warnedDays, ...terms }: EndingTerms,
  username: string | null = null,
): Promise<readonly string[]> {
  const rows = await queryRows<{ readonly username: string }>(
    db,
    `select users.username from users
     where ${MAY_END_SQL} and (:username::text is null or users.username = :username)
       and ${LAST_USE_SQL} < :now::timestamptz - :closeAfter * ${DAY_SQL}
       and users.inactive_warned_at >= ${LAST_USE_SQL}
       and users.inactive_warned_at <= :now::timestamptz - :warnedDays * ${DAY_SQL}
     order by users.inactive_warned_at limit :limit`,
    { ...terms, warnedDays, username },
  )
  return rows.map(({ username }) => username)
}
