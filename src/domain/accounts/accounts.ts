import { randomBytes } from 'node:crypto'
import { hash } from '@node-rs/argon2'
import type { Knex } from 'knex'
import { sendSignal } from '../../jobs/signals.js'
import { deleteUnusedCodes } from '../../persistence/accounts/issued-tokens.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { isNamePending, lockUsername } from '../../persistence/accounts/pending-sign-ups.js'
import { endExportsOfUser } from '../../persistence/archives/exports.js'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Authorization } from '../../persistence/models/access-token.js'
import { Aspect } from '../../persistence/models/aspect.js'
import { Person } from '../../persistence/models/person.js'
import { User, UserSecrets } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { TEXT_LIMITS } from '../limits.js'
import { enqueueAccountMail } from '../mail/enqueue-mail.js'
import type { RefusalReason } from '../refusal-reasons.js'
import { Refusal } from '../refusals.js'
import { isPodAccountName } from './pod-account.js'
import { COMMON_PASSWORDS } from './sign-ups/common-passwords.js'

export const ROLES = ['admin', 'moderator', 'none'] as const

export type RoleChoice = (typeof ROLES)[number]

export interface Account {
  readonly guid: string
  readonly username: string
  readonly address: string
  readonly role: RoleChoice
  readonly createdAt: Date
  readonly lockedAt: Date | null
  readonly closedAt: Date | null
}

/** Excludes `.` and `..`, which have another meaning in a URL path. */
const USERNAME = /^(?!\.{1,2}$)[a-z0-9_.-]{1,32}$/
/** The first aspects, with names in the language of the account. */
const DEFAULT_ASPECTS = ['aspect.family', 'aspect.friends', 'aspect.work', 'aspect.acquaintances'] as const
/** 19 MiB and two passes take about 16 ms. The default algorithm of the library is argon2id. */
export const ARGON2 = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Creates a local user with keys, an empty profile and the default aspects. */
export async function createUser(
  services: Services,
  { username, password, language }: NewUser,
  /** Runs in the transaction of the account; if it throws, no account is created. */
  inSameTransaction?: (transaction: Knex.Transaction, user: User) => Promise<void>,
): Promise<Account> {
  requireUsername(services, username)
  requirePassword(password, { username, email: null })
  return createAccount(services, { username, passwordHash: await hash(password, ARGON2), language }, inSameTransaction)
}

interface NewUser {
  readonly username: string
  readonly password: string
  /** Default: that of the pod. */
  readonly language?: string | undefined
}

interface NewAccount {
  readonly username: string
  readonly passwordHash: string
  readonly language?: string | undefined
  /** The pending sign-up that reserves the name for this account. */
  readonly pendingId?: number
}

/** Creates an account from a checked name and a hashed password. */
export async function createAccount(
  services: Services,
  { username, passwordHash, language = services.config.defaultLanguage, pendingId }: NewAccount,
  inSameTransaction: (transaction: Knex.Transaction, user: User) => Promise<void> = async () => undefined,
): Promise<Account> {
  await requireUnchangedHost(services)
  const t = services.locales.translator(language)
  // An early check, because key generation takes seconds. The unique constraint decides in the end.
  if (await User.byUsername(services.db, username)) throw usernameTaken(username)
  const keys = await services.crypto.generateKeyPair()

  try {
    return await inRequestTransaction(services, async (transaction) => {
      await lockUsername(transaction, username)
      if (pendingId === undefined && (await isNamePending(transaction, username))) throw usernameTaken(username)
      const person = await Person.insertWithProfile(transaction, {
        guid: randomBytes(16).toString('hex'),
        address: `${username}@${services.config.host}`,
        publicKey: keys.publicKey,
      })
      const user = await User.query(transaction).insert({ personId: person.id, username, language }).returning('*')
      const sealedPrivateKey = services.secrets.encrypt(keys.privateKey, `user ${user.id}`)
      await UserSecrets.query(transaction).insert({ userId: user.id, passwordHash, sealedPrivateKey, bound: true })
      await Aspect.query(transaction).insert(
        DEFAULT_ASPECTS.map((name, index) => ({ userId: user.id, name: t(name), position: index + 1 })),
      )
      await inSameTransaction(transaction, user)
      return accountOf(user, person)
    })
  } catch (error) {
    const isTaken = isUniqueViolation(error, 'users_username_key') || isUniqueViolation(error, 'people_address_key')
    throw isTaken ? usernameTaken(username) : error
  }
}

