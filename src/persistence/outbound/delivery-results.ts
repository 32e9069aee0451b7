import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { PodCheckStatus } from '../models/remote-pod.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowByRowSql } from '../sql/row-by-row.js'
import { DELIVERY_IS_EXPIRED_SQL, POD_IS_PAUSED_SQL } from './delivery-conditions.js'
import { DELIVERY_PRIORITY } from './delivery-priority.js'

/** The result of a failed delivery. */
export interface FailedDelivery {
  readonly id: number
  readonly status: number | undefined
  readonly fault: string
  /** Counts as an attempt: the delivery was refused, forbidden, not signable, or answered with 500. */
  readonly countsAsAttempt: boolean
  /** Seconds until the next attempt. Undefined: as soon as the pod may be contacted. */
  readonly seconds: number | undefined
  /** This was the last attempt. */
  readonly isFinal: boolean
  readonly encryptedEnvelope: string | undefined
}

/** The change of a pod's health after a round of deliveries. */
export type PodHealthChange =
  | { readonly kind: 'available' }
  /** The pod answers with errors. `moved` counts redirects in a row up to the last answer. */
  | { readonly kind: 'refuses'; readonly status: PodCheckStatus; readonly error: string; readonly moved: number }
  /** The pod is not contacted for some seconds. */
  | { readonly kind: 'away'; readonly status: PodCheckStatus; readonly error: string; readonly seconds: number }
  /** The pod answers too slowly. Until its next success it counts as unproven: its deliveries use the queue `outbound-slow` and no slot. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'unchanged' }

export interface DeliveryResults {
  readonly podId: number
  readonly leaseId: string
  readonly leaseMs: number
  readonly delivered: readonly number[]
  readonly failed: readonly FailedDelivery[]
  readonly podHealth: PodHealthChange
  /** The pod has answered with any HTTP status. */
  readonly hasResponded: boolean
  /** Number of redirects in a row that requests a check of the pod. */
  readonly redirectsBeforeCheck: number
}

/**
 * Stores the results of rounds of deliveries, at most one round of each pod. The lease of a pod ends with it unless more of its
 * deliveries are due. A delivery that is inserted in the meantime is either seen here or finds the pod without a lease. Returns the pods
 * that have more due deliveries and are still leased.
 */
export async function recordDeliveryResults(
  db: Knex,
  results: readonly DeliveryResults[],
): Promise<ReadonlySet<number>> {
  const rounds = results.map(
    ({ podId, leaseId, leaseMs, delivered, failed, podHealth, hasResponded, redirectsBeforeCheck }) => {
      const settledIds = [...delivered, ...failed.map(({ id }) => id)]
      return { podId, leaseId, leaseMs, hasResponded, redirectsBeforeCheck, settled: settledIds, ...podHealth }
    },
  )
  const rows = await queryPrepared<{ readonly podId: number }>(db, 'delivery-results', DELIVERY_RESULTS_SQL, [
    results.flatMap(({ delivered }) => delivered),
    JSON.stringify(results.flatMap(({ failed }) => failed)),
    JSON.stringify(rounds),
    results.flatMap(({ failed }) => failed.map(({ id }) => id)),
    results.map(({ podId }) => podId),
  ])
  return new Set(rows.map(({ podId }) => podId))
}

/**
 * Columns are changed relative to their current values, because values that were read before can be outdated. The ids are given twice:
 * without the arrays the planner expects a hundred rows, and reads all waiting deliveries and all pods to join them. `coalesce(state, '')`
 * keeps the indexes of waiting deliveries out.
 */
