import type { Knex } from 'knex'
import type { ClaimedKey } from '../accounts/idempotency-keys.js'

/**
 * What `inRequestTransaction` adds to the transactions of one request or job. Web process and worker derive services with it for each of them,
 * and only `inRequestTransaction` reads it. The context of a process, such as that of a command, is empty and adds nothing.
 */
export interface RequestContext {
  /** The trace of the request or message that causes the changes: 32 hexadecimal digits. Rows of the transaction have it. */
  readonly trace?: string | undefined
  /** Reads the Idempotency-Key that the request holds at this moment. Undefined: none, or its response is stored already. */
  readonly readClaimedKey?: (() => ClaimedKey | undefined) | undefined
  /** The `If-Match` of the request. */
  readonly precondition?: Precondition | undefined
}

export interface Precondition {
  /** A transaction with it is committed: later ones of the request need not compare again. */
  isMet: boolean
  /** Locks the object until the end of the transaction. */
  lock(transaction: Knex.Transaction): Promise<void>
  /** Whether the locked object is the version that the request names. */
  isUnchanged(transaction: Knex.Transaction): Promise<boolean>
  /** Makes the error for a changed object. */
  refusal(): Error
}
