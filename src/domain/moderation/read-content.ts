import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import type { Services } from '../../services/services.js'
import { type Actor, requirePower } from './actor.js'
import { type ContentTarget, contentNotFound, type FoundContent, findContent } from './find-content.js'
import { auditContext } from './record-action.js'

/** Reads a post or a comment without an entry, for the comparison with the version that a moderator has read. */
export async function readContent(
  transaction: Knex.Transaction,
  actor: Actor,
  target: ContentTarget,
): Promise<FoundContent> {
  requirePower(actor, 'moderation')
  const content = await findContent(transaction, target)
  if (content === undefined) throw contentNotFound(target.type)
  if (content.author.id !== actor.personId) return content
  // A case about the actor does not exist for them, and private content is shown because of a case alone.
  if (!content.public) throw contentNotFound(target.type)
  return { ...content, caseId: undefined }
}

/** Finds content for the answer to an action. Undefined: it is deleted. */
export async function findContentState(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  target: ContentTarget,
): Promise<FoundContent | undefined> {
  requirePower(actor, 'moderation')
  return db.transaction((transaction) => findContent(transaction, target))
}

/** Reads a post or a comment for a moderator, hidden or not. Reading private content is recorded in the audit log. */
export async function readRecordedContent(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  target: ContentTarget,
): Promise<FoundContent> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const content = await readContent(transaction, actor, target)
    if (!content.public) {
      const { type, guid } = target
      await appendAuditEntry(
        transaction,
        {
          ...auditContext(actor),
          action: 'case.private_read',
          caseId: content.caseId,
          target: { type, guid, label: `case ${content.caseId}` },
        },
        services.now(),
      )
    }
    return content
  })
}
