import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import type { CleaningDetails } from '../../../persistence/moderation/action-details.js'
import type { ActionRow } from '../../../persistence/moderation/actions.js'
import { changeClusterState, closeCaseOfCluster } from '../../../persistence/moderation/clusters.js'
import { deleteUnchangedFilter, insertFilter } from '../../../persistence/moderation/filters.js'
import { deleteUnchangedPodRules, lockPodRules, savePodRule } from '../../../persistence/moderation/pod-rules.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import { type BackgroundTask, startBackgroundTask } from '../../operations/background-tasks.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower, SYSTEM_ACTOR } from '../actor.js'
import { reloadFilters } from '../filters/active-filters.js'
import { MODERATION_LIMITS } from '../limits.js'
import { unlockUsers } from '../lock-users.js'
import { enforcePodRules } from '../pods/pod-rules.js'
import type { RuleDomain } from '../pods/rule-domain.js'
import { type ActionOptions, type ActionOutcome, auditAction, insertAction, requireReason } from '../record-action.js'
import { cleanInOneTransaction, restoreInRequest } from './cleaning-work.js'
import { CLEANING_TASKS, lockOpenCluster } from './clusters.js'
import { type CleanParts, type CleanPlan, type CleanPreview, planCleaning, previewOf } from './plan-cleaning.js'
import { reopenCleanedCluster } from './reopen-cluster.js'

export interface CleanOutcome extends ActionOutcome {
  readonly preview: CleanPreview
  /** The work in the background; undefined: it is done. */
  readonly task?: BackgroundTask | undefined
}

/**
 * Cleans a cluster with one action and one audit entry. Filter and rules are in force at once; many items and authors are changed in the
 * background, and the cluster is in the state "cleaning" in the meantime. The undo shows hidden content again; retractions stay.
 */
export async function cleanCluster(
  services: ModerationServices,
  actor: Actor,
  { id, confirm, ...parts }: CleanParts & { readonly id: number; readonly confirm?: string | undefined },
  options: ActionOptions,
): Promise<CleanOutcome> {
  requirePower(actor, 'moderation')
  const outcome = await inRequestTransaction(services, async (transaction): Promise<CleanOutcome> => {
    const cluster = await lockOpenCluster(transaction, id)
    const reason = requireReason(options)
    const plan = await planCleaning(services, transaction, cluster, parts)
    const preview = previewOf(plan)
    const isLarge = preview.hide + preview.remove > MODERATION_LIMITS.cleanedByModerator
    const power = isLarge || preview.pods.length > 1 ? 'administration' : 'moderation'
    requirePower(actor, power)
    requireConfirmation(preview, confirm)

    const filterId = plan.filter && (await insertFilter(transaction, plan.filter, createdBy(services, actor)))
    const ruleIds = await addPodRules(services, transaction, plan.rules, {
      state: parts.pods,
      reason,
      createdBy: actor.name,
    })
    const isInBackground = isLong(plan)
    await changeClusterState(transaction, id, isInBackground ? 'cleaning' : 'cleaned')
    const newAction = await insertAction(services, transaction, actor, {
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
      details: { ...detailsOf(plan, parts), filterId: filterId ?? null, ruleIds } satisfies CleaningDetails,
    })
    const details = { actionId: newAction.id }
    const work = { kind: CLEANING_TASKS.clean, target: String(id), total: plan.total, reason, details }
    let task: BackgroundTask | undefined
    if (isInBackground) task = await startBackgroundTask(services, transaction, actor, work)
    else await cleanInOneTransaction(services, transaction, newAction.id)
    const action = await auditAction(services, transaction, newAction)
    await closeCaseOfCluster(transaction, cluster, { state: 'resolved', actorId: actor.userId, at: services.now() })
    return { changed: true, action, preview, task }
  })
  if (outcome.preview.filter !== undefined) await reloadFilters(services)
  return outcome
}

/** Whether the work is more than one request does. */
function isLong({ total, removed }: CleanPlan): boolean {
  const { cleanedInRequest, removedInRequest } = MODERATION_LIMITS
  return total > cleanedInRequest || removed.length > removedInRequest
}

function detailsOf(
  { removed, restricted }: CleanPlan,
  { hide, authors, except }: CleanParts,
): Omit<CleaningDetails, 'filterId' | 'ruleIds'> {
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
 * Shows what the cleaning has hidden, removes its filter and rules unless they were changed, and opens accounts, cluster and case
 * again. A cleaning that still runs ends. Many items and authors are released in the background, in the state "restoring".
 */
export async function undoCleaning(
  services: Pick<Services, 'config' | 'jobs' | 'now'>,
  transaction: Knex.Transaction,
  { id, targetGuid, details, createdAt }: ActionRow,
): Promise<void> {
  if (typeof details['filterId'] === 'number') await deleteUnchangedFilter(transaction, details['filterId'])
  const { ruleIds, lockedIds } = details
  await unlockUsers(transaction, Array.isArray(lockedIds) ? lockedIds : [])
  if (Array.isArray(ruleIds) && ruleIds.length > 0) {
    await lockPodRules(transaction)
    await deleteUnchangedPodRules(transaction, ruleIds, createdAt)
    await enforcePodRules(services, transaction)
  }
  const clusterId = Number(targetGuid)
  const remainingItems = await restoreInRequest(services, transaction, id)
  if (remainingItems === 0) return reopenCleanedCluster(services, transaction, clusterId)
  await changeClusterState(transaction, clusterId, 'restoring')
  const reason = 'The cleaning is undone.'
  const work = {
    kind: CLEANING_TASKS.restore,
    target: targetGuid,
    total: remainingItems,
    reason,
    details: { actionId: id },
  }
  await startBackgroundTask(services, transaction, SYSTEM_ACTOR, work)
}

function requireConfirmation(preview: CleanPreview, confirm: string | undefined): void {
  if (preview.remove < 2 || confirm === String(preview.remove)) return
  const { hide, remove, people, filter } = preview
  throw new Refusal('confirmation_needed', `Set confirm to ${remove}, the number of removed items.`, {
    details: { preview: { hide, remove, people, filter: filter ?? null } },
  })
}

async function addPodRules(
  services: Pick<Services, 'jobs' | 'now'>,
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
    ids.push((await savePodRule(transaction, { ...rule, ...more }, services.now())).id)
  }
  await enforcePodRules(services, transaction)
  return ids
}

function createdBy(services: Pick<Services, 'now'>, { name }: Actor) {
  return { createdBy: name, at: services.now() }
}
