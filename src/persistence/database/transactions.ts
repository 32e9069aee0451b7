import type { Knex } from 'knex'
import { markKeyDone } from '../accounts/idempotency-keys.js'
import { isDeadlock, isForeignKeyViolation, isLockTimeout } from './errors.js'
import type { RequestContext } from './request-context.js'

const ATTEMPTS = 4

/**
 * Runs work in a transaction. It is repeated at once, up to three times, after a deadlock or when a row it refers to is deleted
 * in the meantime, so the work must not change anything outside of the transaction.
 */
export async function inTransaction<Result>(
  db: Knex,
  work: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  return retryAfter(isConflict, () => db.transaction(work))
}

/** Runs work like `inTransaction`, with the steps that the request or job adds, see `runForRequest`. */
export async function inRequestTransaction<Result>(
  { db, requestContext }: { readonly db: Knex; readonly requestContext: RequestContext },
  work: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  const result = await inTransaction(db, (transaction) => runForRequest(transaction, requestContext, work))
  if (requestContext.precondition !== undefined) requestContext.precondition.isMet = true
  return result
}

/**
 * 1. Sets the trace of the rows.
 * 2. Locks the object of an `If-Match` and compares it.
 * 3. Runs the work.
 * 4. Refuses if the object had changed: after the work, so that a refusal of the work has precedence.
 * 5. Marks the Idempotency-Key as done, so that the effect and its mark are committed together.
 */
async function runForRequest<Result>(
  transaction: Knex.Transaction,
  { trace, precondition, readClaimedKey }: RequestContext,
  work: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  setTrace(transaction, trace)
  const uncheckedPrecondition = precondition?.isMet === false ? precondition : undefined
  await uncheckedPrecondition?.lock(transaction)
  const isChanged = uncheckedPrecondition !== undefined && !(await uncheckedPrecondition.isUnchanged(transaction))
  const result = await work(transaction)
  if (isChanged) throw uncheckedPrecondition.refusal()
  const claimedKey = readClaimedKey?.()
  if (claimedKey !== undefined) await markKeyDone(transaction, claimedKey)
  return result
}

function isConflict(error: unknown): boolean {
  return isDeadlock(error) || isForeignKeyViolation(error)
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
export function retryAfterLockTimeout<Result>(work: () => Promise<Result>): Promise<Result> {
  return retryAfter(isLockTimeout, work)
}

async function retryAfter<Result>(
  isTransient: (error: unknown) => boolean,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === ATTEMPTS || !isTransient(error)) throw error
    }
  }
}
