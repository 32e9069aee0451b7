import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { databaseTimeIn } from '../../persistence/sql/database-time.js'
import { hashToken } from './token-hash.js'

export type TokenPurpose = 'password_reset' | 'confirm_email'

/** Hours for which a token is valid. */
export const TOKEN_HOURS: Readonly<Record<TokenPurpose | 'undo_email', number>> = {
  password_reset: 2,
  confirm_email: 24,
  undo_email: 72,
}

export interface AccountToken {
  readonly id: number
  readonly userId: number
  readonly purpose: TokenPurpose
  /** The address that the token confirms. */
  readonly email: string | null
}

/** 256 random bits for a link. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Creates a token; it replaces the older one of its purpose. Only its hash is stored. */
export async function issueToken(
  db: Knex,
  token: Omit<AccountToken, 'id'> & { readonly hours?: number },
): Promise<string> {
  const { userId, purpose, email, hours = TOKEN_HOURS[purpose] } = token
  const text = newToken()
  await db('account_tokens')
    .insert({
      userId,
      purpose,
      email,
      tokenHash: hashToken(text),
      expiresAt: databaseTimeIn(db, { hours }),
    })
    .onConflict(['userId', 'purpose'])
    .merge()
  return text
}

/** Finds a valid token without using it, for the page with its button. */
export async function findToken(
  db: Knex,
  purpose: TokenPurpose,
  text: string | undefined,
): Promise<AccountToken | undefined> {
  if (text === undefined) return undefined
  return selectValid(db, purpose, text).first('id', 'userId', 'purpose', 'email')
}

/** Uses a token, in the transaction of its effect. Undefined: it is unknown, used, replaced or expired. */
export async function useToken(
  transaction: Knex.Transaction,
  purpose: TokenPurpose,
  text: string,
): Promise<AccountToken | undefined> {
  const [usedToken] = await selectValid(transaction, purpose, text)
    .delete()
    .returning(['id', 'userId', 'purpose', 'email'])
  return usedToken
}

function selectValid(db: Knex, purpose: TokenPurpose, text: string) {
  return db('account_tokens')
    .where({ purpose, tokenHash: hashToken(text) })
    .whereRaw('expires_at > now()')
}

/** An address that a user had, and can restore. */
export interface EmailUndo {
  readonly id: number
  readonly userId: number
  readonly email: string
}

/** Keeps an address that is to be replaced, each address once. The worker creates the token when it sends the mail. */
export async function keepEmailUndo(transaction: Knex.Transaction, userId: number, email: string): Promise<number> {
  await transaction('email_undos').where({ userId }).whereRaw('expires_at <= now()').delete()
  const [{ id }] = await transaction('email_undos')
    .insert({ userId, email, tokenHash: hashToken(newToken()), expiresAt: endOfUndo(transaction) })
    .onConflict(['userId', 'email'])
    .merge(['expiresAt'])
    .returning('id')
  return id
}

/** Creates the token for the mail to the replaced address. Without an id it is the address that was replaced last. */
export async function issueUndoToken(
  db: Knex,
  { userId, undoId }: { readonly userId: number; readonly undoId: number | undefined },
): Promise<{ readonly email: string; readonly token: string } | undefined> {
  const row = await db('email_undos')
    .where({ userId, ...(undoId !== undefined && { id: undoId }) })
    .orderBy('id', 'desc')
    .first('id')
  if (row === undefined) return undefined
  const token = newToken()
  const [undo] = await db('email_undos')
    .where({ id: row.id })
    .update({ tokenHash: hashToken(token), expiresAt: endOfUndo(db) })
    .returning('email')
  return undo && { email: undo.email, token }
}

/** Uses an undo. Those of later addresses end with it, those of earlier ones stay. */
export async function useEmailUndo(transaction: Knex.Transaction, text: string): Promise<EmailUndo | undefined> {
  const [usedToken] = await transaction('email_undos')
    .where({ tokenHash: hashToken(text) })
    .whereRaw('expires_at > now()')
    .delete()
    .returning(['id', 'userId', 'email'])
  if (usedToken !== undefined)
    await transaction('email_undos').where({ userId: usedToken.userId }).where('id', '>', usedToken.id).delete()
  return usedToken
}

function endOfUndo(db: Knex): Knex.Raw {
  return databaseTimeIn(db, { hours: TOKEN_HOURS.undo_email })
}
