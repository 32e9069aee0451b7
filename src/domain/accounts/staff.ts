import type { MailState, Role } from '../../persistence/models/user.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'

/** A signed-in user with the role that the database has at this moment; null: a user without a role. */
export interface AccountWithRole {
  readonly userId: number
  readonly personId: number
  readonly username: string
  readonly address: string
  readonly guid: string
  readonly role: Role | null
  readonly language: string
  readonly timeZone: string
  readonly mailState: MailState
}

/** Reads the role again for each request: a session or token must not outlive it. Undefined: closed, being closed, locked or unknown. */
export async function findAccountWithRole(
  { db }: Pick<Services, 'db'>,
  account: { readonly 'person.address': string } | { readonly 'users.id': number },
): Promise<AccountWithRole | undefined> {
  return selectUnlocked(db).where(account).whereNull('users.closeAt').first().castTo<AccountWithRole | undefined>()
}

/** A signed-in user who may be closing the account, and can keep it until then. */
export interface OwnAccount extends AccountWithRole {
  /** The end of the grace period; null: the account is not being closed. */
  readonly closeAt: Date | null
}

/** Returns the account for its owner, even while the owner closes it. */
export async function findOwnAccount({ db }: Pick<Services, 'db'>, address: string): Promise<OwnAccount | undefined> {
  return selectUnlocked(db)
    .where({ 'person.address': address })
    .whereRaw(`users.closing_by is distinct from 'moderator'`)
    .select('users.closeAt')
    .first()
    .castTo<OwnAccount | undefined>()
}

function selectUnlocked(db: Services['db']) {
  return User.query(db)
    .joinRelated('person')
    .whereNull('users.closedAt')
    .whereNull('users.lockedAt')
    .select('users.id as userId', 'users.personId', 'users.username', 'users.role', 'users.language', 'users.mailState')
    .select('users.timeZone', 'person.address', 'person.guid')
}
