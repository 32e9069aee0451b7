import { hash } from '@node-rs/argon2'
import type { Knex } from 'knex'
import { resetPasswordJob } from '../../../jobs/definitions.js'
import { enqueueJob } from '../../../jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../../jobs/outbox/load-job.js'
import { isDatabaseUnavailable } from '../../../persistence/database/errors.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { countMailsOfUser } from '../../../persistence/mail/mails.js'
import { User, UserSecrets } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import type { Actor } from '../../moderation/actor.js'
import { recordOperatorChange } from '../../operations/record-operator-change.js'
import { Refusal } from '../../refusals.js'
import { findToken, issueToken, useToken } from '../account-tokens.js'
import { ARGON2, endAllAccess, endMailLinks, requirePassword } from '../accounts.js'
import { deletePendingTotp } from '../factors/second-factor.js'
import { ACCOUNT_LIMITS } from '../limits.js'
import { normaliseUsername, whereSignInName } from '../sign-in.js'

const HOUR = 3_600
const LINK_HOURS = 24

/**
 * Enqueues a reset for what was typed: a name or an e-mail address. It is looked up by a worker, so that the response and its time
 * do not reveal whether there is such an account.
 */
export async function requestPasswordReset(
  services: Pick<Services, 'db' | 'requestContext' | 'jobs'>,
  typedName: string,
): Promise<void> {
  const text = Buffer.from(typedName).subarray(0, ACCOUNT_LIMITS.typedBytes).toString()
  await inRequestTransaction(services, (transaction) =>
    enqueueJob(services, transaction, resetPasswordJob, { typed: text }),
  )
}

/**
 * Looks up the account of a requested reset, and enqueues its mail. A request for no account, for a locked one, or beyond the limits
 * ends without one. Errors drop the job: as a dead letter it would keep the typed text.
 */
export async function startPasswordReset(
  services: Services,
  work: JobContext & { readonly data: { readonly typed: string } },
): Promise<void> {
  try {
    await inRequestTransaction(services, async (transaction) => {
      await work.finish(transaction)
      const user = await findForReset(services, transaction, work.data.typed)
      if (user === undefined) return
      const kinds = ['password_reset'] as const
      const inHour = await countMailsOfUser(transaction, user.id, { kinds, seconds: HOUR })
      const inDay = await countMailsOfUser(transaction, user.id, { kinds, seconds: 24 * HOUR })
      if (inHour >= ACCOUNT_LIMITS.resetsPerHour || inDay >= ACCOUNT_LIMITS.resetsPerDay) return
      await enqueueAccountMail(services, transaction, 'password_reset', user.id)
    })
  } catch (cause) {
    if (isDatabaseUnavailable(cause)) throw cause
    throw new Refusal('reset_failed', 'The requested reset of a password failed.', { cause })
  }
}

/** The row is locked, so that the limits count concurrent requests. */
async function findForReset(
  services: Pick<Services, 'config'>,
  db: Knex,
  typedName: string,
): Promise<User | undefined> {
  const query = User.query(db).whereNull('closedAt').whereNull('lockedAt').whereNotNull('emailConfirmedAt')
  return whereSignInName(services, query, normaliseUsername(services, typedName)).forNoKeyUpdate().first()
}

/** Sets the password of the account of a token, and ends all its access: sessions, applications and other tokens. */
export async function resetPasswordByToken(services: Services, token: string, password: string): Promise<void> {
  // An unknown token costs no hash.
  const accountToken = await findToken(services.db, 'password_reset', token)
  const owner = accountToken && (await User.query(services.db).findById(accountToken.userId))
  if (owner === undefined) throw tokenInvalid()
  requirePassword(password, owner)
  const passwordHash = await hash(password, ARGON2)
  await inRequestTransaction(services, async (transaction) => {
    const usedToken = await useToken(transaction, 'password_reset', token)
    const user = usedToken && (await User.query(transaction).findById(usedToken.userId).withGraphFetched('person'))
    if (!user?.person || user.closedAt !== null || user.lockedAt !== null) throw tokenInvalid()
    await UserSecrets.query(transaction).findById(user.id).patch({ passwordHash })
    await deletePendingTotp(transaction, user.id)
    await endAllAccess(transaction, { userId: user.id, address: user.person.address })
    await endMailLinks(transaction, user.id)
    await enqueueAccountMail(services, transaction, 'password_changed', user.id)
  })
}

/** The refusal of a link that is used, replaced, expired or unknown. */
export function tokenInvalid(): Refusal {
  return new Refusal('token_not_valid', 'This link is no longer valid.')
}

/** A link to set a new password, which an operator hands over: the way back without mail. It is valid for a day. */
export async function createResetLink(services: Services, actor: Actor, username: string): Promise<string> {
  const user = await User.byUsername(services.db, username)
  if (user === undefined || user.closedAt !== null) {
    throw new Refusal('user_missing', `There is no open local account named ${username}.`)
  }
  let token = ''
  const target = { type: 'person', label: user.username }
  await recordOperatorChange(services, actor, { action: 'user.reset_link', target }, async (transaction) => {
    token = await issueToken(transaction, {
      userId: user.id,
      purpose: 'password_reset',
      email: null,
      hours: LINK_HOURS,
    })
    return { hours: LINK_HOURS }
  })
  return `${services.config.url}/users/password/edit?token=${token}`
}
