import type { Knex } from 'knex'
import { moveInteractionsJob } from '../../jobs/definitions.js'
import { enqueueJobs, enqueueJobsOfKind, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { findBlockedContacts, stopReceiving, stopSharing } from '../../persistence/contacts/contact-changes.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { User } from '../../persistence/models/user.js'
import { MOVE_LIMITS, type MoveLimits } from '../../persistence/people/limits.js'
import { lockMove, moveInteractions, type PersonMove } from '../../persistence/people/move-interactions.js'
import { findNewestIdentity, movePersonRows } from '../../persistence/people/move-person.js'
import type { Services } from '../../services/services.js'

/**
 * Moves everything that refers to one person to another. A job moves the interactions that are too many for this transaction. Ends
 * contacts of users who block one of the two.
 */
export async function movePerson(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  move: PersonMove,
  limits?: MoveLimits,
): Promise<void> {
  const isComplete = await movePersonRows(transaction, move, limits)
  await endBlockedContacts(services, transaction, move.to)
  if (!isComplete) await enqueueJobsOfKind(services, transaction, moveInteractionsJob, [{ personId: move.from }])
}

/**
 * A block of the old identity ends the contact with the new one, as a block by the user does. The new pod gets the contacts that are left
 * with all others (`store-account-migrations.ts`).
 */
async function endBlockedContacts(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  personId: number,
): Promise<void> {
  const contacts = await findBlockedContacts(transaction, personId)
  if (contacts.length === 0) return
  await stopReceiving(transaction, contacts)
  const local = await User.query(transaction).findOne({ personId })
  if (local !== undefined) {
    const pairs = contacts.map(({ ownPersonId }) => ({ userId: local.id, personId: ownPersonId }))
    await stopSharing(transaction, pairs)
    return
  }
  const newJobs = contacts
    .filter(({ isMutual }) => !isMutual)
    .map(({ userId, ownPersonId }) =>
      newDispatchJob(ownPersonId, { record: 'contact', userId, personId, sharing: false, blocking: true }),
    )
  await enqueueJobs(services, transaction, newJobs)
}

const ONE_CHUNK = { ...MOVE_LIMITS, rowsWithAccount: MOVE_LIMITS.rowsPerChunk }

/**
 * Moves the interactions that remain of a person who has moved to their newest identity, in transactions of one chunk. A job that
 * has no more time enqueues the next one.
 */
export async function moveRemainingInteractions(
  services: Pick<Services, 'db' | 'jobs'>,
  personId: number,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const isComplete = await inTransaction(services.db, async (transaction) => {
      if (signal.aborted) {
        await enqueueJobsOfKind(services, transaction, moveInteractionsJob, [{ personId }])
        return true
      }
      const move = { from: personId, to: await findNewestIdentity(transaction, personId) }
      await lockMove(transaction, move)
      // Before the lock was granted, the other person may have moved on.
      if ((await findNewestIdentity(transaction, personId)) !== move.to) return false
      return move.to === move.from || moveInteractions(transaction, move, ONE_CHUNK)
    })
    if (isComplete) return
  }
}
