import { verify } from '@node-rs/argon2'
import { pendingSignUps } from '../../../persistence/accounts/pending-sign-ups.js'
import { inTransaction } from '../../../persistence/database/transactions.js'
import type { Pod } from '../../../pod/pod.js'
import { ACCOUNT_LIMITS } from '../limits.js'
import { enqueueConfirmation } from './begin-sign-up.js'

/** What a pending sign-up waits for. */
type PendingState = 'confirmation' | 'approval'

export interface PendingSignUpState {
  readonly id: number
  readonly waitsFor: PendingState
}

/** What the sign-up of this name waits for, for the person with its password; for all others it does not exist. */
export async function findPendingState(
  pod: Pick<Pod, 'db'>,
  username: string,
  password: string,
): Promise<PendingSignUpState | undefined> {
  const row = await pendingSignUps(pod.db).where({ username }).first()
  if (row === undefined || row.passwordHash === null) return undefined
  if (!(await verify(row.passwordHash, password).catch(() => false))) return undefined
  return { id: row.id, waitsFor: !row.needsConfirmation || row.confirmedAt !== null ? 'approval' : 'confirmation' }
}

/** Sends the mail with the link again, at most every five minutes and five times. */
export async function repeatConfirmation(
  pod: Pick<Pod, 'db' | 'jobs' | 'config' | 'secrets' | 'requestContext'>,
  { id }: Pick<PendingSignUpState, 'id'>,
): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    const again = await pendingSignUps(transaction)
      .where({ id, confirmedAt: null })
      .whereRaw('mails_sent < ? and mailed_at <= now() - make_interval(mins => ?)', [
        ACCOUNT_LIMITS.confirmationMails,
        ACCOUNT_LIMITS.confirmationMinutes,
      ])
      .forUpdate()
      .first()
    if (again?.email) await enqueueConfirmation(pod, transaction, { id: again.id, email: again.email })
  })
}
