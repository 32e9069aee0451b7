import type { Knex } from 'knex'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { countMailsOfMailbox, countMailsOfUser } from '../../persistence/mail/mails.js'
import { User, UserSecrets } from '../../persistence/models/user.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import type { Services } from '../../services/services.js'
import { enqueueMails } from '../mail/enqueue-mail.js'
import { MAIL_LIMITS } from '../mail/limits.js'
import { mailboxMac, readMailbox } from '../mail/mailboxes.js'
import type { Actor } from '../moderation/actor.js'
import { recordOperatorChange } from '../operations/record-operator-change.js'
import { Refusal } from '../refusals.js'
import { keepEmailUndo, useEmailUndo, useToken } from './account-tokens.js'
import { type Account, changeOpenUser, createUser, endAllAccess } from './accounts.js'
import { ACCOUNT_LIMITS } from './limits.js'
import { tokenInvalid } from './passwords/password-reset.js'

const DAY_SECONDS = 86_400

/**
 * Begins the change of an e-mail address: a mail to the new one has the link that confirms it, and a mail to the old one undoes the
 * change. Until then the old address stays. Whether another account uses the address is not revealed. Beyond the limits nothing is sent.
 */
export async function requestEmailChange(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'secrets'>,
  userId: number,
  typedAddress: string,
): Promise<void> {
  const email = readMailbox(typedAddress)
  await inRequestTransaction(services, async (transaction) => {
    const user = await User.query(transaction).findById(userId).forUpdate().throwIfNotFound()
    await user.$query(transaction).patch({ unconfirmedEmail: email })
    if (services.config.mail === undefined) return
    const mailbox = mailboxMac(services, email)
    if (!(await maySendChangeMails(transaction, userId, mailbox))) return
    const old = user.emailConfirmedAt === null ? null : user.email
    const undoId = old === null ? undefined : await keepEmailUndo(transaction, userId, old)
    await enqueueMails(services, transaction, [
      { kind: 'confirm_email', userId, mailbox },
      ...(undoId === undefined ? [] : [{ kind: 'email_changing', userId, undoId } as const]),
    ])
  })
}

