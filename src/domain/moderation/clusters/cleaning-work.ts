import type { Knex } from 'knex'
import { changeActionDetails, lockAction } from '../../../persistence/moderation/actions.js'
import {
  type ClusterPosition,
  changeClusterState,
  findLocalAuthors,
  groupContentIds,
  listCleanableItems,
  reopenCluster,
} from '../../../persistence/moderation/clusters.js'
import {
  countContentOfAction,
  hideContentRows,
  showContentOfAction,
} from '../../../persistence/moderation/hidden-content.js'
import {
  countRestrictedPeople,
  findRestrictedPeople,
  liftRestrictions,
  restrictPeople,
} from '../../../persistence/moderation/restrictions.js'
import type { Pod } from '../../../pod/pod.js'
import type { BackgroundOperation, OperationWorks } from '../../operations/long-operations.js'
import { retractEntity } from '../../posts/retract.js'
import { findContent } from '../find-content.js'
import { followUpRestrictions } from '../follow-up-restrictions.js'
import { MODERATION_LIMITS } from '../limits.js'
import { lockMembers } from '../lock-members.js'
import { CLEANING_OPERATIONS } from './clusters.js'
import type { CleanParts } from './plan-cleaning.js'

type WorkPod = Pick<Pod, 'jobs' | 'now'>

/** What the action of a cleaning keeps: the chosen parts, the place where the work continues, and what its undo needs. */
export interface CleaningDetails extends Pick<CleanParts, 'hide' | 'except' | 'authors'> {
  readonly authorIds: readonly number[]
  /** In the order of guids, as all transactions lock them. */
  readonly removed: readonly { readonly type: 'post' | 'comment'; readonly guid: string }[]
  /** The users whose accounts the cleaning has locked. */
  readonly lockedIds: readonly number[]
  readonly place: CleaningPlace
}

/** Authors are restricted first, so that they add nothing while the rest is done. */
type CleaningPlace =
  | { readonly step: 'authors'; readonly after: number }
  | { readonly step: 'remove'; readonly after: number }
  | { readonly step: 'hide'; readonly after: ClusterPosition | null }
  | { readonly step: 'done' }

interface ChunkResult {
  readonly done: number
  readonly next: CleaningPlace
  readonly lockedIds?: readonly number[]
}

const PERSON_BATCH_SIZE = 100
const ROW_BATCH_SIZE = 500
/** Each retraction takes some ten statements. */
const REMOVAL_BATCH_SIZE = 50

/** Does the whole work of a cleaning in one transaction: for those that are small. */
export async function cleanAll(pod: WorkPod, transaction: Knex.Transaction, actionId: number): Promise<void> {
  while ((await cleanNext(pod, transaction, actionId)) > 0) {
    // The place of the work is in the row of the action.
  }
}

/** Does the next chunk of a cleaning; returns its size. 0: nothing is left, or the action is undone. */
async function cleanNext(pod: WorkPod, transaction: Knex.Transaction, actionId: number): Promise<number> {
  const action = await lockAction(transaction, actionId)
  if (action?.undoneById !== null) return 0
  const details = action.details as unknown as CleaningDetails
  const clusterId = Number(action.targetGuid)
  let { place } = details
  let { lockedIds } = details
  let done = 0
  while (done === 0 && place.step !== 'done') {
    const chunk: ChunkResult =
      place.step === 'authors'
        ? await restrictNext(pod, transaction, actionId, details, place.after)
        : place.step === 'remove'
          ? await retractNext(pod, transaction, details, place.after)
          : await hideNext(transaction, { actionId, clusterId }, details, place.after)
    done = chunk.done
    place = chunk.next
    lockedIds = [...lockedIds, ...(chunk.lockedIds ?? [])]
  }
  await changeActionDetails(transaction, actionId, { place, lockedIds })
  return done
}

