import type { Knex } from 'knex'
import { Authorization } from '../../persistence/models/access-token.js'
import type { Role } from '../../persistence/models/user.js'
import { User } from '../../persistence/models/user.js'
import type { AuditActor, AuditChannel } from '../../persistence/moderation/audit-log.js'
import type { Services } from '../../services/services.js'
import { hasPower, type Power } from '../accounts/role-powers.js'
import { type AccountWithRole, findAccountWithRole } from '../accounts/staff.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

/** The person or process that takes an action, with the data that the audit log records about them. */
export interface Actor extends AuditActor {
  /** Null: a command or the pod itself. */
  readonly userId: number | null
  readonly personId: number | null
  readonly via: AuditChannel
  readonly clientId?: string | undefined
  readonly traceId?: string | undefined
}

/** A command in a shell of the pod. It may do everything. */
export const COMMAND_ACTOR: Actor = {
  userId: null,
  personId: null,
  guid: null,
  name: 'command',
  role: 'command',
  via: 'command',
}

/** The pod itself, for actions that end by time. */
export const SYSTEM_ACTOR: Actor = {
  userId: null,
  personId: null,
  guid: null,
  name: 'system',
  role: 'system',
  via: 'system',
}

/** Reads the role of a user now: it may have changed since the sign-in. Throws `role_needed` without the role. */
async function getActor(
  services: Pick<Services, 'db'>,
  userId: number,
  power: Power,
  context: Pick<Actor, 'via' | 'clientId' | 'traceId'>,
): Promise<Actor> {
  const account = await findAccountWithRole(services, { 'users.id': userId })
  if (account === undefined || account.role === null || !hasPower(account.role, power)) throw roleNeeded(power)
  return actorOfAccount({ ...account, role: account.role }, context)
}

/** The actor that a signed-in moderator or admin is. */
export function actorOfAccount(
  { userId, personId, guid, username, role }: AccountWithRole & { readonly role: Role },
  context: Pick<Actor, 'via' | 'clientId' | 'traceId'>,
): Actor {
  return { userId, personId, guid, name: username, role, ...context }
}

/** The actor of a request to the admin API. */
export async function findActorOfViewer(
  services: Pick<Services, 'db'>,
  { userId, authorizationId }: Viewer,
  power: Power,
  traceId: string,
): Promise<Actor> {
  const authorization =
    authorizationId === undefined
      ? undefined
      : await Authorization.query(services.db).findById(authorizationId).withGraphFetched('client')
  return getActor(services, userId, power, { via: 'api', clientId: authorization?.client?.clientId, traceId })
}

/** The actor of a command with `--as`. */
export async function getActorByName(services: Pick<Services, 'db'>, username: string, power: Power): Promise<Actor> {
  const user = await User.byUsername(services.db, username)
  if (!user) throw new Refusal('not_found', `There is no local account named ${username}.`)
  return getActor(services, user.id, power, { via: 'command' })
}

export function requirePower({ role }: Actor, power: Power): void {
  if (!hasPower(role, power)) throw roleNeeded(power)
}

/** No person acts on the own account, and a moderator does not act on moderators and admins. */
export function requireActionOn(actor: Actor, target: Pick<User, 'id' | 'role'>): void {
  if (actor.userId === target.id) throw new Refusal('own_account', 'You cannot take this action on your own account.')
  if (actor.role === 'moderator' && target.role !== null) {
    throw new Refusal('target_outranks', 'Only an admin can take actions on moderators and admins.')
  }
}

/** Locks all admins, so that two simultaneous actions cannot remove the last two. */
export async function lockAdmins(transaction: Knex.Transaction): Promise<readonly number[]> {
  const admins = await User.query(transaction)
    .where({ role: 'admin' })
    .whereNull('closedAt')
    .whereNull('lockedAt')
    .whereNull('closeAt')
    .orderBy('id')
    .select('id')
    .forUpdate()
  return admins.map(({ id }) => id)
}

export function requireOtherAdmin(admins: readonly number[], userId: number): void {
  if (admins.length === 1 && admins[0] === userId) {
    throw new Refusal('last_admin', 'This is the last admin of the pod. Make another admin first.')
  }
}

function roleNeeded(power: Power): Refusal {
  const role = power === 'moderation' ? 'moderator or admin' : 'admin'
  return new Refusal('role_needed', `This needs the role ${role}.`)
}
