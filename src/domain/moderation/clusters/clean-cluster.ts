import type { Knex } from 'knex'
import { inTransaction } from '../../../persistence/database/transactions.js'
import type { ActionRow } from '../../../persistence/moderation/actions.js'
import { changeClusterState, closeCaseOfCluster, reopenCluster } from '../../../persistence/moderation/clusters.js'
import { deleteUnchangedFilter, insertFilter } from '../../../persistence/moderation/filters.js'
import { deleteUnchangedPodRules, lockPodRules, savePodRule } from '../../../persistence/moderation/pod-rules.js'
import type { Pod } from '../../../pod/pod.js'
import { type BackgroundOperation, startOperation } from '../../operations/long-operations.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower, SYSTEM_ACTOR } from '../actor.js'
import { reloadFilters } from '../filters/active-filters.js'
import { MODERATION_LIMITS } from '../limits.js'
import { unlockUsers } from '../lock-members.js'
import { enforcePodRules } from '../pods/pod-rules.js'
import type { RuleDomain } from '../pods/rule-domain.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from '../record-action.js'
import { type CleaningDetails, cleanAll, restoreAtOnce } from './cleaning-work.js'
import { CLEANING_OPERATIONS, lockOpenCluster } from './clusters.js'
import { type CleanParts, type CleanPlan, type CleanPreview, planCleaning, previewOf } from './plan-cleaning.js'

type CleanPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'requestContext' | 'config'>

export interface CleanOutcome extends ActionOutcome {
  readonly preview: CleanPreview
  /** The work in the background; undefined: it is done. */
  readonly operation?: BackgroundOperation | undefined
}

/**
 * Cleans a cluster with one action and one audit entry. Filter and rules are in force at once; many items and authors are changed in the
 * background, and the cluster is in the state "cleaning" meanwhile. The undo shows what was hidden; retractions stay.
 */
export async function cleanCluster(
  pod: CleanPod,
  actor: Actor,
  id: number,
  { confirm, ...parts }: CleanParts & { readonly confirm?: string | undefined },
  options: ActionOptions,
): Promise<CleanOutcome> {
  requirePower(actor, 'moderation')
  const outcome = await inTransaction(pod, async (transaction): Promise<CleanOutcome> => {
    const cluster = await lockOpenCluster(transaction, id)
    const reason = requireReason(options)
    const plan = await planCleaning(pod, transaction, cluster, parts)
    const preview = previewOf(plan)
    const isLarge = preview.hide + preview.remove > MODERATION_LIMITS.cleanedByModerator
    const power = isLarge || preview.pods.length > 1 ? 'administration' : 'moderation'
    requirePower(actor, power)
    requireConfirmation(preview, confirm)

    const filterId = plan.filter && (await insertFilter(transaction, plan.filter, createdBy(pod, actor)))
    const ruleIds = await addPodRules(pod, transaction, plan.rules, {
      state: parts.pods,
      reason,
      createdBy: actor.name,
    })
    const isInBackground = isLong(plan)
    await changeClusterState(transaction, id, isInBackground ? 'cleaning' : 'cleaned')
    let operation: BackgroundOperation | undefined
    const action = await recordAction(pod, transaction, actor, {
      kind: 'cluster.clean',
      target: { type: 'cluster', guid: String(id), label: `${cluster.kind}: ${cluster.label}` },
      reason,
      caseId: options.caseId ?? cluster.caseId ?? undefined,
      undo: { possible: true, ...(preview.remove > 0 && { loses: `${preview.remove} retracted items` }) },
      power,
      after: {
        hidden: preview.hide,
        removed: preview.remove,
        filter: filterId ?? null,
        pods: preview.pods,
        authors: preview.authors,
      },
      details: { ...detailsOf(plan, parts), filterId: filterId ?? null, ruleIds },
      effect: async (actionId) => {
        if (!isInBackground) return cleanAll(pod, transaction, actionId)
        const work = {
          kind: CLEANING_OPERATIONS.clean,
          target: String(id),
          total: plan.total,
          reason,
          details: { actionId },
        }
        operation = await startOperation(pod, transaction, actor, work)
      },
    })
    await closeCaseOfCluster(transaction, cluster, { state: 'resolved', actorId: actor.userId, at: pod.now() })
    return { changed: true, action, preview, operation }
  })
  if (outcome.preview.filter !== undefined) await reloadFilters(pod)
  return outcome
}

