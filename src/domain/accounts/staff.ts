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

/** Reads the role anew for each request: a session or token must not outlive it. Undefined: closed, being closed, locked or unknown. */
export async function findAccountWithRole(
  { db }: Pick<Pod, 'db'>,
  account: { readonly 'person.address': string } | { readonly 'users.id': number },
): Promise<AccountWithRole | undefined> {
  return User.query(db)
    .joinRelated('person')
    .where(account)
    .whereNull('users.closedAt')
    .whereNull('users.lockedAt')
    .whereNull('users.closeAt')
    .select('users.id as userId', 'users.personId', 'users.username', 'users.role', 'person.address', 'person.guid')
    .first()
    .castTo<AccountWithRole | undefined>()
}
