import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { lockAction } from '../../../persistence/moderation/actions.js'
import {
  createFilterCases,
  findContentIds,
  findContentTargets,
  findFilter,
  findHiddenByFilter,
  type ListedFilter,
  lockFilter,
} from '../../../persistence/moderation/filters.js'
import { type ContentIds, hideContentRows } from '../../../persistence/moderation/hidden-content.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import { enqueueLiveEventsAndMails } from '../../notifications/enqueue-live-events.js'
import {
  type BackgroundTask,
  type BackgroundTaskHandlers,
  startBackgroundTask,
} from '../../operations/background-tasks.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { reopeningTimes } from '../cases.js'
import { MODERATION_LIMITS } from '../limits.js'
import { type ActionOptions, type ActionOutcome, auditAction, insertAction, requireReason } from '../record-action.js'
import { APPLY_FILTER, filterNotFound, powerForFilter } from './filters.js'
import { scanDocuments, sinceDays } from './scan-documents.js'

export interface ApplyOptions extends ActionOptions {
  readonly days?: number | undefined
  /** The number of posts and comments that the filter hits. */
  readonly confirm?: string | undefined
}

export interface ApplyOutcome extends ActionOutcome {
  readonly hits: number
  /** False: older content of these days was not read. */
  readonly complete: boolean
  /** The work in the background; undefined: it is done. */
  readonly task?: BackgroundTask | undefined
}

/**
 * Applies a filter to the posts and comments of the last days. A filter that flags opens cases; one that hides or rejects hides them as
 * one action, so that one undo shows all of it. The undo leaves the filter itself as it is. Many hits are changed in the background:
 * those that were counted, even if the filter changes.
 */
export async function applyFilter(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { days = 7, confirm, ...options }: ApplyOptions,
): Promise<ApplyOutcome> {
  requirePower(actor, 'moderation')
  const filter = await findFilter(services.db, id)
  if (filter === undefined) throw filterNotFound()
  requirePower(actor, powerForFilter(filter))
  const reason = requireReason(options)
  if (filter.action === 'count') throw new Refusal('bad_transition', 'A filter that only counts cannot be applied.')
  const { ids, authors, complete } = await findHits(services, filter, days)
  const hits = countIds(ids)
  const power = hits > MODERATION_LIMITS.cleanedByModerator ? 'administration' : powerForFilter(filter)
  requirePower(actor, power)
  if (hits === 0) return { changed: false, hits, complete }
  if (confirm !== String(hits)) {
    throw new Refusal('confirmation_needed', `Set confirm to ${hits}, the number of hits.`, {
      details: { preview: { hits, authors, complete } },
    })
  }
  return inRequestTransaction(services, async (transaction) => {
    if ((await lockFilter(transaction, id)) === undefined) throw filterNotFound()
    const shouldHide = filter.action !== 'flag'
    const newAction = await insertAction(services, transaction, actor, {
      kind: 'filter.apply',
      target: { type: 'filter', guid: String(id), label: `${filter.kind}: ${filter.value}` },
      reason,
      caseId: options.caseId,
      undo: { possible: shouldHide },
      power,
      after: { hits, hidden: shouldHide },
    })
    const details = { actionId: newAction.id, shouldHide, ...ids }
    const work = { kind: APPLY_FILTER, target: String(id), total: hits, reason, details }
    let task: BackgroundTask | undefined
    if (hits <= MODERATION_LIMITS.cleanedInRequest)
      await changeHits(services, transaction, { ...details, filterId: id, ids })
    else task = await startBackgroundTask(services, transaction, actor, work)
    const action = await auditAction(services, transaction, newAction)
    return { changed: true, action, hits, complete, task }
  })
}

/** The stored posts and comments that the filter hits, without those that it hides already. */
async function findHits(services: ModerationServices, filter: ListedFilter, days: number) {
  const { found, complete } = await scanDocuments(services, filter, sinceDays(services, days))
  const guidsOf = (type: 'post' | 'comment') =>
    found.flatMap(({ document }) => (document.type === type ? [document.guid] : []))
  const guids = { posts: guidsOf('post'), comments: guidsOf('comment') }
  const ids = subtractIds(await findContentIds(services.db, guids), await findHiddenByFilter(services.db, filter.id))
  const ofContent = found.filter(({ document: { type } }) => type === 'post' || type === 'comment')
  return { ids, authors: new Set(ofContent.map(({ document }) => document.author)).size, complete }
}

function subtractIds({ postIds, commentIds }: ContentIds, left: ContentIds): ContentIds {
  const [posts, comments] = [new Set(left.postIds), new Set(left.commentIds)]
  return { postIds: postIds.filter((id) => !posts.has(id)), commentIds: commentIds.filter((id) => !comments.has(id)) }
}

function countIds({ postIds, commentIds }: ContentIds): number {
  return postIds.length + commentIds.length
}

/** The content that the operation changes. The counts of the operation say how much of it is done. */
interface ApplyDetails extends ContentIds {
  readonly actionId: number
  readonly shouldHide: boolean
}

interface HitsToChange extends Pick<ApplyDetails, 'actionId' | 'shouldHide'> {
  readonly filterId: number
  readonly ids: ContentIds
}

/** Hides or flags hits. Returns the number of changed ones. */
async function changeHits(
  services: Pick<Services, 'config' | 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  { filterId, actionId, shouldHide, ids }: HitsToChange,
): Promise<number> {
  if (shouldHide) return hideContentRows(transaction, actionId, ids)
  const targets = await findContentTargets(transaction, ids)
  const flaggedTargets = targets.map(({ type, guid }) => ({ targetType: type, targetGuid: guid, filterId }))
  const cases = await createFilterCases(transaction, flaggedTargets, reopeningTimes(services.now()))
  await enqueueLiveEventsAndMails(services, transaction, { cases })
  return targets.length
}

const ROW_BATCH_SIZE = 500

/** Applies filters. The target is the filter. If the action is undone meanwhile, the remaining hits are left as they are. */
export const applyFilterTaskHandlers: Pick<BackgroundTaskHandlers, typeof APPLY_FILTER> = {
  [APPLY_FILTER]: {
    async runChunk(services, transaction, { target, details, done, skipped }) {
      const hits = details as unknown as ApplyDetails
      const action = await lockAction(transaction, hits.actionId)
      if (action?.undoneById !== null) return { done: 0, skipped: 0 }
      const ids = sliceIds(hits, done + skipped, ROW_BATCH_SIZE)
      const changedCount = await changeHits(services, transaction, { ...hits, filterId: Number(target), ids })
      return { done: changedCount, skipped: countIds(ids) - changedCount }
    },
    /** The action has its entry in the audit log. */
    async complete() {},
  },
}

/** Posts first, then comments. */
function sliceIds({ postIds, commentIds }: ContentIds, from: number, limit: number): ContentIds {
  const posts = postIds.slice(from, from + limit)
  const fromComment = Math.max(0, from - postIds.length)
  return { postIds: posts, commentIds: commentIds.slice(fromComment, fromComment + limit - posts.length) }
}
