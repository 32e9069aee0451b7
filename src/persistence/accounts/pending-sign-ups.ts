import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'

/** A sign-up that waits for its mailbox, for a moderator, or for both. */
export interface PendingSignUp {
  readonly id: number
  /** Null: it was rejected. */
  readonly username: string | null
  readonly email: string | null
  readonly passwordHash: string | null
  readonly language: string
  readonly invitationId: number | null
  readonly reason: string | null
  readonly answer: string | null
  readonly needsConfirmation: boolean
  readonly needsApproval: boolean
  readonly confirmedAt: Date | null
  readonly decidedAt: Date | null
  readonly requestUid: string | null
  readonly network: string | null
  /** The terms that the person has accepted; null: the pod had none. */
  readonly termsVersion: string | null
  /** The rules of moderators that apply, by kind and id. */
  readonly rules: readonly string[]
  readonly mailsSent: number
  readonly mailedAt: Date | null
  readonly expiresAt: Date
  readonly createdAt: Date
}

const COLUMNS = `id, username, email, password_hash, language, invitation_id, reason, answer, needs_confirmation,
  needs_approval, confirmed_at, decided_at, request_uid, network, terms_version, rules, mails_sent, mailed_at, expires_at, created_at`
  .split(',')
  .map((column) => column.trim())

/** Rows that have not expired. */
export function pendingSignUps(db: Knex): Knex.QueryBuilder<PendingSignUp, PendingSignUp[]> {
  return db<PendingSignUp>('pending_sign_ups').whereRaw('expires_at > now()').select(COLUMNS)
}

/**
 * Takes a lock on a username until the transaction ends: names of accounts and of pending sign-ups are in two tables, so that no
 * unique key covers both.
 */
export async function lockUsername(transaction: Knex.Transaction, username: string): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('username ' || ?, 0))`, [username])
}

/** Takes a lock on the sign-ups of a network until the transaction ends, so that their limit counts simultaneous ones. */
export async function lockNetwork(transaction: Knex.Transaction, network: string): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('sign-up network ' || ?, 0))`, [network])
}

/** Whether a pending sign-up reserves the name. */
export async function isNamePending(db: Knex, username: string): Promise<boolean> {
  return (await pendingSignUps(db).where({ username }).first()) !== undefined
}

/** Keeps the address from which a sign-up came, for its account. */
export async function insertSignUpAddress(
  transaction: Knex.Transaction,
  pendingId: number,
  ip: string | null,
): Promise<void> {
  if (ip !== null) await transaction('sign_up_addresses').insert({ pendingId, ip })
}

/** Null: not kept. */
export async function deleteSignUpAddress(transaction: Knex.Transaction, pendingId: number): Promise<string | null> {
  const [row] = await transaction('sign_up_addresses').where({ pendingId }).delete().returning('ip')
  return row?.ip ?? null
}

export interface UndecidedSignUp extends PendingSignUp {
  /** Other sign-ups of its network that wait. */
  readonly othersOfNetwork: number
}

/** Sign-ups that need the decision of a moderator. */
export const IS_UNDECIDED_SQL = `pending_sign_ups.needs_approval and pending_sign_ups.decided_at is null and pending_sign_ups.expires_at > now()`

/** Part of a statement: the number of sign-ups that wait for a decision. */
export const UNDECIDED_SIGN_UPS_SQL = `(select count(*)::integer from pending_sign_ups where ${IS_UNDECIDED_SQL})`

/** The sign-ups that wait for a decision: their number, and when the oldest began to wait. */
export async function summariseUndecidedSignUps(
  db: Knex,
): Promise<{ readonly pending: number; readonly oldest: Date | null }> {
  return queryRow(
    db,
    `select count(*)::integer as pending, min(coalesce(confirmed_at, created_at)) as oldest
     from pending_sign_ups where ${IS_UNDECIDED_SQL}`,
  )
}

export async function countUndecidedSignUps(db: Knex): Promise<number> {
  const { count } = await queryRow<{ readonly count: number }>(db, `select ${UNDECIDED_SIGN_UPS_SQL} as count`)
  return count
}

/** The sign-ups that moderators decide about, newest first. */
export async function listUndecidedSignUps(db: Knex, page: IdPage): Promise<ListPage<UndecidedSignUp>> {
  const byNetwork = `(
    select network, count(*)::integer as waiting from pending_sign_ups where expires_at > now() group by network
  ) as of_network`
  const rows = db('pending_sign_ups')
    .joinRaw(`left join ${byNetwork} on of_network.network = pending_sign_ups.network`)
    .whereRaw(IS_UNDECIDED_SQL)
    .select(...COLUMNS.map((column) => `pendingSignUps.${column}`))
    .select(db.raw('coalesce(of_network.waiting - 1, 0) as others_of_network'))
  return readIdPage<UndecidedSignUp>(rows, page, 'pendingSignUps.id')
}

export interface SignUpLoad {
  /** Sign-ups of this network in a day. */
  readonly ofNetwork: number
  readonly pending: number
  readonly undecided: number
}

export async function countSignUps(db: Knex, network: string): Promise<SignUpLoad> {
  return queryRow<SignUpLoad>(
    db,
    `select
       (select count(*)::integer from sign_up_attempts where network = ? and at > now() - interval '1 day') as "ofNetwork",
       (select count(*)::integer from pending_sign_ups where expires_at > now()) as pending,
       ${UNDECIDED_SIGN_UPS_SQL} as undecided`,
    [network],
  )
}
