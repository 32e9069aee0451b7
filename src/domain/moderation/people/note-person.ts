import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import { insertPersonNote } from '../../../persistence/moderation/people-records.js'
import type { Services } from '../../../services/services.js'
import { type Actor, requirePower } from '../actor.js'
import { personNotFound } from '../find-local-user.js'
import { auditContext, requireReason } from '../record-action.js'

/** Adds a note about a local or remote person for other moderators. A moderator reads no notes about themselves. */
export async function addPersonNote(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  guid: string,
  { text: written }: { readonly text: string },
): Promise<{ readonly changed: boolean }> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const person = await Person.query(transaction).findOne({ guid })
    if (person === undefined || person.id === actor.personId) throw personNotFound()
    const text = requireReason({ reason: written })
    const context = auditContext(actor)
    await insertPersonNote(transaction, { personId: person.id, actor: context.actor, text, createdAt: services.now() })
    const target = { type: 'person', guid, label: person.address }
    await appendAuditEntry(transaction, { ...context, action: 'person.noted', target }, services.now())
    return { changed: true }
  })
}
