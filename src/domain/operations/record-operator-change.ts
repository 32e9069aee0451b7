import type { Knex } from 'knex'
import { inTransaction } from '../../persistence/database/transactions.js'
import { type AuditValues, appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import type { Pod } from '../../pod/pod.js'
import type { Actor } from '../moderation/actor.js'
import { auditContext } from '../moderation/record-action.js'

export interface OperatorChange {
  readonly action: string
  readonly target: { readonly type: string; readonly label: string }
  /** Not set: an access that the log records. */
  readonly reason?: string
  readonly after?: AuditValues
}

/**
 * Runs a change of operation and appends its audit entry in the same transaction. A change that returns undefined changes nothing and
 * has no entry. Returns whether there was a change.
 */
export async function recordOperatorChange(
  pod: Pick<Pod, 'db' | 'now' | 'log' | 'requestContext'>,
  actor: Actor,
  { target, ...operation }: OperatorChange,
  change?: (transaction: Knex.Transaction) => Promise<AuditValues | undefined>,
): Promise<boolean> {
  const hasChanged = await inTransaction(pod, async (transaction) => {
    const after = change === undefined ? operation.after : await change(transaction)
    if (change !== undefined && after === undefined) return false
    const entry = { ...operation, after, target: { ...target, guid: null } }
    await appendAuditEntry(transaction, { ...entry, ...auditContext(actor) }, pod.now())
    return true
  })
  if (hasChanged) pod.log.info({ action: operation.action, target: target.label }, 'operator action')
  return hasChanged
}
