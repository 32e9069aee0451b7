import type { Knex } from 'knex'
import { type IdPage, type IdPageResult, readIdPage } from '../sql/id-page.js'

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
  readonly mailsSent: number
  readonly mailedAt: Date | null
  readonly expiresAt: Date
  readonly createdAt: Date
}

const columns = `id, username, email, password_hash, language, invitation_id, reason, answer, needs_confirmation,
  needs_approval, confirmed_at, decided_at, request_uid, network, mails_sent, mailed_at, expires_at, created_at`
  .split(',')
  .map((column) => column.trim())

/** Rows that have not expired. */
export function pendingSignUps(db: Knex): Knex.QueryBuilder<PendingSignUp, PendingSignUp[]> {
  return db<PendingSignUp>('pending_sign_ups').whereRaw('expires_at > now()').select(columns)
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

export interface UndecidedSignUp extends PendingSignUp {
  /** Other sign-ups of its network that wait. */
  readonly othersOfNetwork: number
}

/** The sign-ups that moderators decide about, newest first. */
export async function listUndecidedSignUps(db: Knex, page: IdPage): Promise<IdPageResult<UndecidedSignUp>> {
  const others = `(
    select count(*)::integer from pending_sign_ups as others
    where others.network = pending_sign_ups.network and others.id <> pending_sign_ups.id and others.expires_at > now()
  ) as others_of_network`
  const rows = db('pending_sign_ups')
    .whereRaw('expires_at > now()')
    .where({ needsApproval: true, decidedAt: null })
    .select(...columns, db.raw(others))
  return readIdPage<UndecidedSignUp>(rows, page)
}

export interface SignUpLoad {
  /** Of this network in a day. */
  readonly ofNetwork: number
  readonly pending: number
  readonly undecided: number
}

export async function countSignUps(db: Knex, network: string): Promise<SignUpLoad> {
  const { rows } = await db.raw(
    `select
       (select count(*)::integer from sign_up_attempts where network = ? and at > now() - interval '1 day') as "ofNetwork",
       (select count(*)::integer from pending_sign_ups where expires_at > now()) as pending,
       (select count(*)::integer from pending_sign_ups
        where expires_at > now() and needs_approval and decided_at is null) as undecided`,
    [network],
  )
  return rows[0]
}
