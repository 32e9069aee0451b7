import type { Knex } from 'knex'
import { findActionInForce } from '../../persistence/moderation/actions.js'
import type { AuditTarget } from '../../persistence/moderation/audit-log.js'
import { type ContentIds, hideContentRows } from '../../persistence/moderation/hidden-content.js'
import type { Services } from '../../services/services.js'
import { SYSTEM_ACTOR } from './actor.js'
import { hideContentBatch } from './hide-content.js'

interface FoundContent {
  /** The filter or cluster. */
  readonly target: AuditTarget & { readonly guid: string }
  readonly ids: ContentIds
  readonly reason: string
  readonly caseId?: number | undefined
}

/**
 * Hides what a filter or a cluster has found, in the name of the pod. All of it belongs to one action, so that one undo shows it again;
 * later finds begin another action. The caller has locked the filter or the cluster.
 */
export async function hideFoundContent(
  services: Pick<Services, 'log' | 'now'>,
  transaction: Knex.Transaction,
  { target, ids, reason, caseId }: FoundContent,
): Promise<void> {
  const { type: targetType, guid: targetGuid } = target
  const inForce = await findActionInForce(transaction, { kind: 'hide', targetType, targetGuid })
  if (inForce !== undefined) await hideContentRows(transaction, inForce.id, ids)
  else await hideContentBatch(services, transaction, SYSTEM_ACTOR, { ids, target, reason, caseId })
}
