import type { Knex } from 'knex'
import { moveInteractionsJob } from '../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../jobs/outbox/enqueue-jobs.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { MOVE_LIMITS, type MoveLimits } from '../../persistence/people/limits.js'
import { lockMove, moveInteractions, type PersonMove } from '../../persistence/people/move-interactions.js'
import { findNewestIdentity, movePerson } from '../../persistence/people/move-person.js'
import type { Services } from '../../services/services.js'

/** Moves everything that refers to one person to another; a job moves the interactions that are too many for one transaction. */
export async function movePersonAndEnqueue(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  move: PersonMove,
  limits?: MoveLimits,
): Promise<void> {
  const isComplete = await movePerson(transaction, move, limits)
  if (!isComplete) await enqueueJobsOfKind(services, transaction, moveInteractionsJob, [{ personId: move.from }])
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
