import { randomBytes } from 'node:crypto'
import { hash } from '@node-rs/argon2'
import type { QueryBuilder } from 'objection'
import { findFactors } from '../../persistence/accounts/factors.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { User, UserSecrets } from '../../persistence/models/user.js'
import { findMovedPerson } from '../../persistence/people/moved-people.js'
import type { Services } from '../../services/services.js'
import { ARGON2 } from './accounts.js'
import { hasFactor } from './factors/second-factor.js'
import { replaceBcrypt, verifyPassword } from './passwords/verify-password.js'

/** Reads a username from the text of the sign-in form. A local address is accepted too. */
export function normaliseUsername(services: Pick<Services, 'config'>, typedName: string): string {
  const name = typedName.trim().toLowerCase()
  return name.endsWith(`@${services.config.host}`) ? name.slice(0, -services.config.host.length - 1) : name
}

/** The credential of a sign-in, and whether it is still valid. */
export interface Credential {
  readonly address: string
  isValid(): Promise<boolean>
}

/**
 * To be called after the session, or the second step, is stored: a credential that is revoked between its check and that moment must not
 * leave a session. Deletes all sessions and second steps of the account then, and returns true.
 */
export async function endSessionsIfRevoked({ db }: Pick<Services, 'db'>, credential: Credential): Promise<boolean> {
  if (await credential.isValid()) return false
  await deleteSessions(db, credential.address)
  return true
}

/** The sign-in is valid until the password changes, or a second factor is turned on that the sign-in did not require. */
export interface SignIn extends Credential {
  readonly userId: number
  readonly needsFactor: boolean
  /** The account is being closed, and the sign-in alone does not keep it: it leads to `/settings/close` only. */
  readonly isClosing: boolean
}

/**
 * Undefined if refused. Unknown, closed and locked accounts take one statement and as long as a wrong password, so that the response
 * does not reveal which names exist.
 */
export async function signIn(
  services: Pick<Services, 'config' | 'db' | 'secrets' | 'now'>,
  username: string,
  password: string,
): Promise<SignIn | undefined> {
  const user = await whereSignInName(
    services,
    User.query(services.db).withGraphJoined('[person, secrets]'),
    username,
  ).first()
  const knownHash = user?.secrets?.passwordHash
  const isRight = await verifyPassword(services, knownHash ?? (await hashForUnknownUsers()), password)
  if (!isRight || !knownHash || !user?.person || !mayHaveAccess(user)) return undefined
  const passwordHash = await replaceBcrypt(services, { userId: user.id, passwordHash: knownHash }, password)
  await user.$query(services.db).patch({ lastSignInAt: services.now() })
  const { address } = user.person
  const { id: userId } = user
  const needsFactor = hasFactor(await findFactors(services.db, userId))
  return {
    userId,
    address,
    needsFactor,
    isClosing: isClosingForGood(services, user),
    async isValid() {
      if (!(await isPasswordHash(services, userId, passwordHash))) return false
      return needsFactor || !hasFactor(await findFactors(services.db, userId))
    },
  }
}

/** The newest address of an account that has moved away, if the password is that of the old account. It is deleted after a while. */
export async function findMovedAddress(
  services: Pick<Services, 'config' | 'db' | 'secrets'>,
  username: string,
  password: string,
): Promise<string | undefined> {
  // Other locked accounts take as many statements as unknown names.
  const movedAccounts = User.query(services.db)
    .withGraphJoined('[person, secrets]')
    .whereExists(services.db('account_migrations').where({ oldPersonId: services.db.ref('users.personId') }))
  const user = await whereSignInName(services, movedAccounts, username).first()
  if (!user?.person || !user.secrets?.passwordHash) return undefined
  const movedPerson = await findMovedPerson(services.db, { address: user.person.address })
  if (movedPerson === undefined || !(await verifyPassword(services, user.secrets.passwordHash, password)))
    return undefined
  return movedPerson.newest.address
}

/**
 * Restricts a query to the account of a normalised name: a username, or a confirmed e-mail address. `normaliseUsername` has removed the
 * host of this pod. A name that ended in it is first taken as a diaspora* ID, then as an e-mail address.
 */
export function whereSignInName(
  { config }: Pick<Services, 'config'>,
  query: QueryBuilder<User, User[]>,
  name: string,
): QueryBuilder<User, User[]> {
  const email = name.includes('@') ? name : `${name}@${config.host}`
  return query
    .whereRaw('(users.username = ? or (lower(users.email) = ? and users.email_confirmed_at is not null))', [
      name,
      email,
    ])
    .orderByRaw('users.username = ? desc', [name])
}

/** False if the password has changed. */
export async function isPasswordHash(
  { db }: Pick<Services, 'db'>,
  userId: number,
  passwordHash: string,
): Promise<boolean> {
  return (await UserSecrets.query(db).findOne({ userId, passwordHash })) !== undefined
}

/** Whether the password is that of the user now. */
export async function isPassword(
  services: Pick<Services, 'db' | 'secrets'>,
  userId: number,
  password: string,
): Promise<boolean> {
  const secrets = await UserSecrets.query(services.db).findById(userId)
  return secrets?.passwordHash ? verifyPassword(services, secrets.passwordHash, password) : false
}

/** The owner of an account who closes it may sign in to keep it. */
export function mayHaveAccess({ closedAt, lockedAt, closingBy }: User): boolean {
  return closedAt === null && lockedAt === null && closingBy !== 'moderator'
}

/** A sign-in keeps an account that was being closed because it was unused. */
export function isClosingForGood({ now }: Pick<Services, 'now'>, { closeAt, closingBy }: User): boolean {
  return closeAt !== null && (closingBy !== 'inactivity' || closeAt <= now())
}

let unknownUserHash: Promise<string> | undefined

function hashForUnknownUsers(): Promise<string> {
  unknownUserHash ??= hash(randomBytes(32).toString('hex'), ARGON2)
  return unknownUserHash
}
