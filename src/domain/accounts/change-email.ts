import type { Knex } from 'knex'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { User, UserSecrets } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { enqueueMails } from '../mail/enqueue-mail.js'
import { readMailbox } from '../mail/mailboxes.js'
import type { Actor } from '../moderation/actor.js'
import { recordOperation } from '../operations/record-operation.js'
import { Refusal } from '../refusals.js'
import { type AccountToken, issueToken, useToken } from './account-tokens.js'
import { changeOpenUser } from './accounts.js'
import { tokenInvalid } from './password-reset.js'

/**
 * Begins the change of an e-mail address: a mail to the new one has the link that confirms it, and a mail to the old one undoes the
 * change. Until then the old address stays. Whether somebody else uses the address is not revealed.
 */
export async function requestEmailChange(
  pod: Pick<Pod, 'db' | 'jobs' | 'config' | 'claimedKey'>,
  userId: number,
  typed: string,
): Promise<void> {
  const email = readMailbox(typed)
  await inTransaction(pod, async (transaction) => {
    const user = await User.query(transaction).findById(userId).forUpdate().throwIfNotFound()
    await user.$query(transaction).patch({ unconfirmedEmail: email })
    if (pod.config.mail === undefined) return
    const hasOld = user.email !== null && user.emailConfirmedAt !== null
    // The row keeps the address to restore; the worker replaces its token when it sends the mail.
    if (hasOld) await issueToken(transaction, { userId, purpose: 'undo_email', email: user.email })
    await enqueueMails(pod, transaction, [
      { kind: 'confirm_email', userId },
      ...(hasOld ? [{ kind: 'email_changing', userId }] : []),
    ])
  })
}

/** Confirms the mailbox of a token. Of two accounts with one address, the second is refused. */
export async function confirmEmail(pod: Pick<Pod, 'db' | 'claimedKey'>, token: string): Promise<void> {
  await changeByToken(pod, 'confirm_email', token, async (transaction, { userId, email }) => {
    const user = await User.query(transaction).findById(userId)
    if (user === undefined || user.closedAt !== null || email === null || user.unconfirmedEmail !== email)
      throw tokenInvalid()
    await setConfirmedEmail(transaction, userId, email)
  })
}

/** Restores the old address, ends the sessions, and asks for a new password by a mail to the old address. */
export async function undoEmailChange(
  pod: Pick<Pod, 'db' | 'jobs' | 'config' | 'claimedKey'>,
  token: string,
): Promise<void> {
  await changeByToken(pod, 'undo_email', token, async (transaction, { userId, email }) => {
    const user = await User.query(transaction).findById(userId).withGraphFetched('person')
    if (!user?.person || user.closedAt !== null || email === null) throw tokenInvalid()
    await setConfirmedEmail(transaction, userId, email)
    await UserSecrets.query(transaction).findById(userId).patch({ passwordHash: null })
    await transaction('account_tokens').where({ userId }).delete()
    await deleteSessions(transaction, user.person.address)
    await enqueueMails(pod, transaction, [{ kind: 'password_reset', userId }])
  })
}

async function changeByToken(
  pod: Pick<Pod, 'db' | 'claimedKey'>,
  purpose: 'confirm_email' | 'undo_email',
  token: string,
  change: (transaction: Knex.Transaction, token: AccountToken) => Promise<void>,
): Promise<void> {
  try {
    await inTransaction(pod, async (transaction) => {
      const used = await useToken(transaction, purpose, token)
      if (used === undefined) throw tokenInvalid()
      await change(transaction, used)
    })
  } catch (error) {
    throw isUniqueViolation(error, 'users_email') ? tokenInvalid() : error
  }
}

/** The address is no longer the unconfirmed one of anybody. Its mailbox works, so that notices begin again. */
async function setConfirmedEmail(transaction: Knex.Transaction, userId: number, email: string): Promise<void> {
  await transaction('users')
    .where({ id: userId })
    .update({
      email,
      emailConfirmedAt: transaction.raw(`date_trunc('milliseconds', now())`),
      // The first digest is that of tomorrow, wherever the user lives.
      digestOn: transaction.raw(`(now() - interval '12 hours')::date`),
      digestAt: transaction.raw(`date_trunc('milliseconds', now())`),
      unconfirmedEmail: null,
      mailState: 'ok',
    })
  await transaction('mail_faults').where({ userId }).delete()
  await transaction('users').whereRaw('lower(unconfirmed_email) = lower(?)', [email]).update({ unconfirmedEmail: null })
}

export interface EmailOfUser {
  readonly username: string
  readonly email: string | null
  readonly confirmed: boolean
  readonly unconfirmedEmail: string | null
  readonly mailState: User['mailState']
}

export async function findEmail({ db }: Pick<Pod, 'db'>, username: string): Promise<EmailOfUser> {
  const user = await User.byUsername(db, username)
  if (user === undefined) throw new Refusal('user_missing', `There is no local account named ${username}.`)
  const { email, emailConfirmedAt, unconfirmedEmail, mailState } = user
  return { username: user.username, email, confirmed: emailConfirmedAt !== null, unconfirmedEmail, mailState }
}

/** Sets an address by command: as confirmed, or with a mail that asks for the confirmation. */
export async function setEmail(
  pod: Pod,
  actor: Actor,
  username: string,
  { address, confirmed }: { readonly address: string; readonly confirmed: boolean },
): Promise<void> {
  const email = readMailbox(address)
  const { id } = await changeOpenUser(pod, username, async (_, user) => user)
  const target = { type: 'person', label: username }
  try {
    await recordOperation(pod, actor, { action: 'user.email', target }, async (transaction) => {
      if (confirmed) await setConfirmedEmail(transaction, id, email)
      return { confirmed }
    })
  } catch (error) {
    if (!isUniqueViolation(error, 'users_email')) throw error
    throw new Refusal('email_taken', 'Another account has this e-mail address.')
  }
  if (!confirmed) await requestEmailChange(pod, id, email)
}
