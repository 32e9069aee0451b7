import { verify } from '@node-rs/argon2'
import { pendingSignUps } from '../../../persistence/accounts/pending-sign-ups.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import type { Services } from '../../../services/services.js'
import { ACCOUNT_LIMITS } from '../limits.js'
import { enqueueConfirmation } from './begin-sign-up.js'

/** The missing step of a pending sign-up. */
type PendingState = 'confirmation' | 'approval'

export interface PendingSignUpState {
  readonly id: number
  readonly waitsFor: PendingState
}

/** Returns the missing step of a sign-up to the person with its password; for all others the sign-up does not exist. */
export async function findPendingState(
  services: Pick<Services, 'db'>,
  username: string,
  password: string,
): Promise<PendingSignUpState | undefined> {
  const row = await pendingSignUps(services.db).where({ username }).first()
  if (row === undefined || row.passwordHash === null) return undefined
  if (!(await verify(row.passwordHash, password).catch(() => false))) return undefined
  return { id: row.id, waitsFor: !row.needsConfirmation || row.confirmedAt !== null ? 'approval' : 'confirmation' }
}

/** Sends the mail with the link again, at most every five minutes and five times. */
export async function repeatConfirmation(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'secrets'>,
  { id }: Pick<PendingSignUpState, 'id'>,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const again = await pendingSignUps(transaction)
      .where({ id, confirmedAt: null })
      .whereRaw('mails_sent < ? and mailed_at <= now() - make_interval(mins => ?)', [
        ACCOUNT_LIMITS.confirmationMails,
        ACCOUNT_LIMITS.confirmationMinutes,
      ])
      .forUpdate()
      .first()
    if (again?.email) await enqueueConfirmation(services, transaction, { id: again.id, email: again.email })
  })
}
