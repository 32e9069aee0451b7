import type { Knex } from 'knex'
import { markActionsNotUndoable } from '../../../persistence/moderation/actions.js'
import {
  type ClusterRow,
  changeClusterState,
  findOpenCluster,
  lockCluster,
  reopenCaseOfCluster,
} from '../../../persistence/moderation/clusters.js'
import type { Services } from '../../../services/services.js'
import { enqueueLiveEventsAndMails } from '../../notifications/enqueue-live-events.js'
import { Refusal } from '../../refusals.js'

type ReopeningServices = Pick<Services, 'config' | 'jobs' | 'now'>

/** Opens a cluster and its case again whose cleaning is undone. It is dismissed if a newer one with its key is open. */
export async function reopenCleanedCluster(
  services: ReopeningServices,
  transaction: Knex.Transaction,
  id: number,
): Promise<void> {
  const cluster = await lockCluster(transaction, id)
  if (cluster === undefined || cluster.state === 'open' || cluster.state === 'dismissed') return
  if ((await findOpenCluster(transaction, cluster.key)) !== undefined) {
    return changeClusterState(transaction, id, 'dismissed')
  }
  await reopen(services, transaction, cluster)
}

/** Opens a dismissed cluster and its case again. */
export async function undoDismissal(
  services: ReopeningServices,
  transaction: Knex.Transaction,
  { targetGuid }: { readonly targetGuid: string },
): Promise<void> {
  const cluster = await lockCluster(transaction, Number(targetGuid))
  if (cluster?.state !== 'dismissed') throw new Refusal('not_undoable', 'The cluster is not dismissed.')
  const open = await findOpenCluster(transaction, cluster.key)
  if (open !== undefined) throw new Refusal('not_undoable', `Cluster ${open.id} with the same key is open.`)
  await reopen(services, transaction, cluster)
}

/** Brings a cluster in line with its case, which a moderator opens again: otherwise an open case would have a closed cluster. */
export async function reopenClusterOfCase(transaction: Knex.Transaction, cluster: ClusterRow): Promise<void> {
  const { id, key, state } = cluster
  if (state === 'open') return
  if (state !== 'dismissed') {
    throw new Refusal('bad_transition', `The cluster of the case is ${state}. The undo of its cleaning opens the case.`)
  }
  const open = await findOpenCluster(transaction, key)
  if (open !== undefined) throw new Refusal('bad_transition', `Cluster ${open.id} with the same key is open.`)
  await changeClusterState(transaction, id, 'open')
  const dismissal = { kind: 'cluster.dismiss', targetType: 'cluster', targetGuid: String(id) }
  await markActionsNotUndoable(transaction, dismissal)
}

async function reopen(services: ReopeningServices, transaction: Knex.Transaction, cluster: ClusterRow): Promise<void> {
  await changeClusterState(transaction, cluster.id, 'open')
  await reopenCaseOfCluster(transaction, cluster, services.now())
  if (cluster.caseId !== null) await enqueueLiveEventsAndMails(services, transaction, { cases: [cluster.caseId] })
}
