import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { Client, type ClientApiDialect } from './client.js'
import { Model } from './model.js'
import { User } from './user.js'

/** What a user lets a client do. The scopes are its own and not a token's: new consent changes the tokens there are. */
export class Authorization extends Model {
  static override tableName = 'authorizations'

  declare id: number
  declare userId: number
  /** Null: made by the operator. A user and a client have one; each of the operator's stands for itself. */
  declare clientId: number | null
  declare grantId: string | null
  declare scopes: string[]
  declare createdAt: Date
  declare updatedAt: Date

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

/** Whose token it is, and whether it still counts. */
export interface TokenHolder {
  readonly tokenId: number
  readonly userId: number
  readonly personId: number
  readonly authorizationId: number
  /** With blanks between them. */
  readonly scopes: string
  /** It was refreshed with fewer scopes than were granted, and may do nothing else. */
  readonly narrowed: boolean
  /** Null: its client has none of its own, or it has no client. */
  readonly dialect: ClientApiDialect | null
  /** By the clock of the database. */
  readonly expired: boolean
  readonly locked: boolean
  readonly closed: boolean
  /** How far in the log of the database they have come lately; null: nobody knows of anything. */
  readonly writtenUpTo: number | null
}

/** Only the SHA-256 of a token is kept. */
export class AccessToken extends Model {
  static override tableName = 'access_tokens'
  static override jsonAttributes = ['payload']

  declare id: number
  declare authorizationId: number
  declare tokenHash: Buffer
  /** What the authorization server keeps beside it. */
  declare payload: Record<string, unknown> | null
  /** Null: it lasts until it is revoked. */
  declare expiresAt: Date | null
  declare createdAt: Date

  /** By the places of these tokens, each of which is there once; whose place is empty does not exist. */
  static async findHoldersByHashes(
    db: Knex,
    tokenHashes: readonly Buffer[],
  ): Promise<ReadonlyMap<number, TokenHolder>> {
    const rows = await queryPrepared<TokenHolder & { readonly place: number }>(db, 'holders-of-tokens', holders, [
      tokenHashes,
    ])
    return new Map(rows.map((row) => [row.place, row]))
  }

  /** Of tokens that were looked up before: those that are still there. */
  static async findHoldersByIds(db: Knex, ids: readonly number[]): Promise<readonly TokenHolder[]> {
    return queryPrepared<TokenHolder>(
      db,
      'access-token-viewers',
      `${viewer} where access_tokens.id = any($1::bigint[])`,
      [ids],
    )
  }
}

/** Longer than any replica that is used may be late. */
const MAX_REPLICA_DELAY = `interval '1 minute'`

const columns = `
    access_tokens.id as "tokenId",
    users.id as "userId",
    users.person_id as "personId",
    authorizations.id as "authorizationId",
    case
      when access_tokens.scopes is null then array_to_string(authorizations.scopes, ' ')
      else (
        select coalesce(string_agg(scope, ' '), '')
        from unnest(authorizations.scopes) as scope where scope = any(access_tokens.scopes)
      )
    end as scopes,
    access_tokens.scopes is not null as narrowed,
    clients.api_dialect as dialect,
    coalesce(access_tokens.expires_at <= now(), false) as expired,
    users.locked_at is not null as locked,
    users.closed_at is not null as closed,
    -- Before a new token there may have been anything, and nobody has noted it: further than any log will ever be.
    case
      when access_tokens.created_at > now() - ${MAX_REPLICA_DELAY} then ${Number.MAX_SAFE_INTEGER}
      else (select position from last_writes where user_id = users.id and noted_at > now() - ${MAX_REPLICA_DELAY})
    end as "writtenUpTo"`

const tables = `
  from access_tokens
  join authorizations on authorizations.id = access_tokens.authorization_id
  join users on users.id = authorizations.user_id
  left join clients on clients.id = authorizations.client_id`

const viewer = `select ${columns} ${tables}`

/** What it cannot see does not change its plan: see `opaqueParam`. */
const holders = `
  select array_position($1::bytea[], access_tokens.token_hash) - 1 as place, ${columns} ${tables}
  where access_tokens.token_hash = any((select $1::bytea[])::bytea[])`