/** Counts mails to a mailbox of all users one after the other. The row of the user is locked. */
async function maySendChangeMails(transaction: Knex.Transaction, userId: number, mailbox: Buffer): Promise<boolean> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('mailbox ' || ?, 0))`, [mailbox.toString('hex')])
  const toMailbox = await countMailsOfMailbox(transaction, mailbox, DAY_SECONDS)
  if (toMailbox >= MAIL_LIMITS.confirmationsPerDay) return false
  const kinds = ['confirm_email', 'email_changing'] as const
  const mailsToUser = await countMailsOfUser(transaction, userId, { kinds, seconds: DAY_SECONDS })
  return mailsToUser < ACCOUNT_LIMITS.emailChangeMails
}

/** Confirms the mailbox of a token. Of two accounts with one address, the second is refused. */
export async function confirmEmail(services: Pick<Services, 'db' | 'requestContext'>, token: string): Promise<void> {
  await refuseTakenAddress(services, async (transaction) => {
    const usedToken = await useToken(transaction, 'confirm_email', token)
    if (usedToken === undefined) throw tokenInvalid()
    const { userId, email } = usedToken
    const user = await User.query(transaction).findById(userId)
    if (user === undefined || user.closedAt !== null || email === null || user.unconfirmedEmail !== email)
      throw tokenInvalid()
    await setConfirmedEmail(transaction, userId, email)
  })
}

/** Restores the old address, ends all access, and sends a link for a new password to the old address. */
export async function undoEmailChange(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs'>,
  token: string,
): Promise<void> {
  await refuseTakenAddress(services, async (transaction) => {
    const usedUndo = await useEmailUndo(transaction, token)
    if (usedUndo === undefined) throw tokenInvalid()
    const { userId, email } = usedUndo
    const user = await User.query(transaction).findById(userId).withGraphFetched('person')
    if (!user?.person || user.closedAt !== null) throw tokenInvalid()
    await setConfirmedEmail(transaction, userId, email)
    await UserSecrets.query(transaction).findById(userId).patch({ passwordHash: null })
    await transaction('account_tokens').where({ userId }).delete()
    await endAllAccess(transaction, { userId, address: user.person.address })
    await enqueueMails(services, transaction, [{ kind: 'password_reset', userId }])
  })
}

/** An address that another account has claimed in the meantime makes the link invalid. */
async function refuseTakenAddress(
  services: Pick<Services, 'db' | 'requestContext'>,
  change: (transaction: Knex.Transaction) => Promise<void>,
): Promise<void> {
  try {
    await inRequestTransaction(services, change)
  } catch (error) {
    throw isUniqueViolation(error, 'users_email') ? tokenInvalid() : error
  }
}

/**
 * The address is no longer the unconfirmed one of any user, and links to reset the password that went to the old one end. Its mailbox
 * works, so that notification mails begin again.
 */
async function setConfirmedEmail(transaction: Knex.Transaction, userId: number, email: string): Promise<void> {
  await transaction('users')
    .where({ id: userId })
    .update({
      email,
      emailConfirmedAt: transaction.raw(NOW_SQL),
      // The first digest is tomorrow's, in every time zone.
      digestOn: transaction.raw(`(now() - interval '12 hours')::date`),
      digestAt: transaction.raw(NOW_SQL),
      unconfirmedEmail: null,
      mailState: 'ok',
    })
  await transaction('mail_faults').where({ userId }).delete()
  await transaction('account_tokens').where({ userId, purpose: 'password_reset' }).delete()
  await transaction('users').whereRaw('lower(unconfirmed_email) = lower(?)', [email]).update({ unconfirmedEmail: null })
}

export interface EmailOfUser {
  readonly username: string
  readonly email: string | null
  readonly confirmed: boolean
  readonly unconfirmedEmail: string | null
  readonly mailState: User['mailState']
}

export async function getEmail({ db }: Pick<Services, 'db'>, username: string): Promise<EmailOfUser> {
  const user = await User.byUsername(db, username)
  if (user === undefined) throw new Refusal('user_missing', `There is no local account named ${username}.`)
  const { email, emailConfirmedAt, unconfirmedEmail, mailState } = user
  return { username: user.username, email, confirmed: emailConfirmedAt !== null, unconfirmedEmail, mailState }
}

/** Creates an account by command. The e-mail address counts as confirmed. */
export async function createUserByOperator(
  services: Services,
  person: {
    readonly username: string
    readonly password: string
    readonly email: string | undefined
    readonly language: string | undefined
  },
): Promise<Account> {
  const { email: typed, language } = person
  const email = typed === undefined ? undefined : readMailbox(typed)
  const { languages } = services.locales
  if (language !== undefined && !languages.includes(language)) {
    throw new Refusal('language_invalid', `The language is one of ${languages.join(', ')}.`)
  }
  try {
    return await createUser(services, person, async (transaction, user) => {
      if (email !== undefined) await setConfirmedEmail(transaction, user.id, email)
    })
  } catch (error) {
    throw isUniqueViolation(error, 'users_email') ? emailTaken() : error
  }
}

/** Sets an address by command: as confirmed, or with a mail whose link confirms it. */
export async function setEmail(
  services: Services,
  actor: Actor,
  username: string,
  { address, confirmed }: { readonly address: string; readonly confirmed: boolean },
): Promise<void> {
  const email = readMailbox(address)
  const { id } = await changeOpenUser(services, username, async (_, user) => user)
  const target = { type: 'person', label: username }
  try {
    await recordOperatorChange(services, actor, { action: 'user.email', target }, async (transaction) => {
      if (confirmed) await setConfirmedEmail(transaction, id, email)
      return { confirmed }
    })
  } catch (error) {
    throw isUniqueViolation(error, 'users_email') ? emailTaken() : error
  }
  if (!confirmed) await requestEmailChange(services, id, email)
}

function emailTaken(): Refusal {
  return new Refusal('email_taken', 'Another account has this e-mail address.')
}
