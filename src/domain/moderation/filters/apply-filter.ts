import { inTransaction } from '../../../persistence/database/transactions.js'
import { createFilterCases, findContentIds, findFilter, lockFilter } from '../../../persistence/moderation/filters.js'
import { hideContentRows } from '../../../persistence/moderation/hidden-content.js'
import type { Pod } from '../../../pod/pod.js'
import { enqueueAnnouncement } from '../../notifications/announcements.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from '../record-action.js'
import type { FilteredDocument } from './check-documents.js'
import { filterNotFound, powerForFilter } from './filters.js'
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
}

/**
 * Applies a filter to the posts and comments of the last days. A filter that flags opens cases; one that hides or rejects hides them as
 * one action, which one undo takes back.
 */
export async function applyFilter(
  pod: Pick<Pod, 'db' | 'jobs' | 'config' | 'now' | 'log' | 'requestContext'>,
  actor: Actor,
  id: number,
  { days = 7, confirm, ...options }: ApplyOptions,
): Promise<ApplyOutcome> {
  requirePower(actor, 'moderation')
  const filter = await findFilter(pod.db, id)
  if (filter === undefined) throw filterNotFound()
  requirePower(actor, powerForFilter(filter))
  const reason = requireReason(options)
  if (filter.action === 'count') throw new Refusal('bad_transition', 'A filter that only counts cannot be applied.')
  const { found, complete } = await scanDocuments(pod, filter, sinceDays(pod, days))
  const hit = found.filter(isHideable)
  const power = hit.length > MODERATION_LIMITS.cleanedByModerator ? 'administration' : powerForFilter(filter)
  requirePower(actor, power)
  if (hit.length === 0) return { changed: false, hits: 0, complete }
  if (confirm !== String(hit.length)) {
    const authors = new Set(hit.map(({ document }) => document.author)).size
    throw new Refusal('confirmation_needed', `Set confirm to ${hit.length}, the number of hits.`, {
      details: { preview: { hits: hit.length, authors, complete } },
    })
  }
  return inTransaction(pod, async (transaction) => {
    if ((await lockFilter(transaction, id)) === undefined) throw filterNotFound()
    const guidsOf = (type: 'post' | 'comment') =>
      hit.flatMap(({ document }) => (document.type === type ? [document.guid] : []))
    const shouldHide = filter.action !== 'flag'
    const flagged = hit.map(({ document: { type, guid } }) => ({ targetType: type, targetGuid: guid, filterId: id }))
    const action = await recordAction(pod, transaction, actor, {
      kind: 'filter.apply',
      target: { type: 'filter', guid: String(id), label: `${filter.kind}: ${filter.value}` },
      reason,
      caseId: options.caseId,
      undo: { possible: shouldHide },
      power,
      after: { hits: hit.length, hidden: shouldHide },
      effect: async (actionId) => {
        if (!shouldHide) {
          const cases = await createFilterCases(transaction, flagged, pod.now())
          return enqueueAnnouncement(pod, transaction, { cases })
        }
        const ids = await findContentIds(transaction, { posts: guidsOf('post'), comments: guidsOf('comment') })
        await hideContentRows(transaction, actionId, ids)
      },
    })
    return { changed: true, action, hits: hit.length, complete }
  })
}

function isHideable({ document: { type } }: FilteredDocument): boolean {
  return type === 'post' || type === 'comment'
}
