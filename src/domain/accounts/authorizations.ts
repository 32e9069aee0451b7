import { randomBytes } from 'node:crypto'
import { sendSignal } from '../../jobs/signals.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Authorization } from '../../persistence/models/access-token.js'
import { Client } from '../../persistence/models/client.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
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

type AuthorizationRefusal = 'user_missing' | 'client_missing' | 'authorization_missing'

/** Creates or changes the one authorization of a user and a client. New consent changes the scopes of existing tokens. */
export async function authorizeClient(
  pod: Pick<Pod, 'db' | 'now' | 'config'>,
  who: { readonly address: string; readonly clientId: string },
  requested: readonly Scope[],
): Promise<string> {
  const [user, client] = await Promise.all([
    findActiveUser(pod, who.address),
    Client.query(pod.db).findOne({ clientId: who.clientId }),
  ])
  if (!user) throw refusal('user_missing', 'This account is closed.')
  if (!client) throw refusal('client_missing', 'This application is not registered any more.')
  const scopes = await filterGrantable(pod, user, requested)
  const { grantId } = await Authorization.query(pod.db)
    .insert({ userId: user.id, clientId: client.id, grantId: randomBytes(16).toString('hex'), scopes: [...scopes] })
    .onConflict(['userId', 'clientId'])
    .merge({ scopes: [...scopes], updatedAt: pod.now() })
    .returning('*')
  if (grantId === null) throw new Error('An authorization was written without a grant id.')
  return grantId
}

/** The requested scopes that a user may grant: those of the admin API need the role. */
export async function findGrantableScopes(
  pod: Pick<Pod, 'db' | 'config'>,
  address: string,
  scopes: readonly Scope[],
): Promise<readonly Scope[]> {
  const user = await findActiveUser(pod, address)
  return user === undefined ? [] : filterGrantable(pod, user, scopes)
}

/** Staff without the second factor that the pod asks for grants as a member. */
async function filterGrantable(
  pod: Pick<Pod, 'db' | 'config'>,
  { id: userId, role }: User,
  scopes: readonly Scope[],
): Promise<readonly Scope[]> {
  const granted = (await lacksStaffFactor(pod, { userId, role })) ? null : role
  return scopes.filter((scope) => roleAllowsScope(granted, scope))
}

export async function findGrant(pod: Pick<Pod, 'db'>, grantId: string): Promise<Grant | undefined> {
  return findGrantWhere(pod, { 'authorizations.grantId': grantId })
}

export async function findGrantOfClient(
  pod: Pick<Pod, 'db'>,
  who: { readonly address: string; readonly clientId: string },
): Promise<Grant | undefined> {
  return findGrantWhere(pod, { 'user:person.address': who.address, 'client.clientId': who.clientId })
}

/** Deletes an authorization with all its tokens, and ends their live streams. */
export async function revokeGrant(pod: Pick<Pod, 'db'>, grantId: string): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    await Authorization.query(transaction).delete().where({ grantId })
    await sendSignal(transaction, 'access_ended')
  })
}

/** Ends all sessions of an account, and authorization requests in which its password was given. */
export async function endSessionsOfUser(pod: Pick<Pod, 'db'>, address: string): Promise<void> {
  await deleteSessions(pod.db, address)
}

/** Lists authorizations, newest first. Authorizations of the operator have no client and cannot be revoked by the user. */
export async function listAuthorizedClients(
  pod: Pick<Pod, 'db'>,
  address: string,
): Promise<readonly AuthorizedClient[]> {
  const authorizations = await Authorization.query(pod.db)
    .whereIn('userId', selectUserIds(pod, address))
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
export async function revokeAuthorization(pod: Pick<Pod, 'db'>, address: string, id: number): Promise<void> {
  const ended = await inTransaction(pod, async (transaction) => {
    await sendSignal(transaction, 'access_ended')
    return Authorization.query(transaction)
      .delete()
      .where({ id })
      .whereNotNull('clientId')
      .whereIn('userId', selectUserIds(pod, address))
  })
  if (ended === 0) throw refusal('authorization_missing', 'This application has no access any more.')
}

/** Finds a user by address whose account is neither closed, nor being closed, nor locked. */
export async function findActiveUser(pod: Pick<Pod, 'db'>, address: string): Promise<User | undefined> {
  return User.query(pod.db)
    .joinRelated('person')
    .where({ 'person.address': address })
    .whereNull('users.closedAt')
    .whereNull('users.lockedAt')
    .whereNull('users.closeAt')
    .first()
}

async function findGrantWhere(pod: Pick<Pod, 'db'>, columns: Record<string, string>): Promise<Grant | undefined> {
  const authorizations = await Authorization.query(pod.db)
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

function selectUserIds(pod: Pick<Pod, 'db'>, address: string) {
  return User.query(pod.db).joinRelated('person').where({ 'person.address': address }).select('users.id')
}

function refusal(reason: AuthorizationRefusal, message: string): Refusal<AuthorizationRefusal> {
  return new Refusal(reason, message)
}
