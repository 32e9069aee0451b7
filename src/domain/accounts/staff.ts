import type { Role } from '../../persistence/models/user.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'

/** A signed-in user with the role that the database has at this moment; null: a member. */
export interface AccountWithRole {
  readonly userId: number
  readonly personId: number
  readonly username: string
  readonly address: string
  readonly guid: string
  readonly role: Role | null
}

/** Reads the role anew for each request: a session or token must not outlive it. Undefined: closed, locked or unknown. */
export async function findAccountWithRole(pod: Pick<Pod, 'db'>, address: string): Promise<AccountWithRole | undefined> {
  return User.query(pod.db)
    .joinRelated('person')
    .where({ 'person.address': address })
    .whereNull('users.closedAt')
    .whereNull('users.lockedAt')
    .select('users.id as userId', 'users.personId', 'users.username', 'users.role', 'person.address', 'person.guid')
    .first()
    .castTo<AccountWithRole | undefined>()
}

/** Whether the role has the powers of `needed`. */
export function hasRole(role: Role | null, needed: Role): boolean {
  return role === 'admin' || role === needed
}
