import type { Knex } from 'knex'
import { sendSignal } from '../../jobs/signals.js'
import {
  type BrowserSession,
  endBrowserSession,
  listBrowserSessions,
} from '../../persistence/accounts/browser-sessions.js'
import { recordKnownBrowser } from '../../persistence/accounts/known-browsers.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Authorization } from '../../persistence/models/access-token.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { enqueueAccountMail } from '../mail/enqueue-mail.js'
import { ACCOUNT_LIMITS } from './limits.js'
import { hashToken } from './token-hash.js'

export async function listSessions({ db }: Pick<Services, 'db'>, userId: number): Promise<readonly BrowserSession[]> {
  return listBrowserSessions(db, userId)
}

/**
 * Records a sign-in. A mail reports it if the browser is new to the account, except for the first browser. The closing of an unused
 * account is cancelled.
 */
export async function recordSignIn(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'now'>,
  address: string,
  browserId: string,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const user = await User.query(transaction)
      .joinRelated('person')
      .where({ 'person.address': address })
      .select('users.id')
      .forNoKeyUpdate()
      .first()
    if (user === undefined) return
    await User.query(transaction)
      .where({ id: user.id, closingBy: 'inactivity', closedAt: null })
      .where('closeAt', '>', services.now())
      .patch({ closeAt: null, closingBy: null })
    const browser = { userId: user.id, browserHash: hashToken(`${user.id} ${browserId}`) }
    const isNew = await recordKnownBrowser(transaction, browser, {
      at: services.now(),
      days: ACCOUNT_LIMITS.knownBrowserDays,
    })
    if (isNew) await enqueueAccountMail(services, transaction, 'new_sign_in', user.id)
  })
}

/** Ends one session of a user in a browser. Ignores a session that has ended or belongs to another user. */
export async function endSession({ db }: Pick<Services, 'db'>, userId: number, uid: string): Promise<void> {
  await endBrowserSession(db, { userId, uid })
}

/** Ends the sessions of a user in all browsers but one. Applications keep their access. */
export async function endOtherSessions(
  db: Knex,
  { address, sessionUid }: { readonly address: string; readonly sessionUid: string },
): Promise<void> {
  await deleteSessions(db, address, sessionUid)
}

/** Ends the access of all applications: authorizations, tokens and live streams. Tokens of the operator stay. */
export async function endApplications(transaction: Knex.Transaction, userId: number): Promise<void> {
  await Authorization.query(transaction).delete().where({ userId }).whereNotNull('clientId')
  await sendSignal(transaction, 'access_ended')
}

export async function endAllApplications(
  services: Pick<Services, 'db' | 'requestContext'>,
  userId: number,
): Promise<void> {
  await inRequestTransaction(services, (transaction) => endApplications(transaction, userId))
}
