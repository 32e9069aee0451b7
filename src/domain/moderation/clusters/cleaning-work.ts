import type { Knex } from 'knex'
import {
  type CleaningCursor,
  type CleaningDetails,
  readActionDetails,
} from '../../../persistence/moderation/action-details.js'
import { changeActionDetails, lockAction } from '../../../persistence/moderation/actions.js'
import { setDeleter } from '../../../persistence/moderation/cases.js'
import {
  type ClusterPosition,
  changeClusterState,
  findLocalAuthors,
  groupContentIds,
  listCleanableItems,
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
import type { Services } from '../../../services/services.js'
import type { BackgroundTask, BackgroundTaskHandlers } from '../../operations/background-tasks.js'
import { retractEntity } from '../../posts/retract.js'
import { findContent } from '../find-content.js'
import { followUpRestrictions } from '../follow-up-restrictions.js'
import { MODERATION_LIMITS } from '../limits.js'
import { lockUsersWithoutRole } from '../lock-users.js'
import { CLEANING_TASKS } from './clusters.js'
import { reopenCleanedCluster } from './reopen-cluster.js'

type CleaningDependencies = Pick<Services, 'jobs' | 'now'>

interface ChunkResult {
  readonly done: number
  readonly next: CleaningCursor
  readonly lockedIds?: readonly number[]
}

const PERSON_BATCH_SIZE = 100
const ROW_BATCH_SIZE = 500
/** Each retraction takes some ten statements. */
const REMOVAL_BATCH_SIZE = 50

/** Does the whole work of a cleaning in one transaction: for those that are small. */
export async function cleanInOneTransaction(
  services: CleaningDependencies,
  transaction: Knex.Transaction,
  actionId: number,
): Promise<void> {
  while ((await cleanNext(services, transaction, actionId)) > 0) {
    // The cursor is stored in the action.
  }
}

/** Does the next chunk of a cleaning; returns its size. 0: nothing is left, or the action is undone. */
async function cleanNext(
  services: CleaningDependencies,
  transaction: Knex.Transaction,
  actionId: number,
): Promise<number> {
  const action = await lockAction(transaction, actionId)
  if (action?.undoneById !== null) return 0
  const details = readActionDetails(action, 'cluster.clean')
  const clusterId = Number(action.targetGuid)
  let { place: cursor } = details
  let { lockedIds } = details
  let done = 0
  while (done === 0 && cursor.step !== 'done') {
    const chunk: ChunkResult =
      cursor.step === 'authors'
        ? await restrictNext(services, transaction, { ...details, actionId, after: cursor.after })
        : cursor.step === 'remove'
          ? await retractNext(services, transaction, details, cursor.after)
          : await hideNext(transaction, { actionId, clusterId }, details, cursor.after)
    done = chunk.done
    cursor = chunk.next
    lockedIds = [...lockedIds, ...(chunk.lockedIds ?? [])]
  }
  await changeActionDetails(transaction, actionId, { place: cursor, lockedIds })
  return done
}

async function restrictNext(
  services: CleaningDependencies,
  transaction: Knex.Transaction,
  { authors, authorIds, actionId, after }: CleaningDetails & { readonly actionId: number; readonly after: number },
): Promise<ChunkResult> {
  const ids = authors === 'none' ? [] : authorIds.slice(after, after + PERSON_BATCH_SIZE)
  if (ids.length === 0 || authors === 'none') return { done: 0, next: { step: 'remove', after: 0 } }
  const local = await findLocalAuthors(transaction, ids)
  const localIds = new Set(local.map(({ id }) => id))
  const remote = ids.filter((id) => !localIds.has(id))
  const source = { source: 'action', id: actionId } as const
  const lockedIds = authors === 'lock' ? await lockUsersWithoutRole(services, transaction, local) : []
  if (authors !== 'lock') await restrictPeople(transaction, source, 'silence', [...localIds])
  const kind = authors === 'silence' ? 'silence' : 'block'
  await followUpRestrictions(services, transaction, await restrictPeople(transaction, source, kind, remote))
  return { done: ids.length, next: { step: 'authors', after: after + ids.length }, lockedIds }
}

async function retractNext(
  services: CleaningDependencies,
  transaction: Knex.Transaction,
  { removed }: CleaningDetails,
  after: number,
): Promise<ChunkResult> {
  const items = removed.slice(after, after + REMOVAL_BATCH_SIZE)
  if (items.length === 0) return { done: 0, next: { step: 'hide', after: null } }
  await setDeleter(transaction, 'moderator')
  for (const item of items) {
    const content = await findContent(transaction, item)
    if (content?.retraction !== undefined) await retractEntity(services, transaction, content.retraction)
  }
  return { done: items.length, next: { step: 'remove', after: after + items.length } }
}

/** Hides the next items, even those that another action hides already: the undo of that action must not show spam again. */
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
export async function restoreInRequest(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  actionId: number,
): Promise<number> {
  await showContentOfAction(transaction, actionId, MODERATION_LIMITS.cleanedInRequest)
  await restorePeople(services, transaction, actionId)
  const source = { source: 'action', id: actionId } as const
  return (await countContentOfAction(transaction, actionId)) + (await countRestrictedPeople(transaction, source))
}

async function restorePeople(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  actionId: number,
): Promise<number> {
  const source = { source: 'action', id: actionId } as const
  const ids = await findRestrictedPeople(transaction, source, PERSON_BATCH_SIZE)
  if (ids.length > 0)
    await followUpRestrictions(services, transaction, await liftRestrictions(transaction, source, ids))
  return ids.length
}

/** Cleans clusters, and takes cleanings back. The target is the cluster, so that only one of a kind runs for it. */
export const cleaningTaskHandlers: Pick<BackgroundTaskHandlers, 'cluster.clean' | 'cluster.restore'> = {
  [CLEANING_TASKS.clean]: {
    async runChunk(services, transaction, { details }) {
      return { done: await cleanNext(services, transaction, actionIn(details)), skipped: 0 }
    },
    async complete(_services, transaction, { target, details }) {
      const action = await lockAction(transaction, actionIn(details))
      if (action?.undoneById === null) await changeClusterState(transaction, Number(target), 'cleaned')
    },
  },
  [CLEANING_TASKS.restore]: {
    async runChunk(services, transaction, { details }) {
      const shownRows = await showContentOfAction(transaction, actionIn(details), ROW_BATCH_SIZE)
      const done = shownRows > 0 ? shownRows : await restorePeople(services, transaction, actionIn(details))
      return { done, skipped: 0 }
    },
    async complete(services, transaction, { target }) {
      await reopenCleanedCluster(services, transaction, Number(target))
    },
  },
}

function actionIn(details: BackgroundTask['details']): number {
  return Number(details['actionId'])
}
