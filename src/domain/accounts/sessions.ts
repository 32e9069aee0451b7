import type { Knex } from 'knex'
import { sendSignal } from '../../jobs/signals.js'
import {
  type BrowserSession,
  endBrowserSession,
  listBrowserSessions,
} from '../../persistence/accounts/browser-sessions.js'
import { recordKnownBrowser } from '../../persistence/accounts/known-browsers.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Authorization } from '../../persistence/models/access-token.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { enqueueAccountMail } from '../mail/enqueue-mail.js'
import { ACCOUNT_LIMITS } from './limits.js'
import { hashToken } from './token-hash.js'

export async function listSessions({ db }: Pick<Pod, 'db'>, userId: number): Promise<readonly BrowserSession[]> {
  return listBrowserSessions(db, userId)
}

/**
 * Notes a sign-in. A mail reports it if the browser is new to the account, except the first browser of all. An account that was being
 * closed because nobody used it stays.
 */
export async function recordSignIn(
  pod: Pick<Pod, 'db' | 'now' | 'jobs' | 'config' | 'requestContext'>,
  address: string,
  browserId: string,
): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    const user = await User.query(transaction)
      .joinRelated('person')
      .where({ 'person.address': address })
      .select('users.id')
      .forNoKeyUpdate()
      .first()
    if (user === undefined) return
    await User.query(transaction)
      .where({ id: user.id, closingBy: 'inactivity', closedAt: null })
      .where('closeAt', '>', pod.now())
      .patch({ closeAt: null, closingBy: null })
    const browser = { userId: user.id, browserHash: hashToken(`${user.id} ${browserId}`) }
    const isNew = await recordKnownBrowser(transaction, browser, {
      at: pod.now(),
      days: ACCOUNT_LIMITS.knownBrowserDays,
    })
    if (isNew) await enqueueAccountMail(pod, transaction, 'new_sign_in', user.id)
  })
}

/** Ends one session of a user in a browser. A session that has ended, or belongs to another user, is no error. */
export async function endSession({ db }: Pick<Pod, 'db'>, userId: number, uid: string): Promise<void> {
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

export async function endAllApplications(pod: Pick<Pod, 'db' | 'requestContext'>, userId: number): Promise<void> {
  await inTransaction(pod, (transaction) => endApplications(transaction, userId))
}