/** Message for operators if the host of the existing accounts differs from the configured host. */
export async function findHostMismatch({ db, config }: Pick<Services, 'config' | 'db'>): Promise<string | undefined> {
  const newest = await User.query(db).orderBy('id', 'desc').first().withGraphFetched('person')
  const host = newest && personOf(newest).address.replace(/^[^@]*@/, '')
  if (host === undefined || host === config.host) return undefined
  return `This database belongs to ${host}, but POD_URL and PORT say ${config.host}. Restore the original POD_URL or PORT.`
}

/** Lists open and closed accounts by username. */
export async function listUsers(
  services: Services,
  page: { readonly after: string | undefined; readonly limit: number },
): Promise<readonly Account[]> {
  const users = await User.query(services.db)
    .where('username', '>', page.after ?? '')
    .orderBy('username')
    .limit(page.limit)
    .withGraphFetched('person')
  return users.map((user) => accountOf(user, personOf(user)))
}

export async function findUser(services: Services, username: string): Promise<Account | undefined> {
  const user = await User.byUsername(services.db, username)
  return user && accountOf(user, personOf(user))
}

interface PasswordResetOptions {
  readonly shouldKeepApplications?: boolean
  readonly inSameTransaction?: (transaction: Knex.Transaction, user: User) => Promise<void>
}

/** Sets a password and ends all access of the account: sessions, tokens, codes and live streams. Applications can be excepted. */
export async function resetPassword(
  services: Services,
  username: string,
  password: string,
  { shouldKeepApplications = false, inSameTransaction = async () => undefined }: PasswordResetOptions = {},
): Promise<void> {
  requirePassword(password, (await User.byUsername(services.db, username)) ?? { username, email: null })
  const passwordHash = await hash(password, ARGON2)
  await changeOpenUser(services, username, async (transaction, user) => {
    await UserSecrets.query(transaction).findById(user.id).patch({ passwordHash })
    await endExportsOfUser(transaction, user.id)
    await deleteSessions(transaction, personOf(user).address)
    if (shouldKeepApplications) await deleteUnusedCodes(transaction, user.id)
    else await deleteAuthorizations(transaction, user.id)
    await endMailLinks(transaction, user.id)
    await enqueueAccountMail(services, transaction, 'password_changed', user.id)
    await inSameTransaction(transaction, user)
  })
}

/** Ends the links in mails to a user, and a change of the address that is not confirmed. An undo of a change stays. */
export async function endMailLinks(transaction: Knex.Transaction, userId: number): Promise<void> {
  await transaction('account_tokens').where({ userId }).delete()
  await User.query(transaction).findById(userId).patch({ unconfirmedEmail: null })
}

/** Ends the sessions of a user in browsers, and live streams whose account is locked. Tokens stay, so that an undo restores them. */
export async function suspendAccess(transaction: Knex.Transaction, address: string): Promise<void> {
  await deleteSessions(transaction, address)
  await sendSignal(transaction, 'access_ended')
}

/** Ends all access of an account: sessions, tokens, codes, live streams and files of exports. */
export async function endAllAccess(
  transaction: Knex.Transaction,
  { userId, address }: { readonly userId: number; readonly address: string },
): Promise<void> {
  await deleteSessions(transaction, address)
  await deleteAuthorizations(transaction, userId)
  await endExportsOfUser(transaction, userId)
}

/** Deletes the authorizations of a user, with their codes and tokens, and ends live streams. */
export async function deleteAuthorizations(transaction: Knex.Transaction, userId: number): Promise<void> {
  await Authorization.query(transaction).delete().where({ userId })
  await sendSignal(transaction, 'access_ended')
}

/** The account of the podmin is neither restricted nor closed while the setting names it. */
export function requireNotPodmin({ config }: Pick<Services, 'config'>, { username }: Pick<User, 'username'>): void {
  if (username !== config.podminAccount) return
  throw refusal('podmin_account', 'The setting PODMIN_ACCOUNT names this account. Name another one there first.')
}