const DELIVERY_RESULTS_SQL = `
  with delivered as (
    delete from deliveries where id = any($1::bigint[]) returning message_id, pod_id, priority
  ), arrived as (
    -- Only posts of local users: relays and participations are many, and no report shows where they have arrived.
    insert into message_results (message_id, outcome, pod_ids)
    select messages.id, 'arrived', array_agg(distinct delivered.pod_id)
    from delivered
    ${rowByRowSql('outbound_messages', 'outbound_messages.id = delivered.message_id', 'messages')}
    where delivered.priority = ${DELIVERY_PRIORITY.localUsers} and messages.record = 'post'
    group by messages.id
  ), failed as (
    update deliveries set
      attempts = attempts + cast(failure."countsAsAttempt" as integer),
      last_status = failure.status,
      last_fault = failure.fault,
      encrypted_envelope = coalesce(deliveries.encrypted_envelope, failure."encryptedEnvelope"),
      due_at = coalesce(now() + failure.seconds * interval '1 second', due_at),
      state = case when failure."isFinal" or ${DELIVERY_IS_EXPIRED_SQL} then 'dead' else state end,
      died_at = case when failure."isFinal" or ${DELIVERY_IS_EXPIRED_SQL} then now() end
    from json_to_recordset($2::json) as failure(
      id bigint, status smallint, fault text, "countsAsAttempt" boolean, seconds double precision, "isFinal" boolean, "encryptedEnvelope" text
    )
    where deliveries.id = failure.id and deliveries.id = any(${opaqueParam('$4', 'bigint[]')}::bigint[])
      and coalesce(deliveries.state, '') = 'waiting'
  ), results as materialized (
    select * from json_to_recordset($3::json) as round(
      "podId" bigint, "leaseId" uuid, "leaseMs" integer, "hasResponded" boolean, "redirectsBeforeCheck" integer, settled bigint[],
      kind text, status text, error text, seconds double precision, moved integer
    )
  ), locked as materialized (
    -- In the order of their ids, so that two changes cannot deadlock.
    select results.* from results
    join pods on pods.id = results."podId" and pods.drained_by = results."leaseId"
    where pods.id = any(${opaqueParam('$5', 'bigint[]')}::bigint[])
    order by pods.id
    for no key update of pods
  ), rounds as materialized (
    select locked.*,
      locked.kind not in ('away', 'silent') and exists (
        select from deliveries
        where deliveries.pod_id = locked."podId" and state = 'waiting' and due_at <= now() and id <> all(locked.settled)
      ) as is_due
    from locked
  ), changed as (
    update pods set
      status = case
        when kind in ('refuses', 'away') then rounds.status
        when kind = 'available' and pods.status <> 'version_failed' then 'no_errors'
        else pods.status
      end,
      last_error = case
        when kind in ('refuses', 'away') then rounds.error
        when kind = 'available' and pods.status <> 'version_failed' then null
        else pods.last_error
      end,
      failures = case kind when 'available' then 0 when 'away' then pods.failures + 1 else pods.failures end,
      next_try_at = case kind
        when 'available' then null
        when 'away' then now() + rounds.seconds * interval '1 second'
        else pods.next_try_at
      end,
      offline_since = case
        when kind = 'available' then null
        when kind in ('refuses', 'away') then coalesce(pods.offline_since, now())
        else pods.offline_since
      end,
      redirects = case
        when kind in ('available', 'away') then 0
        when kind = 'refuses' then case when rounds.moved > 0 then pods.redirects + rounds.moved else 0 end
        else pods.redirects
      end,
      check_wanted = pods.check_wanted or (
        kind = 'refuses' and pods.redirects < rounds."redirectsBeforeCheck" and pods.redirects + rounds.moved >= rounds."redirectsBeforeCheck"
      ),
      last_success_at = case kind when 'available' then now() when 'silent' then null else pods.last_success_at end,
      answered_at = coalesce(pods.answered_at, case when rounds."hasResponded" then now() end),
      participation_at = coalesce(pods.participation_at, case
        -- A subquery without a reference to the row is hashed.
        when pods.id in (select pod_id from delivered where priority = ${DELIVERY_PRIORITY.participation}) then now()
      end),
      drained_by = case when rounds.is_due and pods.blocked_at is null and not ${POD_IS_PAUSED_SQL} then pods.drained_by end,
      drained_until = case
        when rounds.is_due and pods.blocked_at is null and not ${POD_IS_PAUSED_SQL} then now() + rounds."leaseMs" * interval '1 millisecond'
      end
    from rounds
    where pods.id = rounds."podId" and pods.drained_by = rounds."leaseId"
    returning pods.id, pods.drained_by
  )
  select id as "podId" from changed where drained_by is not null`
