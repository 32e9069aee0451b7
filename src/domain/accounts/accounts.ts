import { randomBytes } from 'node:crypto'
import { hash } from '@node-rs/argon2'
import type { Knex } from 'knex'
import { sendSignal } from '../../jobs/signals.js'
import { deleteUnusedCodes } from '../../persistence/accounts/issued-tokens.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { isNamePending, lockUsername } from '../../persistence/accounts/pending-sign-ups.js'
import { endExportsOfUser } from '../../persistence/archives/exports.js'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Authorization } from '../../persistence/models/access-token.js'
import { Aspect } from '../../persistence/models/aspect.js'
import { Person } from '../../persistence/models/person.js'
import { User, UserSecrets } from '../../persistence/models/user.js'
import { emptyPeople } from '../../persistence/people/empty-people.js'
import type { Pod } from '../../pod/pod.js'
import { TEXT_LIMITS } from '../limits.js'
import { enqueueAccountMail } from '../mail/enqueue-mail.js'
import { lockAdmins, requireOtherAdmin } from '../moderation/actor.js'
import { enqueueMessage } from '../outbound/outgoing-messages.js'
import { Refusal } from '../refusals.js'
import { removeFactors } from './factors/second-factor.js'
import { isPodAccountName } from './pod-account.js'
import { COMMON_PASSWORDS } from './sign-ups/common-passwords.js'