/** Changes an account that is not closed. The row is locked, so that a simultaneous closing waits. */
export async function changeOpenUser<Result>(
  services: Pick<Services, 'db' | 'requestContext'>,
  username: string,
  change: (transaction: Knex.Transaction, user: User) => Promise<Result>,
): Promise<Result> {
  return inRequestTransaction(services, async (transaction) => {
    const user = await User.byUsername(transaction, username).forUpdate()
    if (!user) throw refusal('user_missing', `There is no local account named ${username}.`)
    if (user.closedAt) throw refusal('user_closed', `The account ${username} is closed.`)
    return change(transaction, user)
  })
}

/** All refusals that `createUser` would throw for this username and password. */
export async function findNewAccountRefusals(
  services: Pick<Services, 'config' | 'db'>,
  { username, password }: { readonly username: string; readonly password: string },
): Promise<readonly Refusal[]> {
  const isTaken = async () =>
    (await User.byUsername(services.db, username)) !== undefined || (await isNamePending(services.db, username))
  const nameRefusal = usernameRefusal(services, username) ?? ((await isTaken()) ? usernameTaken(username) : undefined)
  return [nameRefusal, passwordRefusal(password, { username, email: null })].filter((refusal) => refusal !== undefined)
}

function requireUsername(services: Services, username: string): void {
  const foundRefusal = usernameRefusal(services, username)
  if (foundRefusal) throw foundRefusal
}

function usernameRefusal({ config }: Pick<Services, 'config'>, username: string): Refusal | undefined {
  if (!USERNAME.test(username)) {
    return refusal(
      'username_invalid',
      'A username must have 1 to 32 characters: lower-case letters (a-z), digits, dots, hyphens and underscores.',
    )
  }
  if (!config.usernameBlacklist.includes(username) && !isPodAccountName(username)) return undefined
  return refusal('username_reserved', `The username ${username} is reserved.`)
}

/** Refuses new accounts with another host. Typical cause: a command in a terminal without the settings of the pod. */
async function requireUnchangedHost(services: Services): Promise<void> {
  const mismatch = await findHostMismatch(services)
  if (mismatch !== undefined) throw refusal('host_changed', mismatch)
}

/** The person whose password it is to be: it must not be one of these names. */
type PasswordOwner = Pick<User, 'username' | 'email'>

export function requirePassword(password: string, owner: PasswordOwner): void {
  const foundRefusal = passwordRefusal(password, owner)
  if (foundRefusal) throw foundRefusal
}

function passwordRefusal(password: string, { username, email }: PasswordOwner): Refusal | undefined {
  const lower = password.toLowerCase()
  if (COMMON_PASSWORDS.has(lower)) {
    return refusal('password_invalid', 'This password is too common. Choose another one.', 'password_common')
  }
  if (lower === username || lower.startsWith(`${username}@`) || lower === email?.toLowerCase()) {
    return refusal('password_invalid', 'Choose a password that is not your name or address.', 'password_is_name')
  }
  const isLongEnough = [...password].length >= TEXT_LIMITS.passwordCharacters
  if (isLongEnough && Buffer.byteLength(password) <= TEXT_LIMITS.passwordBytes) return undefined
  return refusal(
    'password_invalid',
    `A password must have at least ${TEXT_LIMITS.passwordCharacters} characters and at most ${TEXT_LIMITS.passwordBytes} bytes.`,
  )
}

export function usernameTaken(username: string): Refusal {
  return refusal('username_taken', `The username ${username} is taken.`)
}

/** `explanation` names the text of pages, if the reason has several. */
function refusal(reason: RefusalReason, message: string, explanation?: string): Refusal {
  return new Refusal(reason, message, explanation === undefined ? {} : { details: { explanation } })
}

export function personOf(user: User): Person {
  if (user.person === undefined) throw new Error(`The person of user ${user.id} was not read with it.`)
  return user.person
}

function accountOf(user: User, { guid, address }: Person): Account {
  const { username, role, createdAt, lockedAt, closedAt } = user
  return { guid, username, address, role: role ?? 'none', createdAt, lockedAt, closedAt }
}
