import type { Knex } from 'knex'
import { type ClaimedKey, markKeyDone } from '../accounts/idempotency-keys.js'
import { isDeadlock, isForeignKeyViolation, isLockTimeout } from './errors.js'

/** The database of a pod, and the Idempotency-Key of the request for which it is written to. */
interface TransactionContext {
  readonly db: Knex
  /** Undefined: no key, or the key is completed already. */
  readonly claimedKey?: (() => ClaimedKey | undefined) | undefined
  readonly precondition?: Precondition | undefined
  /** The trace of the request or message that causes the changes: 32 hexadecimal digits. */
  readonly trace?: string | undefined
}

/** The `If-Match` of the request for which the database is written to. */
export interface Precondition {
  /** A transaction with it is committed: later ones of the request need not compare again. */
  isMet: boolean
  /** Locks the object and compares it. Returns what throws if it was changed, for the end of the transaction. */
  check(transaction: Knex.Transaction): Promise<() => void>
}

const ATTEMPTS = 4

/**
 * A transaction that is repeated at once, up to three times, after a deadlock or when a row it refers to is deleted meanwhile: the work
 * changes nothing outside of the transaction. With the pod of a request the transaction also
 * - compares the `If-Match` of the request before the work, until a first transaction of the request is committed,
 * - marks the claimed Idempotency-Key as done, so that the effect and its mark are committed together,
 * - gives its rows the trace of the request.
 * With `{ db }` alone it does none of these.
 */
export async function inTransaction<Result>(
  { db, claimedKey, precondition, trace }: TransactionContext,
  work: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await db.transaction(async (transaction) => {
        if (trace !== undefined) setTrace(transaction, trace)
        const requireUnchanged = precondition?.isMet === false ? await precondition.check(transaction) : undefined
        const made = await work(transaction)
        requireUnchanged?.()
        const claim = claimedKey?.()
        if (claim !== undefined) await markKeyDone(transaction, claim)
        return made
      })
      if (precondition !== undefined) precondition.isMet = true
      return result
    } catch (error) {
      if (attempt === ATTEMPTS || !(isDeadlock(error) || isForeignKeyViolation(error))) throw error
    }
  }
}

/** Runs work after the commit of the transaction, or of the one around it; not after a rollback. The work must not throw. */
export function runAfterCommit(transaction: Knex.Transaction, work: () => void): void {
  void outermost(transaction).executionPromise.then(work, () => {})
}

/** A nested transaction commits with its parent. */
export function outermost(transaction: Knex.Transaction): Knex.Transaction {
  return transaction.parentTransaction ? outermost(transaction.parentTransaction) : transaction
}

const traces = new WeakMap<Knex, string>()

/** Rows that the transaction writes from now on have this trace. */
export function setTrace(transaction: Knex.Transaction, trace: string | undefined): void {
  if (trace === undefined) traces.delete(transaction)
  else traces.set(transaction, trace)
}

/** The trace of the transaction, or of the one around it; null: it has none. */
export function findTrace(transaction: Knex.Transaction): string | null {
  const { parentTransaction } = transaction
  return traces.get(transaction) ?? (parentTransaction ? findTrace(parentTransaction) : null)
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
