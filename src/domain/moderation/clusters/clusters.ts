import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import {
  type ClusterAuthor,
  type ClusterItem,
  type ClusterRow,
  changeClusterState,
  closeCaseOfCluster,
  findCluster,
  type ListedCluster,
  listClusterAuthors,
  listClusterItems,
  listClusters,
  lockCluster,
} from '../../../persistence/moderation/clusters.js'
import { type BackgroundTask, findLatestTask } from '../../../persistence/operations/background-tasks.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from '../record-action.js'

export type { ListedCluster }

export interface ShownAuthor extends ClusterAuthor {
  /** An action on the author is proposed: no local user follows them, and they are known for a short time. */
  readonly isProposed: boolean
}

/** The kinds of operations that clean a cluster, and that take a cleaning back. */
export const CLEANING_TASKS = { clean: 'cluster.clean', restore: 'cluster.restore' } as const

export interface ClusterDetails extends ListedCluster {
  /** The cleaning or undo in progress. */
  readonly task: BackgroundTask | undefined
  /** The newest. */
  readonly items: readonly ClusterItem[]
  readonly authors: readonly ShownAuthor[]
}

/** Lists clusters, newest first. */
export async function listSpamClusters(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  filter: { readonly states?: readonly ClusterRow['state'][] | undefined },
  page: IdPage,
): Promise<ListPage<ListedCluster>> {
  requirePower(actor, 'moderation')
  return listClusters(db, filter, page)
}

/** Reads a cluster with its newest items, and with its authors, those with most items first. */
export async function readCluster(
  { db, now }: Pick<Services, 'db' | 'now'>,
  actor: Actor,
  id: number,
): Promise<ClusterDetails> {
  requirePower(actor, 'moderation')
  const [cluster, items, authors] = await Promise.all([
    findCluster(db, id),
    listClusterItems(db, id, MODERATION_LIMITS.clusterItemsShown),
    listClusterAuthors(db, id, MODERATION_LIMITS.clusterItemsShown),
  ])
  if (cluster === undefined) throw clusterNotFound()
  const isInProgress = cluster.state === 'cleaning' || cluster.state === 'restoring'
  const task = isInProgress ? await findLatestTask(db, Object.values(CLEANING_TASKS), String(id)) : undefined
  return { ...cluster, items, authors: authors.map((author) => withProposal(author, now())), task }
}

/** Dismisses a cluster and its case. The same key opens no cluster for a week. */
export async function dismissCluster(
  services: Pick<Services, 'db' | 'requestContext' | 'log' | 'now'>,
  actor: Actor,
  id: number,
  options: ActionOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const cluster = await lockOpenCluster(transaction, id)
    const reason = requireReason(options)
    await changeClusterState(transaction, id, 'dismissed')
    const { kind, label, caseId } = cluster
    const action = await recordAction(services, transaction, actor, {
      kind: 'cluster.dismiss',
      target: { type: 'cluster', guid: String(id), label: `${kind}: ${label}` },
      reason,
      caseId: caseId ?? undefined,
      undo: { possible: true },
    })
    await closeCaseOfCluster(transaction, cluster, { state: 'dismissed', actorId: actor.userId, at: services.now() })
    return { changed: true, action }
  })
}

export async function lockOpenCluster(transaction: Knex.Transaction, id: number): Promise<ClusterRow> {
  const cluster = await lockCluster(transaction, id)
  if (cluster === undefined) throw clusterNotFound()
  if (cluster.state !== 'open') throw new Refusal('bad_transition', `The cluster is ${cluster.state}.`)
  return cluster
}

/** People whom a local user follows, and people who are known for long, are not ticked. */
export function withProposal(author: ClusterAuthor, now: Date): ShownAuthor {
  const days = (now.getTime() - author.firstSeenAt.getTime()) / DAY_MS
  return { ...author, isProposed: !author.isFollowed && days < MODERATION_LIMITS.knownAuthorDays }
}

export function clusterNotFound(): Refusal {
  return new Refusal('cluster_not_found', 'There is no cluster with this number.')
}
