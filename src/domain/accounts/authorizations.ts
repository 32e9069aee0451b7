import { randomBytes } from 'node:crypto'
import { sendSignal } from '../../jobs/signals.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Authorization } from '../../persistence/models/access-token.js'
import { Client } from '../../persistence/models/client.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { lacksStaffFactor } from './factors/second-factor.js'
import { isScope, roleAllowsScope, type Scope } from './scopes.js'

/** An authorization in the terms of the authorization server. */
export interface Grant {
  readonly grantId: string
  readonly address: string
  readonly clientId: string
  readonly scopes: readonly Scope[]
}

/** An authorization as the user's settings page lists it. */
export interface AuthorizedClient {
  readonly id: number
  readonly clientName: string | null
  readonly redirectUri: string
  readonly scopes: readonly Scope[]
  readonly since: Date
  /** When the application last got a token. Access tokens are valid for a day. */
  readonly lastUsedAt: Date | null
}

/** Creates or changes the one authorization of a user and a client. New consent changes the scopes of existing tokens. */
export async function authorizeClient(
  services: Pick<Services, 'config' | 'db' | 'now'>,
  who: { readonly address: string; readonly clientId: string },
  requested: readonly Scope[],
): Promise<string> {
  const [user, client] = await Promise.all([
    findActiveUser(services, who.address),
    Client.query(services.db).findOne({ clientId: who.clientId }),
  ])
  if (!user) throw new Refusal('user_missing', 'This account is closed.')
  if (!client) throw new Refusal('client_missing', 'This application is no longer registered.')
  const scopes = await filterGrantable(services, user, requested)
  const { grantId } = await Authorization.query(services.db)
    .insert({ userId: user.id, clientId: client.id, grantId: randomBytes(16).toString('hex'), scopes: [...scopes] })
    .onConflict(['userId', 'clientId'])
    .merge({ scopes: [...scopes], updatedAt: services.now() })
    .returning('*')
  if (grantId === null) throw new Error('An authorization was written without a grant id.')
  return grantId
}

/** The requested scopes that a user may grant: those of the admin API need the role. */
export async function findGrantableScopes(
  services: Pick<Services, 'config' | 'db'>,
  address: string,
  scopes: readonly Scope[],
): Promise<readonly Scope[]> {
  const user = await findActiveUser(services, address)
  return user === undefined ? [] : filterGrantable(services, user, scopes)
}

/** The role for a grant. Staff without the required second factor grant as users without a role. */
async function filterGrantable(
  services: Pick<Services, 'config' | 'db'>,
  { id: userId, role }: User,
  scopes: readonly Scope[],
): Promise<readonly Scope[]> {
  const grantedRole = (await lacksStaffFactor(services, { userId, role })) ? null : role
  return scopes.filter((scope) => roleAllowsScope(grantedRole, scope))
}

export async function findGrant(services: Pick<Services, 'db'>, grantId: string): Promise<Grant | undefined> {
  return findGrantWhere(services, { 'authorizations.grantId': grantId })
}

export async function findGrantOfClient(
  services: Pick<Services, 'db'>,
  who: { readonly address: string; readonly clientId: string },
): Promise<Grant | undefined> {
  return findGrantWhere(services, { 'user:person.address': who.address, 'client.clientId': who.clientId })
}

/** Deletes an authorization with all its tokens, and ends their live streams. */
export async function revokeGrant(services: Pick<Services, 'db' | 'requestContext'>, grantId: string): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    await Authorization.query(transaction).delete().where({ grantId })
    await sendSignal(transaction, 'access_ended')
  })
}

/** Ends all sessions of an account, and authorization requests in which its password was given. */
export async function endSessionsOfUser(services: Pick<Services, 'db'>, address: string): Promise<void> {
  await deleteSessions(services.db, address)
}

/** Lists authorizations, newest first. Authorizations of the operator have no client and cannot be revoked by the user. */
export async function listAuthorizedClients(
  services: Pick<Services, 'db'>,
  address: string,
): Promise<readonly AuthorizedClient[]> {
  const authorizations = await Authorization.query(services.db)
    .whereIn('userId', selectUserIds(services, address))
    .whereNotNull('clientId')
    .withGraphFetched('client')
    .orderBy([
      { column: 'updatedAt', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
  return authorizations.map(({ id, client, scopes, createdAt, lastUsedAt }) => ({
    id,
    clientName: client?.name ?? null,
    redirectUri: client?.redirectUris[0] ?? '',
    scopes: scopes.filter(isScope),
    since: createdAt,
    lastUsedAt,
  }))
}

/** Revokes an authorization of this user. Ids of other users' authorizations have no effect. */
export async function revokeAuthorization(
  services: Pick<Services, 'db' | 'requestContext'>,
  address: string,
  id: number,
): Promise<void> {
  const endedCount = await inRequestTransaction(services, async (transaction) => {
    await sendSignal(transaction, 'access_ended')
    return Authorization.query(transaction)
      .delete()
      .where({ id })
      .whereNotNull('clientId')
      .whereIn('userId', selectUserIds(services, address))
  })
  if (endedCount === 0) throw new Refusal('authorization_missing', 'This application no longer has access.')
}

/** Finds a user by address whose account is neither closed, nor being closed, nor locked. */
export async function findActiveUser(services: Pick<Services, 'db'>, address: string): Promise<User | undefined> {
  return User.query(services.db)
    .joinRelated('person')
    .where({ 'person.address': address })
    .whereNull('users.closedAt')
    .whereNull('users.lockedAt')
    .whereNull('users.closeAt')
    .first()
}

async function findGrantWhere(
  services: Pick<Services, 'db'>,
  columns: Record<string, string>,
): Promise<Grant | undefined> {
  const authorizations = await Authorization.query(services.db)
    .joinRelated('[client, user.person]')
    .where(columns)
    .select('authorizations.grantId', 'authorizations.scopes', 'client.clientId as name', 'user:person.address')
    .first()
    .castTo<{ grantId: string; scopes: string[]; name: string; address: string } | undefined>()
  return (
    authorizations && {
      ...authorizations,
      clientId: authorizations.name,
      scopes: authorizations.scopes.filter(isScope),
    }
  )
}

function selectUserIds(services: Pick<Services, 'db'>, address: string) {
  return User.query(services.db).joinRelated('person').where({ 'person.address': address }).select('users.id')
}
