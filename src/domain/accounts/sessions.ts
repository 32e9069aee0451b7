import type { Knex } from 'knex'
import { sendSignal } from '../../jobs/signals.js'
import {
  type BrowserSession,
  endBrowserSession,
  listBrowserSessions,
} from '../../persistence/accounts/browser-sessions.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Authorization } from '../../persistence/models/access-token.js'
import type { Pod } from '../../pod/pod.js'

export async function listSessions({ db }: Pick<Pod, 'db'>, userId: number): Promise<readonly BrowserSession[]> {
  return listBrowserSessions(db, userId)
}

/** Ends one session of a user in a browser. A session that has ended, or belongs to somebody else, is no error. */
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

export async function endAllApplications(pod: Pick<Pod, 'db' | 'claimedKey'>, userId: number): Promise<void> {
  await inTransaction(pod, (transaction) => endApplications(transaction, userId))
}