type AccountRefusal =
  | 'username_invalid'
  | 'username_reserved'
  | 'username_taken'
  | 'host_changed'
  | 'password_invalid'
  | 'user_missing'
  | 'user_closed'
  | 'podmin_account'

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
  pod: Pod,
  { username, password, language }: NewUser,
  /** Runs in the transaction of the account; if it throws, no account is created. */
  also?: (transaction: Knex.Transaction, user: User) => Promise<void>,
): Promise<Account> {
  requireUsername(pod, username)
  requirePassword(password, { username, email: null })
  return createAccount(pod, { username, passwordHash: await hash(password, ARGON2), language }, also)
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

/** The same for a checked name and a hashed password. */
export async function createAccount(
  pod: Pod,
  { username, passwordHash, language = pod.config.defaultLanguage, pendingId }: NewAccount,
  also: (transaction: Knex.Transaction, user: User) => Promise<void> = async () => undefined,
): Promise<Account> {
  await requireUnchangedHost(pod)
  const t = pod.locales.translator(language)
  // An early check, because key generation takes seconds. The unique constraint decides in the end.
  if (await User.byUsername(pod.db, username)) throw usernameTaken(username)
  const keys = await pod.crypto.generateKeyPair()

  try {
    return await inTransaction(pod, async (transaction) => {
      await lockUsername(transaction, username)
      if (pendingId === undefined && (await isNamePending(transaction, username))) throw usernameTaken(username)
      const person = await Person.insertWithProfile(transaction, {
        guid: randomBytes(16).toString('hex'),
        address: `${username}@${pod.config.host}`,
        publicKey: keys.publicKey,
      })
      const user = await User.query(transaction).insert({ personId: person.id, username, language }).returning('*')
      const sealedPrivateKey = pod.secrets.seal(keys.privateKey, `user ${user.id}`)
      await UserSecrets.query(transaction).insert({ userId: user.id, passwordHash, sealedPrivateKey, bound: true })
      await Aspect.query(transaction).insert(
        DEFAULT_ASPECTS.map((name, index) => ({ userId: user.id, name: t(name), position: index + 1 })),
      )
      await also(transaction, user)
      return accountOf(user, person)
    })
  } catch (error) {
    const isTaken = isUniqueViolation(error, 'users_username_key') || isUniqueViolation(error, 'people_address_key')
    throw isTaken ? usernameTaken(username) : error
  }
}

/** Message for operators if the host of the existing accounts differs from the configured host. */
export async function findHostMismatch({ db, config }: Pick<Pod, 'db' | 'config'>): Promise<string | undefined> {
  const newest = await User.query(db).orderBy('id', 'desc').first().withGraphFetched('person')
  const host = newest && personOf(newest).address.replace(/^[^@]*@/, '')
  if (host === undefined || host === config.host) return undefined
  return `This database belongs to ${host}, but POD_URL and PORT say ${config.host}. Restore the original POD_URL or PORT.`
}

/** Lists open and closed accounts by username. */
export async function listUsers(
  pod: Pod,
  page: { readonly after: string | undefined; readonly limit: number },
): Promise<readonly Account[]> {
  const users = await User.query(pod.db)
    .where('username', '>', page.after ?? '')
    .orderBy('username')
    .limit(page.limit)
    .withGraphFetched('person')
  return users.map((user) => accountOf(user, personOf(user)))
}

export async function findUser(pod: Pod, username: string): Promise<Account | undefined> {
  const user = await User.byUsername(pod.db, username)
  return user && accountOf(user, personOf(user))
}

/** Sets a password and ends all access of the account: sessions, tokens, codes and live streams. Applications can be excepted. */
export async function resetPassword(
  pod: Pod,
  username: string,
  password: string,
  { shouldKeepApplications = false }: { readonly shouldKeepApplications?: boolean } = {},
  also: (transaction: Knex.Transaction, user: User) => Promise<void> = async () => undefined,
): Promise<void> {
  requirePassword(password, (await User.byUsername(pod.db, username)) ?? { username, email: null })
  const passwordHash = await hash(password, ARGON2)
  await changeOpenUser(pod, username, async (transaction, user) => {
    await UserSecrets.query(transaction).findById(user.id).patch({ passwordHash })
    await endExportsOfUser(transaction, user.id)
    await deleteSessions(transaction, personOf(user).address)
    if (shouldKeepApplications) await deleteUnusedCodes(transaction, user.id)
    else await deleteAuthorizations(transaction, user.id)
    await endMailLinks(transaction, user.id)
    await enqueueAccountMail(pod, transaction, 'password_changed', user.id)
    await also(transaction, user)
  })
}

/** Ends the links in mails to a user, and a change of the address that is not confirmed. An undo of a change stays. */
export async function endMailLinks(transaction: Knex.Transaction, userId: number): Promise<void> {
  await transaction('account_tokens').where({ userId }).delete()
  await User.query(transaction).findById(userId).patch({ unconfirmedEmail: null })
}

/** Ends the sessions of a user in browsers, and live streams whose account is locked. Tokens stay, so that an undo restores them. */
export async function endSessionsAndStreams(transaction: Knex.Transaction, address: string): Promise<void> {
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
async function deleteAuthorizations(transaction: Knex.Transaction, userId: number): Promise<void> {
  await Authorization.query(transaction).delete().where({ userId })
  await sendSignal(transaction, 'access_ended')
}

/**
 * Closes an account at once: sign-in and tokens stop working, its content is deleted here, and an account deletion is sent to the
 * pods that have data of it. The username stays reserved.
 */
export async function closeUser(
  pod: Pod,
  username: string,
  also: (transaction: Knex.Transaction, user: User) => Promise<void> = async () => undefined,
): Promise<void> {
  await changeOpenUser(pod, username, async (transaction, user) => {
    requireNotPodmin(pod, user)
    requireOtherAdmin(await lockAdmins(transaction), user.id)
    await closeNow(pod, transaction, user)
    await also(transaction, user)
  })
}

/** The same in a transaction that has locked the account and checked that it may be closed. */
export async function closeNow(
  pod: Pick<Pod, 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  user: User,
): Promise<void> {
  await enqueueAccountDeletion(pod, transaction, user)
  await closeWithoutSending(transaction, user, pod.now())
}

/** Closes an account of which other pods know already. */
export async function closeWithoutSending(transaction: Knex.Transaction, user: User, closedAt: Date): Promise<void> {
  await user.$query(transaction).patch({ closedAt, role: null })
  await UserSecrets.query(transaction).findById(user.id).patch({ passwordHash: null })
  await deleteAuthorizations(transaction, user.id)
  await deleteSessions(transaction, personOf(user).address)
  await endExportsOfUser(transaction, user.id)
  await removeFactors(transaction, user.id)
  await transaction('browser_sessions').where({ userId: user.id }).delete()
  await emptyPeople(transaction, [user.personId], closedAt)
}

/** The account of the podmin is neither restricted nor closed while the setting names it. */
export function requireNotPodmin({ config }: Pick<Pod, 'config'>, { username }: Pick<User, 'username'>): void {
  if (username !== config.podminAccount) return
  throw refusal('podmin_account', 'The setting PODMIN_ACCOUNT names this account. Name another one there first.')
}

/** Sends the account deletion to contacts and resharers. It must run before the deletion, which removes both relations. */
async function enqueueAccountDeletion(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  user: User,
): Promise<void> {
  const { address, guid } = personOf(user)
  const resharers: readonly { readonly authorId: number }[] = await transaction('posts as reshares')
    .join('posts as roots', 'roots.id', 'reshares.rootId')
    .where({ 'roots.authorId': user.personId })
    .distinct('reshares.authorId')
    .orderBy('reshares.authorId')
  await enqueueMessage(
    pod,
    transaction,
    {
      record: 'account_deletion',
      guid,
      verb: 'create',
      senderId: user.personId,
      public: true,
      entity: { type: 'account_deletion', author: address },
    },
    { of: 'contacts', userId: user.id, and: resharers.map(({ authorId }) => authorId) },
  )
}

/** Changes an account that is not closed. The row is locked, so that a simultaneous closing waits. */
export async function changeOpenUser<Result>(
  pod: Pick<Pod, 'db' | 'requestContext'>,
  username: string,
  change: (transaction: Knex.Transaction, user: User) => Promise<Result>,
): Promise<Result> {
  return inTransaction(pod, async (transaction) => {
    const user = await User.byUsername(transaction, username).forUpdate()
    if (!user) throw refusal('user_missing', `There is no local account named ${username}.`)
    if (user.closedAt) throw refusal('user_closed', `The account ${username} is closed.`)
    return change(transaction, user)
  })
}

/** All refusals that `createUser` would throw for this username and password. */
export async function findNewAccountRefusals(
  pod: Pick<Pod, 'config' | 'db'>,
  { username, password }: { readonly username: string; readonly password: string },
): Promise<readonly Refusal[]> {
  const isTaken = async () =>
    (await User.byUsername(pod.db, username)) !== undefined || (await isNamePending(pod.db, username))
  const ofUsername = usernameRefusal(pod, username) ?? ((await isTaken()) ? usernameTaken(username) : undefined)
  return [ofUsername, passwordRefusal(password, { username, email: null })].filter((refusal) => refusal !== undefined)
}

function requireUsername(pod: Pod, username: string): void {
  const refused = usernameRefusal(pod, username)
  if (refused) throw refused
}

function usernameRefusal({ config }: Pick<Pod, 'config'>, username: string): Refusal<AccountRefusal> | undefined {
  if (!USERNAME.test(username)) {
    return refusal(
      'username_invalid',
      'A username has 1 to 32 lower-case letters (a-z), digits, dots, hyphens or underscores.',
    )
  }
  if (!config.usernameBlacklist.includes(username) && !isPodAccountName(username)) return undefined
  return refusal('username_reserved', `The username ${username} is reserved.`)
}

/** Refuses new accounts with another host. Typical cause: a command in a terminal without the settings of the pod. */
async function requireUnchangedHost(pod: Pod): Promise<void> {
  const trouble = await findHostMismatch(pod)
  if (trouble !== undefined) throw refusal('host_changed', trouble)
}

/** The person whose password it is to be: it must not be one of these names. */
type PasswordOwner = Pick<User, 'username' | 'email'>

export function requirePassword(password: string, owner: PasswordOwner): void {
  const refused = passwordRefusal(password, owner)
  if (refused) throw refused
}

function passwordRefusal(password: string, { username, email }: PasswordOwner): Refusal<AccountRefusal> | undefined {
  const lower = password.toLowerCase()
  if (COMMON_PASSWORDS.has(lower)) {
    return refusal('password_invalid', 'This password is one of the most used ones.', 'password_common')
  }
  if (lower === username || lower.startsWith(`${username}@`) || lower === email?.toLowerCase()) {
    return refusal('password_invalid', 'Choose a password that is not your name or address.', 'password_is_name')
  }
  const isLongEnough = [...password].length >= TEXT_LIMITS.passwordCharacters
  if (isLongEnough && Buffer.byteLength(password) <= TEXT_LIMITS.passwordBytes) return undefined
  return refusal(
    'password_invalid',
    `A password has at least ${TEXT_LIMITS.passwordCharacters} characters and at most ${TEXT_LIMITS.passwordBytes} bytes.`,
  )
}

export function usernameTaken(username: string): Refusal {
  return refusal('username_taken', `The username ${username} is taken.`)
}

/** `explanation` names the text of pages, if the reason has several. */
function refusal(reason: AccountRefusal, message: string, explanation?: string): Refusal<AccountRefusal> {
  return new Refusal(reason, message, explanation === undefined ? {} : { details: { explanation } })
}

function personOf(user: User): Person {
  if (user.person === undefined) throw new Error(`The person of user ${user.id} was not read with it.`)
  return user.person
}

function accountOf(user: User, { guid, address }: Person): Account {
  const { username, role, createdAt, lockedAt, closedAt } = user
  return { guid, username, address, role: role ?? 'none', createdAt, lockedAt, closedAt }
}
