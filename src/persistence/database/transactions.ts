import type { Knex } from 'knex'
import { type ClaimedKey, markKeyDone } from '../accounts/idempotency-keys.js'
import { isDeadlock, isForeignKeyViolation, isLockTimeout } from './errors.js'

/** The database of a pod, and the Idempotency-Key of the request for which it is written to. */
interface TransactionContext {
  readonly db: Knex
  /** Undefined: no key, or the key is completed already. */
  readonly claimedKey?: (() => ClaimedKey | undefined) | undefined
}

const ATTEMPTS = 4

/**
 * A transaction that is repeated at once, up to three times, after a deadlock or when a row it refers to is deleted meanwhile. Marks
 * the claimed Idempotency-Key of the request as done, so that the effect and its mark are committed together.
 */
export async function inTransaction<Result>(
  { db, claimedKey }: TransactionContext,
  work: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction(async (transaction) => {
        const result = await work(transaction)
        const claim = claimedKey?.()
        if (claim !== undefined) await markKeyDone(transaction, claim)
        return result
      })
    } catch (error) {
      if (attempt === ATTEMPTS || !(isDeadlock(error) || isForeignKeyViolation(error))) throw error
    }
  }
}

/** Repeats work after a lock timeout: data of another pod that is already here is not fetched again because of a local delay. */
export async function retryAfterLockTimeout<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === ATTEMPTS || !isLockTimeout(error)) throw error
    }
  }
}
