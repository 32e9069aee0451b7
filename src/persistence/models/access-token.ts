import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { Client, type ClientApiDialect } from './client.js'
import { Model } from './model.js'
import { type Role, User } from './user.js'

/** The authorization of a client by a user. Tokens have no scopes of their own, so that new consent changes existing tokens. */
export class Authorization extends Model {
  static override tableName = 'authorizations'

  declare id: number
  declare userId: number
  /** Null: created by the operator. A user and a client have one authorization; those of the operator are independent. */
  declare clientId: number | null
  declare grantId: string | null
  declare scopes: string[]
  /** Only set without a client. Null: the dialect of the setting. */
  declare apiDialect: ClientApiDialect | null
  declare createdAt: Date
  declare updatedAt: Date
  /** When the client last got an access token; null: never. */
  declare lastUsedAt: Date | null

  declare user?: User
  declare client?: Client | null
  declare accessTokens?: AccessToken[]

  static override relationMappings = () => ({
    user: {
      relation: Model.BelongsToOneRelation,
      modelClass: User,
      join: { from: 'authorizations.userId', to: 'users.id' },
    },
    client: {
      relation: Model.BelongsToOneRelation,
      modelClass: Client,
      join: { from: 'authorizations.clientId', to: 'clients.id' },
    },
    accessTokens: {
      relation: Model.HasManyRelation,
      modelClass: AccessToken,
      join: { from: 'authorizations.id', to: 'access_tokens.authorizationId' },
    },
  })
}

/** The user of a token, and whether the token is valid. */
export interface TokenHolder {
  readonly tokenId: number
  readonly userId: number
  readonly personId: number
  readonly authorizationId: number
  /** Read with the token, so that a change takes effect at the next request. */
  readonly role: Role | null
  /** Separated by spaces. */
  readonly scopes: string
  /** The token was refreshed with fewer scopes than granted and is restricted to them. */
  readonly isNarrowed: boolean
  /** Null: neither the client nor the token of the operator has its own dialect. */
  readonly dialect: ClientApiDialect | null
  /** Whether the token has expired, by the clock of the database. */
  readonly isExpired: boolean
  readonly isLocked: boolean
  readonly isClosed: boolean
  /** Log position of the user's last recent write; null: none is recorded. */
  readonly writtenUpTo: number | null
}

/** An access token. Only its SHA-256 is stored. */
export class AccessToken extends Model {
  static override tableName = 'access_tokens'
  static override jsonAttributes = ['payload']

  declare id: number
  declare authorizationId: number
  declare tokenHash: Buffer
  /** Data of the authorization server. */
  declare payload: Record<string, unknown> | null
  /** Null: valid until it is revoked. */
  declare expiresAt: Date | null
  declare createdAt: Date

  /** Finds tokens by hashes without repeats; keyed by their position in the list. Unknown tokens have no entry. */
  static async findHoldersByHashes(
    db: Knex,
    tokenHashes: readonly Buffer[],
  ): Promise<ReadonlyMap<number, TokenHolder>> {
    const rows = await queryPrepared<TokenHolder & { readonly index: number }>(db, 'token-holders', HOLDERS_SQL, [
      tokenHashes,
    ])
    return new Map(rows.map((row) => [row.index, row]))
  }

  /** Finds tokens by ids. Deleted tokens are left out. */
  static async findHoldersByIds(db: Knex, ids: readonly number[]): Promise<readonly TokenHolder[]> {
    return queryPrepared<TokenHolder>(
      db,
      'access-token-viewers',
      `${VIEWER_SQL} where access_tokens.id = any($1::bigint[])`,
      [ids],
    )
  }
}

/** Longer than the maximum delay of a replica that serves reads. */
const MAX_REPLICA_DELAY_SQL = `interval '1 minute'`

const COLUMNS_SQL = `
    access_tokens.id as "tokenId",
    users.id as "userId",
    users.person_id as "personId",
    authorizations.id as "authorizationId",
    users.role,
    case
      when access_tokens.scopes is null then array_to_string(authorizations.scopes, ' ')
      else (
        select coalesce(string_agg(scope, ' '), '')
        from unnest(authorizations.scopes) as scope where scope = any(access_tokens.scopes)
      )
    end as scopes,
    access_tokens.scopes is not null as "isNarrowed",
    coalesce(clients.api_dialect, authorizations.api_dialect) as dialect,
    coalesce(access_tokens.expires_at <= now(), false) as "isExpired",
    users.locked_at is not null or users.close_at is not null as "isLocked",
    users.closed_at is not null as "isClosed",
    -- Writes before a new token are not recorded for it: the maximum excludes every replica.
    case
      when access_tokens.created_at > now() - ${MAX_REPLICA_DELAY_SQL} then ${Number.MAX_SAFE_INTEGER}
      else (select position from last_writes where user_id = users.id and noted_at > now() - ${MAX_REPLICA_DELAY_SQL})
    end as "writtenUpTo"`

const TABLES_SQL = `
  from access_tokens
  join authorizations on authorizations.id = access_tokens.authorization_id
  join users on users.id = authorizations.user_id
  left join clients on clients.id = authorizations.client_id`

const VIEWER_SQL = `select ${COLUMNS_SQL} ${TABLES_SQL}`

/** The subselect hides the array from the planner, so that the generic plan is kept: see `opaqueParam`. */
const HOLDERS_SQL = `
  select array_position($1::bytea[], access_tokens.token_hash) - 1 as index, ${COLUMNS_SQL} ${TABLES_SQL}
  where access_tokens.token_hash = any((select $1::bytea[])::bytea[])`
