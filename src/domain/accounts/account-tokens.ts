import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { hashToken } from './token-hash.js'

export type TokenPurpose = 'password_reset' | 'confirm_email' | 'undo_email'

/** Hours for which a token is valid. */
export const TOKEN_HOURS: Readonly<Record<TokenPurpose, number>> = {
  password_reset: 2,
  confirm_email: 24,
  undo_email: 72,
}

export interface AccountToken {
  readonly id: number
  readonly userId: number
  readonly purpose: TokenPurpose
  /** The address that the token confirms or restores. */
  readonly email: string | null
}

/** 256 random bits for a link. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Makes a token; it replaces the older one of its purpose. Only its hash is stored. */
export async function issueToken(
  db: Knex,
  token: Omit<AccountToken, 'id'> & { readonly hours?: number },
): Promise<string> {
  const { userId, purpose, email, hours = TOKEN_HOURS[purpose] } = token
  const text = newToken()
  await db('account_tokens')
    .insert({
      ...{ userId, purpose, email, tokenHash: hashToken(text) },
      expiresAt: db.raw(`date_trunc('milliseconds', now()) + make_interval(hours => ?)`, [hours]),
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
  const [used] = await selectValid(transaction, purpose, text).delete().returning(['id', 'userId', 'purpose', 'email'])
  return used
}

function selectValid(db: Knex, purpose: TokenPurpose, text: string) {
  return db('account_tokens')
    .where({ purpose, tokenHash: hashToken(text) })
    .whereRaw('expires_at > now()')
}
