import type { Knex } from 'knex'
import type { MailState } from '../models/user.js'
import { NOW_SQL } from '../sql/database-time.js'
import type { MailKind } from './mail-kinds.js'

interface MailRow {
  readonly kind: MailKind
  readonly userId?: number | undefined
  readonly mailbox?: Buffer
}

/** Inserts mails that were decided; returns their ids in order. */
export async function insertMails(
  transaction: Knex.Transaction,
  mails: readonly MailRow[],
): Promise<readonly number[]> {
  const rows = mails.map(({ kind, userId = null, mailbox = null }) => ({ kind, userId, mailbox }))
  const insertedRows = await transaction('mails').insert(rows).returning('id')
  return insertedRows.map(({ id }) => id)
}

export interface MailAttempts {
  readonly attempts: number
  /** Seconds since the mail was decided. */
  readonly age: number
}

/** Undefined: the mail is older than mails are kept. */
export async function findMailAttempts(db: Knex, id: number): Promise<MailAttempts | undefined> {
  return db('mails').where({ id }).first('attempts', db.raw('extract(epoch from now() - created_at)::float as age'))
}

export async function countMailAttempt(db: Knex, id: number): Promise<void> {
  await db('mails').where({ id }).increment('attempts', 1)
}

/** Notes a sent mail; the mailbox of the user works again. */
export async function recordSentMail(
  transaction: Knex.Transaction,
  { id, userId }: { readonly id: number; readonly userId: number | undefined },
): Promise<void> {
  await transaction('mails')
    .where({ id })
    .update({ sentAt: transaction.raw(NOW_SQL) })
  if (userId === undefined) return
  await transaction('users').where({ id: userId, mailState: 'bouncing' }).update({ mailState: 'ok' })
}

/** Deletes a mail that is not sent, because its cause has ended. */
export async function deleteMail(transaction: Knex.Transaction, id: number): Promise<void> {
  await transaction('mails').where({ id }).delete()
}

/** Mails of these kinds that were decided for a user within seconds; of any kind if none is named. */
export async function countMailsOfUser(
  db: Knex,
  userId: number,
  {
    kinds,
    seconds,
    isSent = false,
  }: { readonly kinds?: readonly MailKind[]; readonly seconds: number; readonly isSent?: boolean },
): Promise<number> {
  const row = await db('mails')
    .where({ userId })
    .modify((query) => kinds !== undefined && query.whereIn('kind', [...kinds]))
    .modify((query) => isSent && query.whereNotNull('sentAt'))
    .whereRaw(`created_at > now() - make_interval(secs => ?)`, [seconds])
    .first(db.raw('count(*)::integer as count'))
  return row.count
}

/** Counts the recent mails to a mailbox without an account. */
export async function countMailsOfMailbox(db: Knex, mailbox: Buffer, seconds: number): Promise<number> {
  const row = await db('mails')
    .where({ mailbox })
    .whereRaw(`created_at > now() - make_interval(secs => ?)`, [seconds])
    .first(db.raw('count(*)::integer as count'))
  return row.count
}

/** Records a permanent fault of a mailbox; returns the new state of the user. */
export async function recordMailboxFault(
  transaction: Knex.Transaction,
  userId: number,
  fault: { readonly isGone: boolean; readonly limit: number; readonly days: number },
): Promise<MailState> {
  const { isGone, limit, days } = fault
  await transaction('mail_faults').insert({ userId })
  await transaction('mail_faults').where({ userId }).whereRaw('at < now() - make_interval(days => ?)', [days]).delete()
  const row = await transaction('mail_faults').where({ userId }).first(transaction.raw('count(*)::integer as count'))
  const mailState = isGone || row.count >= limit ? 'suppressed' : 'bouncing'
  await transaction('users').where({ id: userId }).whereNot({ mailState: 'suppressed' }).update({ mailState })
  return mailState
}
