import type { Knex } from 'knex'
import { changeRows } from '../database/database.js'
import { NOW_SQL } from '../sql/database-time.js'

/** Kinds of issued tokens. A token belongs to an authorization and is deleted with it. */
export type TokenKind = 'access_token' | 'refresh_token' | 'authorization_code'

/** An issued token with the current scopes of its authorization. */
export interface IssuedToken {
  readonly payload: Record<string, unknown>
  readonly consumedAt: Date | null
  /** End of validity, by the clock of the database. */
  readonly expiresAt: Date | null
  readonly isExpired: boolean
  readonly grantId: string
  readonly scopes: readonly string[]
  readonly clientId: string
  readonly address: string
}

const HASH_COLUMNS: Readonly<Record<TokenKind, string>> = {
  access_token: 'token_hash',
  refresh_token: 'token_hash',
  authorization_code: 'code_hash',
}

/** Records the use of the account at most once in a day. A locked row is skipped: a closing locks the user before the authorizations. */
const NOTE_USE_SQL = `, noted as (
       update users set active_at = ${NOW_SQL} where id in (
         select users.id from users join found on found.user_id = users.id
         where coalesce(users.active_at, '-infinity') < now() - interval '1 day'
         for no key update of users skip locked
       )
     )`

/** Inserts a token. False: the authorization was deleted. */
export async function insertToken(
  db: Knex,
  kind: TokenKind,
  token: {
    readonly hash: Buffer
    readonly grantId: string
    readonly payload: object
    /** Lifetime in seconds. */
    readonly lifetime: number
    /** Restricts an access token to these scopes of its authorization. */
    readonly scopes?: readonly string[] | undefined
  },
): Promise<boolean> {
  const { hash, grantId, lifetime, scopes } = token
  const authorization =
    kind === 'access_token'
      ? `update authorizations set last_used_at = ${NOW_SQL} where grant_id = :grantId returning id, user_id`
      : 'select id from authorizations where grant_id = :grantId for share'
  const rowCount = await changeRows(
    db,
    `with found as (${authorization})
     ${kind === 'access_token' ? NOTE_USE_SQL : ''}
     insert into ${kind}s (authorization_id, ${HASH_COLUMNS[kind]}, payload, expires_at${scopes ? ', scopes' : ''})
     select id, :hash, :payload::jsonb, ${NOW_SQL} + make_interval(secs => :lifetime::int)
       ${scopes ? ', :scopes::text[]' : ''}
     from found`,
    { hash, payload: JSON.stringify(token.payload), lifetime, grantId, ...(scopes && { scopes: [...scopes] }) },
  )
  return rowCount === 1
}

/** Extends a refresh token by its lifetime from now, unless it was extended within `useSeconds`. */
export async function renewRefreshToken(
  db: Knex,
  hash: Buffer,
  { lifetime, useSeconds }: { readonly lifetime: number; readonly useSeconds: number },
): Promise<void> {
  await db.raw(
    `update refresh_tokens
     set expires_at = ${NOW_SQL} + make_interval(secs => :lifetime::int)
     where token_hash = :hash and expires_at < now() + make_interval(secs => :lifetime::int - :useSeconds::int)`,
    { hash, lifetime, useSeconds },
  )
}

/** Finds a token of a client. Tokens of the operator have no client and are not found. */
export async function findToken(db: Knex, kind: TokenKind, hash: Buffer): Promise<IssuedToken | undefined> {
  return db(`${kind}s as tokens`)
    .join('authorizations', 'authorizations.id', 'tokens.authorizationId')
    .join('clients', 'clients.id', 'authorizations.clientId')
    .join('users', 'users.id', 'authorizations.userId')
    .join('people', 'people.id', 'users.personId')
    .where(`tokens.${HASH_COLUMNS[kind]}`, hash)
    .first(
      'tokens.payload',
      'tokens.expiresAt',
      db.raw('coalesce(tokens.expires_at <= now(), false) as is_expired'),
      kind === 'authorization_code' ? 'tokens.consumedAt' : db.raw('null as consumed_at'),
      'authorizations.grantId',
      'authorizations.scopes',
      'clients.clientId',
      'people.address',
    )
}

/** False: the code was already consumed. */
export async function markCodeConsumed(db: Knex, hash: Buffer): Promise<boolean> {
  const codes = await db('authorization_codes')
    .where({ codeHash: hash, consumedAt: null })
    .update({ consumedAt: db.raw(NOW_SQL) })
  return codes === 1
}

/** Deletes the authorization codes of a user that were not exchanged yet. */
export async function deleteUnusedCodes(db: Knex, userId: number): Promise<void> {
  await db('authorization_codes')
    .whereIn('authorizationId', db('authorizations').where({ userId }).select('id'))
    .where({ consumedAt: null })
    .delete()
}

export async function deleteToken(db: Knex, kind: TokenKind, hash: Buffer): Promise<void> {
  await db(`${kind}s`).where(HASH_COLUMNS[kind], hash).delete()
}
