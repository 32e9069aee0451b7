import { randomBytes } from 'node:crypto'
import { raw } from 'objection'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { AccessToken, Authorization } from '../../persistence/models/access-token.js'
import type { ClientApiDialect } from '../../persistence/models/client.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { changeOpenUser } from './accounts.js'
import { roleAllowsScope, type Scope } from './scopes.js'
import { hashToken } from './token-hash.js'

export interface MintedToken {
  /** Shown once: only its hash is stored. */
  readonly accessToken: string
  readonly scopes: readonly Scope[]
  readonly expiresAt: Date
}

interface TokenRequest {
  readonly scopes: readonly Scope[]
  /** Seconds. */
  readonly lifetime: number
  /** Null: that of the setting. */
  readonly apiDialect?: ClientApiDialect | null
}

/** Creates a token for the command line. Each has its own authorization, so that tokens with different scopes can coexist. */
export async function mintToken(
  services: Services,
  username: string,
  { scopes, lifetime, apiDialect = null }: TokenRequest,
): Promise<MintedToken> {
  const accessToken = randomBytes(32).toString('hex')
  return changeOpenUser(services, username, async (transaction, user) => {
    const refusedScopes = scopes.filter((scope) => !roleAllowsScope(user.role, scope))
    if (refusedScopes.length > 0) {
      throw new Refusal('role_needed', `${username} does not have the role for ${refusedScopes.join(' ')}.`)
    }
    const authorization = await Authorization.query(transaction)
      .insert({ userId: user.id, clientId: null, scopes: [...scopes], apiDialect })
      .returning('*')
    const { expiresAt } = await AccessToken.query(transaction)
      .insert({
        authorizationId: authorization.id,
        tokenHash: hashToken(accessToken),
        // Expiry is checked with the clock of the database, so it is computed with that clock.
        expiresAt: raw(`${NOW_SQL} + make_interval(secs => ?)`, [lifetime]),
      })
      .returning('*')
    if (expiresAt === null) throw new Error('The stored access token has no expiry.')
    return { accessToken, scopes, expiresAt }
  })
}

/** Deletes a token. A token of the operator takes its authorization along; other tokens of a client's authorization remain. */
export async function revokeToken(services: Services, accessToken: string): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const [token] = await AccessToken.query(transaction)
      .delete()
      .where({ tokenHash: hashToken(accessToken) })
      .returning('*')
    if (!token)
      throw new Refusal('token_unknown', 'There is no such token: it was never created, or it is already revoked.')
    await Authorization.query(transaction).delete().where({ id: token.authorizationId, clientId: null })
  })
}