async function restrictNext(
  pod: WorkPod,
  transaction: Knex.Transaction,
  actionId: number,
  { authors, authorIds }: CleaningDetails,
  after: number,
): Promise<ChunkResult> {
  const ids = authors === 'none' ? [] : authorIds.slice(after, after + PERSON_BATCH_SIZE)
  if (ids.length === 0 || authors === 'none') return { done: 0, next: { step: 'remove', after: 0 } }
  const local = await findLocalAuthors(transaction, ids)
  const localIds = new Set(local.map(({ id }) => id))
  const remote = ids.filter((id) => !localIds.has(id))
  const source = { source: 'action', id: actionId } as const
  const lockedIds = authors === 'lock' ? await lockMembers(pod, transaction, local) : []
  if (authors !== 'lock') await restrictPeople(transaction, source, 'silence', [...localIds])
  const kind = authors === 'silence' ? 'silence' : 'block'
  await followUpRestrictions(pod, transaction, await restrictPeople(transaction, source, kind, remote))
  return { done: ids.length, next: { step: 'authors', after: after + ids.length }, lockedIds }
}

async function retractNext(
  pod: WorkPod,
  transaction: Knex.Transaction,
  { removed }: CleaningDetails,
  after: number,
): Promise<ChunkResult> {
  const items = removed.slice(after, after + REMOVAL_BATCH_SIZE)
  if (items.length === 0) return { done: 0, next: { step: 'hide', after: null } }
  for (const item of items) {
    const content = await findContent(transaction, item)
    if (content?.retraction !== undefined) await retractEntity(pod, transaction, content.retraction)
  }
  return { done: items.length, next: { step: 'remove', after: after + items.length } }
}

/** Also what another action hides already: its undo alone must not show spam again. */
async function hideNext(
  transaction: Knex.Transaction,
  { actionId, clusterId }: { readonly actionId: number; readonly clusterId: number },
  { hide, except }: CleaningDetails,
  after: ClusterPosition | null,
): Promise<ChunkResult> {
  const page = { except, after: after ?? undefined, limit: ROW_BATCH_SIZE }
  const items = hide ? await listCleanableItems(transaction, clusterId, page) : []
  const last = items.at(-1)
  if (last === undefined) return { done: 0, next: { step: 'done' } }
  await hideContentRows(transaction, actionId, groupContentIds(items))
  return { done: items.length, next: { step: 'hide', after: { type: last.type, contentId: last.contentId } } }
}

/** Shows content and ends restrictions of a cleaning, one chunk of each. Returns how many rows are left for the background. */
export async function restoreAtOnce(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  actionId: number,
): Promise<number> {
  await showContentOfAction(transaction, actionId, MODERATION_LIMITS.cleanedAtOnce)
  await restorePeople(pod, transaction, actionId)
  const source = { source: 'action', id: actionId } as const
  return (await countContentOfAction(transaction, actionId)) + (await countRestrictedPeople(transaction, source))
}

async function restorePeople(pod: Pick<Pod, 'jobs'>, transaction: Knex.Transaction, actionId: number): Promise<number> {
  const source = { source: 'action', id: actionId } as const
  const ids = await findRestrictedPeople(transaction, source, PERSON_BATCH_SIZE)
  if (ids.length > 0) await followUpRestrictions(pod, transaction, await liftRestrictions(transaction, source, ids))
  return ids.length
}

/** Cleans clusters, and takes cleanings back. The target is the cluster, so that only one of a kind runs for it. */
export const cleaningOperations: Pick<OperationWorks, 'cluster.clean' | 'cluster.restore'> = {
  [CLEANING_OPERATIONS.clean]: {
    async runChunk(pod, transaction, { details }) {
      return { done: await cleanNext(pod, transaction, actionIn(details)), skipped: 0 }
    },
    async complete(_pod, transaction, { target, details }) {
      const action = await lockAction(transaction, actionIn(details))
      if (action?.undoneById === null) await changeClusterState(transaction, Number(target), 'cleaned')
    },
  },
  [CLEANING_OPERATIONS.restore]: {
    async runChunk(pod, transaction, { details }) {
      const shown = await showContentOfAction(transaction, actionIn(details), ROW_BATCH_SIZE)
      const done = shown > 0 ? shown : await restorePeople(pod, transaction, actionIn(details))
      return { done, skipped: 0 }
    },
    async complete(_pod, transaction, { target }) {
      await reopenCluster(transaction, Number(target))
    },
  },
}

function actionIn(details: BackgroundOperation['details']): number {
  return Number(details['actionId'])
}
