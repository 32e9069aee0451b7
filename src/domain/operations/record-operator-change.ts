import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { type AuditValues, appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import type { Services } from '../../services/services.js'
import type { Actor } from '../moderation/actor.js'
import { auditContext } from '../moderation/record-action.js'

export interface OperatorChange {
  readonly action: string
  readonly target: { readonly type: string; readonly label: string }
  /** Not set: nothing was changed; the log records the access. */
  readonly reason?: string
  readonly after?: AuditValues
}

/**
 * Runs a change of operation and appends its audit entry in the same transaction. A change that returns undefined changes nothing and
 * has no entry. Returns whether there was a change.
 */
export async function recordOperatorChange(
  services: Pick<Services, 'db' | 'requestContext' | 'log' | 'now'>,
  actor: Actor,
  { target, ...auditFields }: OperatorChange,
  change?: (transaction: Knex.Transaction) => Promise<AuditValues | undefined>,
): Promise<boolean> {
  const hasChanged = await inRequestTransaction(services, async (transaction) => {
    const after = change === undefined ? auditFields.after : await change(transaction)
    if (change !== undefined && after === undefined) return false
    const entry = { ...auditFields, after, target: { ...target, guid: null } }
    await appendAuditEntry(transaction, { ...entry, ...auditContext(actor) }, services.now())
    return true
  })
  if (hasChanged) services.log.info({ action: auditFields.action, target: target.label }, 'operator action')
  return hasChanged
}
