import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { findActionInForce } from '../../persistence/moderation/actions.js'
import { type ContentIds, hideContentRows, showContentOfAction } from '../../persistence/moderation/hidden-content.js'
import type { BackgroundTaskKind } from '../../persistence/operations/background-tasks.js'
import type { ModerationServices, Services } from '../../services/services.js'
import {
  type BackgroundTaskHandler,
  type BackgroundTaskHandlers,
  continueBackgroundTask,
} from '../operations/background-tasks.js'
import { type Actor, requirePower, SYSTEM_ACTOR } from './actor.js'
import {
  type ContentTarget,
  contentIdsOf,
  contentNotFound,
  findContent,
  requireActionOnContent,
} from './find-content.js'
import { sendNotice } from './notices/send-notice.js'
import {
  type ActionOptions,
  type ActionOutcome,
  auditAction,
  insertAction,
  type NewAction,
  type RecordedAction,
  requireFutureEnd,
  requireReason,
} from './record-action.js'

export interface ContentActionOptions extends ActionOptions {
  /** A local author gets no notice. */
  readonly withoutNotice?: boolean | undefined
}

/** Hides a post or a comment from all but its author and moderators. Nothing is sent; the undo shows it as before. */
export async function hideContent(
  services: ModerationServices,
  actor: Actor,
  target: ContentTarget,
  { withoutNotice = false, ...options }: ContentActionOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const content = await findContent(transaction, target)
    if (content === undefined) throw contentNotFound(target.type)
    const reason = requireReason(options)
    requireFutureEnd(services, options.until)
    requireActionOnContent(actor, content)
    const { type, guid } = target
    const inForce = await findActionInForce(transaction, { kind: 'hide', targetType: type, targetGuid: guid })
    if (inForce !== undefined) return { changed: false }
    const newAction = await insertAction(services, transaction, actor, {
      kind: 'hide',
      target: { type, guid, label: content.author.address },
      reason,
      caseId: options.caseId ?? content.caseId,
      until: options.until,
      undo: { possible: true },
      before: { hidden: content.isHidden },
      after: { hidden: true },
      details: { userId: content.user?.id ?? null },
    })
    await hideContentRows(transaction, newAction.id, contentIdsOf(target, content))
    if (content.user !== undefined && !withoutNotice) {
      const notice = { kind: 'content_hidden', userId: content.user.id, actionId: newAction.id, target } as const
      await sendNotice(services, transaction, notice)
    }
    return { changed: true, action: await auditAction(services, transaction, newAction) }
  })
}

/**
 * Hides any number of posts and comments with one action and one audit entry; the undo shows all of them again. The caller checks the
 * rights and keeps the batch bounded. `target` is what the batch is about: a filter, a cluster, a person.
 */
export async function hideContentBatch(
  services: Pick<Services, 'log' | 'now'>,
  transaction: Knex.Transaction,
  actor: Actor,
  { ids, ...action }: Omit<NewAction, 'kind' | 'undo'> & { readonly ids: ContentIds },
): Promise<RecordedAction> {
  const newAction = await insertAction(services, transaction, actor, {
    ...action,
    kind: 'hide',
    undo: { possible: true },
  })
  await hideContentRows(transaction, newAction.id, ids)
  return auditAction(services, transaction, newAction)
}

const ROW_BATCH_SIZE = 500

/** Shows what an action hides: one chunk in the transaction of the undo, and the rest by an operation of this kind. */
export async function showContentInChunks(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  actionId: number,
  kind: BackgroundTaskKind,
): Promise<void> {
  if ((await showContentOfAction(transaction, actionId, ROW_BATCH_SIZE)) < ROW_BATCH_SIZE) return
  const work = { kind, target: String(actionId), total: 0, reason: 'The action is undone.' }
  await continueBackgroundTask(services, transaction, SYSTEM_ACTOR, work)
}

/** The target is the action. */
const showContentHandler: BackgroundTaskHandler = {
  async runChunk(_services, transaction, { target }) {
    return { done: await showContentOfAction(transaction, Number(target), ROW_BATCH_SIZE), skipped: 0 }
  },
  /** The undo has its entry in the audit log. */
  async complete() {},
}

export const SHOW_CONTENT = 'content.show'

export const showContentTaskHandlers: Pick<BackgroundTaskHandlers, typeof SHOW_CONTENT> = {
  [SHOW_CONTENT]: showContentHandler,
}