/** Whether the work is more than one request does. */
function isLong({ total, removed }: CleanPlan): boolean {
  const { cleanedAtOnce, removedInRequest } = MODERATION_LIMITS
  return total > cleanedAtOnce || removed.length > removedInRequest
}

function detailsOf({ removed, restricted }: CleanPlan, { hide, authors, except }: CleanParts): CleaningDetails {
  const inOrder = removed.toSorted((one, other) => (one.guid < other.guid ? -1 : 1))
  return {
    hide,
    except,
    authors,
    authorIds: restricted.map((author) => author.id),
    removed: inOrder.map(({ type, guid }) => ({ type, guid })),
    lockedIds: [],
    place: { step: 'authors', after: 0 },
  }
}

/**
 * Shows what the cleaning has hidden, removes its filter and rules unless they were changed, and opens accounts and cluster again. A
 * cleaning that still runs ends. Many items and authors are released in the background, in the state "restoring".
 */
export async function undoCleaning(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  { id, targetGuid, details, createdAt }: ActionRow,
): Promise<void> {
  if (typeof details['filterId'] === 'number') await deleteUnchangedFilter(transaction, details['filterId'])
  const { ruleIds, lockedIds } = details
  await unlockUsers(transaction, Array.isArray(lockedIds) ? lockedIds : [])
  if (Array.isArray(ruleIds) && ruleIds.length > 0) {
    await lockPodRules(transaction)
    await deleteUnchangedPodRules(transaction, ruleIds, createdAt)
    await enforcePodRules(pod, transaction)
  }
  const clusterId = Number(targetGuid)
  const left = await restoreAtOnce(pod, transaction, id)
  if (left === 0) return reopenCluster(transaction, clusterId)
  await changeClusterState(transaction, clusterId, 'restoring')
  const reason = 'The cleaning is undone.'
  const work = { kind: CLEANING_OPERATIONS.restore, target: targetGuid, total: left, reason, details: { actionId: id } }
  await startOperation(pod, transaction, SYSTEM_ACTOR, work)
}

function requireConfirmation(preview: CleanPreview, confirm: string | undefined): void {
  if (preview.remove < 2 || confirm === String(preview.remove)) return
  const { hide, remove, people, filter } = preview
  throw new Refusal('confirmation_needed', `Set confirm to ${remove}, the number of removed items.`, {
    details: { preview: { hide, remove, people, filter: filter ?? null } },
  })
}

async function addPodRules(
  pod: Pick<Pod, 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  domains: readonly RuleDomain[],
  {
    state,
    reason,
    createdBy: by,
  }: { readonly state: CleanParts['pods']; readonly reason: string; readonly createdBy: string },
): Promise<readonly number[]> {
  if (state === 'none' || domains.length === 0) return []
  await lockPodRules(transaction)
  const ids: number[] = []
  for (const domain of domains) {
    const rule = {
      ...domain,
      state,
      reason,
      publicComment: '',
      obfuscate: false,
      until: null,
      source: 'manual',
    } as const
    const more = { batchId: null, createdBy: by, rejectMedia: false, rejectReports: false }
    ids.push((await savePodRule(transaction, { ...rule, ...more }, pod.now())).id)
  }
  await enforcePodRules(pod, transaction)
  return ids
}

function createdBy(pod: Pick<Pod, 'now'>, { name }: Actor) {
  return { createdBy: name, at: pod.now() }
}
