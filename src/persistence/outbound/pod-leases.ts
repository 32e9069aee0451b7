import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { POD_ACCEPTS_DELIVERIES_SQL, POD_IS_PROVEN_SQL } from './delivery-conditions.js'

/** A pod that this process delivers to until the lease ends. */
export interface LeasedPod {
  readonly id: number
  readonly host: string
  readonly port: number
  readonly ssl: boolean
  readonly failures: number
}

export interface LeaseRequest {
  readonly podId: number
  readonly leaseId: string
  readonly leaseMs: number
  readonly onlyProven: boolean
}

/** A pod that may be contacted now, and that no other process has leased. */
export type LeaseResult =
  | { readonly isLeased: true; readonly pod: LeasedPod }
  /** The pod is unproven. */
  | { readonly isLeased: false }

/** Leases pods that may be contacted now, each requested once; returns the results by pod. */
export async function leasePods(
  db: Knex,
  requests: readonly LeaseRequest[],
): Promise<ReadonlyMap<number, LeaseResult>> {
  const rows = await queryPrepared<LeasedPod & { readonly isLeased: boolean }>(db, 'pod-leases', POD_LEASES_SQL, [
    requests.map(({ podId }) => podId),
    requests.map(({ leaseId }) => leaseId),
    requests.map(({ leaseMs }) => leaseMs),
    requests.map(({ onlyProven }) => onlyProven),
  ])
  return new Map(rows.map(({ isLeased, ...pod }) => [pod.id, isLeased ? { isLeased, pod } : { isLeased }]))
}

/** The rows are locked in the order of their ids, so that two leases, or a lease and a change of results, cannot deadlock. */
const POD_LEASES_SQL = `
  with candidates as materialized (
    select pods.id, pods.host, pods.port, pods.ssl, pods.failures, requests.lease_id, requests.lease_ms,
      ${POD_IS_PROVEN_SQL} or not requests.only_proven as is_leased
    from unnest(${opaqueParam('$1', 'bigint[]')}, $2::uuid[], $3::integer[], $4::boolean[])
      as requests(pod_id, lease_id, lease_ms, only_proven)
    join pods on pods.id = requests.pod_id
    where (pods.drained_until is null or pods.drained_until <= now())
      and ${POD_ACCEPTS_DELIVERIES_SQL}
    order by pods.id
    for no key update of pods
  ), leased as (
    update pods
    set drained_by = candidates.lease_id, drained_until = now() + candidates.lease_ms * interval '1 millisecond'
    from candidates
    where pods.id = candidates.id and candidates.is_leased
  )
  select id, host, port, ssl, failures, is_leased as "isLeased" from candidates`

/** Ends the lease of a run that was stopped or ran out of time. `recordDeliveryResults` ends all other leases. */
export async function releasePod(db: Knex, podId: number, leaseId: string): Promise<void> {
  await db.raw(`update pods set drained_by = null, drained_until = null where id = ? and drained_by = ?`, [
    podId,
    leaseId,
  ])
}
