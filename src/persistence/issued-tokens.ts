import type { Knex } from 'knex'

/** What clients are given: each stands for its authorization, and goes with it. */
export type TokenKind = 'access_token' | 'refresh_token' | 'authorization_code'

/** With what the authorization says now, not what it said when the token was made. */
export interface IssuedToken {
  readonly payload: Record<string, unknown>
  readonly consumedAt: Date | null
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

/** False: the authorization is gone. */
export async function keepToken(
  db: Knex,
  kind: TokenKind,
  token: {
    readonly hash: Buffer
    readonly grantId: string
    readonly payload: object
    /** In seconds; undefined: until it is revoked. */
    readonly lifetime: number | undefined
  },
): Promise<boolean> {
  const { rowCount } = await db.raw(
    `insert into ${kind}s (authorization_id, ${HASH_COLUMNS[kind]}, payload, expires_at)
     select id, ?, ?::jsonb, date_trunc('milliseconds', now()) + make_interval(secs => ?::int)
     from authorizations where grant_id = ? for share`,
    [token.hash, JSON.stringify(token.payload), token.lifetime ?? null, token.grantId],
  )
  return rowCount === 1
}

/** Tokens of the operator belong to no client and are not found. */
export async function findToken(db: Knex, kind: TokenKind, hash: Buffer): Promise<IssuedToken | undefined> {
  return db(`${kind}s as tokens`)
    .join('authorizations', 'authorizations.id', 'tokens.authorizationId')
    .join('clients', 'clients.id', 'authorizations.clientId')
    .join('users', 'users.id', 'authorizations.userId')
    .join('people', 'people.id', 'users.personId')
    .where(`tokens.${HASH_COLUMNS[kind]}`, hash)
    .first(
      'tokens.payload',
      kind === 'authorization_code' ? 'tokens.consumedAt' : db.raw('null as consumed_at'),
      'authorizations.grantId',
      'authorizations.scopes',
      'clients.clientId',
      'people.address',
    )
}

/** False: somebody was faster. */
export async function consumeCode(db: Knex, hash: Buffer): Promise<boolean> {
  const codes = await db('authorization_codes')
    .where({ codeHash: hash, consumedAt: null })
    .update({ consumedAt: db.raw(`date_trunc('milliseconds', now())`) })
  return codes === 1
}

export async function dropToken(db: Knex, kind: TokenKind, hash: Buffer): Promise<void> {
  await db(`${kind}s`).where(HASH_COLUMNS[kind], hash).delete()
}
