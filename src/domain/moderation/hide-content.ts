import type { Knex } from 'knex'
import { inTransaction } from '../../persistence/database/transactions.js'
import { findActionInForce } from '../../persistence/moderation/actions.js'
import { type ContentIds, hideContentRows } from '../../persistence/moderation/hidden-content.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from './actor.js'
import { type ContentTarget, contentIds, contentNotFound, findContent, requireActionOnContent } from './find-content.js'
import { sendNotice } from './notices/send-notice.js'
import {
  type ActionOptions,
  type ActionOutcome,
  type NewAction,
  type RecordedAction,
  recordAction,
  requireReason,
} from './record-action.js'

type HidePod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'requestContext' | 'config'>

export interface ContentActionOptions extends ActionOptions {
  /** A local author gets no notice. */
  readonly silent?: boolean | undefined
}

/** Hides a post or a comment from everyone but its author. Nothing is sent; the undo shows it as before. */
export async function hideContent(
  pod: HidePod,
  actor: Actor,
  target: ContentTarget,
  { silent = false, ...options }: ContentActionOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  return inTransaction(pod, async (transaction) => {
    const content = await findContent(transaction, target)
    if (content === undefined) throw contentNotFound(target.type)
    const reason = requireReason(options)
    requireActionOnContent(actor, content)
    const { type, guid } = target
    const inForce = await findActionInForce(transaction, { kind: 'hide', targetType: type, targetGuid: guid })
    if (inForce !== undefined) return { changed: false }
    const action = await hideContentBatch(pod, transaction, actor, contentIds(target, content), {
      target: { type, guid, label: content.author.address },
      reason,
      caseId: options.caseId ?? content.caseId,
      until: options.until,
      before: { hidden: content.isHidden },
      after: { hidden: true },
      details: { userId: content.user?.id ?? null },
      effect: async (actionId) => {
        if (content.user === undefined || silent) return
        await sendNotice(pod, transaction, { kind: 'content_hidden', userId: content.user.id, actionId, target })
      },
    })
    return { changed: true, action }
  })
}

/**
 * Hides any number of posts and comments with one action and one audit entry; the undo shows all of them again. The caller checks the
 * rights and keeps the batch bounded. `target` is what the batch is about: a filter, a cluster, a person.
 */
export async function hideContentBatch(
  pod: Pick<Pod, 'now' | 'log'>,
  transaction: Knex.Transaction,
  actor: Actor,
  ids: ContentIds,
  { effect, ...action }: Omit<NewAction, 'kind' | 'undo'>,
): Promise<RecordedAction> {
  return recordAction(pod, transaction, actor, {
    ...action,
    kind: 'hide',
    undo: { possible: true },
    effect: async (actionId) => {
      await hideContentRows(transaction, actionId, ids)
      await effect?.(actionId)
    },
  })
}
