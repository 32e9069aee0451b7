import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { PodStatus } from '../models/pod.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { DELIVERY_PRIORITY, type DeliveryPriority } from './delivery-priority.js'
import { UNDELIVERED_LIMITS } from './limits.js'
import type { OutboundRecord } from './outbound-record.js'

/** SQL condition: the last delivery to the pod succeeded, within the last 7 days. */
export const POD_IS_PROVEN = `coalesce(pods.failures = 0 and pods.last_success_at > now() - interval '7 days', false)`

/** SQL condition: the pod has been offline for `asleepAfterDays`, or an operator has put it to sleep since it went offline. */
export const POD_IS_ASLEEP = `coalesce(pods.offline_since <= greatest(now() - interval '${UNDELIVERED_LIMITS.asleepAfterDays} days', pods.asleep_at), false)`

/** SQL condition: the delivery is older than the maximum age. */
const DELIVERY_IS_EXPIRED = `deliveries.created_at <= now() - interval '${UNDELIVERED_LIMITS.expiresAfterDays} days'`

/** SQL condition on `messages`: blocked pods receive it too, so that what local users have deleted does not stay there. */
export const EXEMPT_FROM_BLOCKS = `(messages.verb = 'retract' or messages.record = 'account_deletion')`

/** SQL condition: an admin has paused deliveries and fetches. */
export const POD_IS_PAUSED = `coalesce(pods.paused_until > now(), false)`

/** SQL condition: the pod may be contacted now. It is neither asleep nor paused, nor in a pause after failures. */
const POD_ACCEPTS_DELIVERIES = `(pods.next_try_at is null or pods.next_try_at <= now())
  and not ${POD_IS_PAUSED}
  and not ${POD_IS_ASLEEP}`

/** A pod that this process delivers to until the lease ends. */
export interface LeasedPod {
  readonly id: number
  readonly host: string
  readonly port: number
  readonly ssl: boolean
  readonly failures: number
  /** The pod has accepted a participation before. */
  readonly takesParticipations: boolean
}

export interface LeaseRequest {
  readonly podId: number
  readonly owner: string
  readonly milliseconds: number
  readonly onlyProven: boolean
}

/** A pod that may be contacted now, and that no other process has leased. */
export type LeaseResult =
  | { readonly isLeased: true; readonly pod: LeasedPod }
  /** The pod is not proven. */
  | { readonly isLeased: false }

/** Leases pods that may be contacted now, each requested once; returns the results by pod. */
export async function leasePods(
  db: Knex,
  requests: readonly LeaseRequest[],
): Promise<ReadonlyMap<number, LeaseResult>> {
  const rows = await queryPrepared<LeasedPod & { readonly isLeased: boolean }>(db, 'lease-pods', leases, [
    requests.map(({ podId }) => podId),
    requests.map(({ owner }) => owner),
    requests.map(({ milliseconds }) => milliseconds),
    requests.map(({ onlyProven }) => onlyProven),
  ])
  return new Map(rows.map(({ isLeased, ...pod }) => [pod.id, isLeased ? { isLeased, pod } : { isLeased }]))
}

/** The rows are locked in the order of their ids, so that two leases, or a lease and a change of results, cannot deadlock. */
const leases = `
  with candidates as materialized (
    select pods.id, pods.host, pods.port, pods.ssl, pods.failures, pods.participation_at, requests.owner, requests.milliseconds,
      ${POD_IS_PROVEN} or not requests.only_proven as is_leased
    from unnest(${opaqueParam('$1', 'bigint[]')}, $2::uuid[], $3::integer[], $4::boolean[])
      as requests(pod_id, owner, milliseconds, only_proven)
    join pods on pods.id = requests.pod_id
    where (pods.drained_until is null or pods.drained_until <= now())
      and ${POD_ACCEPTS_DELIVERIES}
    order by pods.id
    for no key update of pods
  ), leased as (
    update pods
    set drained_by = candidates.owner, drained_until = now() + candidates.milliseconds * interval '1 millisecond'
    from candidates
    where pods.id = candidates.id and candidates.is_leased
  )
  select id, host, port, ssl, failures, participation_at is not null as "takesParticipations", is_leased as "isLeased"
  from candidates`

/** Ends a lease after a drain that was aborted. */
export async function releasePod(db: Knex, podId: number, owner: string): Promise<void> {
  await db.raw(`update pods set drained_by = null, drained_until = null where id = ? and drained_by = ?`, [
    podId,
    owner,
  ])
}

export interface DueDelivery {
  readonly id: number
  readonly podId: number
  readonly messageId: number
  readonly record: OutboundRecord
  /** Guid of the entity that it refers to. */
  readonly about: string | null
  readonly priority: DeliveryPriority
  /** Null: the account of the pod. */
  readonly senderId: number | null
  readonly isPublic: boolean
  readonly attempts: number
  readonly writtenAt: Date
  /** Null: public, for all people of the pod. */
  readonly personGuid: string | null
  readonly publicKey: string | null
  /** The encrypted bytes of an earlier attempt. */
  readonly encryptedEnvelope: string | null
  /** An entity that it refers to has not been delivered to this pod yet. */
  readonly held: boolean
  /** The request that has caused the message. */
  readonly trace: string | null
}

export interface DueRequest {
  readonly podId: number
  /** Rows of the pod, at most. */
  readonly limit: number
}

/**
 * Returns the due deliveries of each pod: messages of local users first, then relays, then participations, each in the order of
 * insertion. A delivery whose referenced entity still waits for this pod is held: it gets the due time and priority of that delivery.
 * Messages of an account that has moved here are held until the pod knows the move, contacts for ten minutes longer: diaspora* would
 * drop the aspects of the old contact.
 */
export async function holdAndFindDueDeliveries(
  db: Knex,
  requests: readonly DueRequest[],
): Promise<readonly DueDelivery[]> {
  return queryPrepared<DueDelivery>(db, 'due-deliveries', holdAndSelectDueDeliveries, [
    requests.map(({ podId }) => podId),
    requests.map(({ limit }) => limit),
  ])
}

/**
 * Reads the first rows of each pod in the order of the index `deliveries_line`, then looks up earlier deliveries for each of them.
 * The shape pins this plan against old statistics: `offset 0` keeps the order of the joins, the row comparison fits only the index
 * `deliveries_once`, and the expressions (`+ 0`) keep the other indexes out.
 */
const holdAndSelectDueDeliveries = `
  with first_rows as materialized (
    select waiting.*
    from unnest(${opaqueParam('$1', 'bigint[]')}, $2::integer[]) as requests(pod_id, row_limit)
    cross join lateral (
      select id, message_id, pod_id, person_id, attempts, encrypted_envelope, priority, created_at
      from deliveries
      where deliveries.pod_id = requests.pod_id and state = 'waiting' and (due_at + interval '0 seconds') <= now()
        -- Once for each pod; the messages are read for blocked pods alone.
        and ((select pods.blocked_at is null from pods where pods.id = requests.pod_id) or exists (
          select from outbound_messages as messages where messages.id = deliveries.message_id and ${EXEMPT_FROM_BLOCKS}
        ))
      order by priority, id
      limit requests.row_limit
    ) as waiting
  ), due as materialized (
    select first_rows.*, messages.record, messages.about, messages.sender_id, messages.public, messages.trace_id,
      greatest(earlier.due_at, announcement_hold.held_until) as held_until, earlier.priority as held_priority
    from first_rows
    join outbound_messages as messages on messages.id = first_rows.message_id
    cross join lateral (
      select max(others.due_at) as due_at, max(others.priority) as priority
      from (
        select before.id from outbound_messages as before
        where before.guid = any(array[messages.guid, messages.about])
          and before.id <> messages.id
          -- Contact messages of two local users to the same person are independent of each other.
          and (messages.record <> 'contact' or before.sender_id = messages.sender_id)
        offset 0
      ) as before
      cross join lateral (
        select waiting.due_at, waiting.priority
        from deliveries as waiting
        where (waiting.message_id, waiting.pod_id) >= (before.id, first_rows.pod_id)
          and (waiting.message_id, waiting.pod_id) <= (before.id, first_rows.pod_id)
          and waiting.died_at is null
          and waiting.id + 0 < first_rows.id
          and (waiting.person_id + 0 is null or first_rows.person_id is null or waiting.person_id + 0 = first_rows.person_id)
        offset 0
      ) as others
    ) as earlier
    cross join lateral (
      select max(unannounced.held_until) as held_until
      from (
        select case when delivered_at is null then now() + interval '1 minute' else delivered_at + interval '10 minutes' end as held_until
        from account_migrations as moved
        join migration_announcements as announcement on announcement.migration_id = moved.id
        where moved.new_person_id = messages.sender_id and announcement.pod_id = first_rows.pod_id and given_up_at is null
          and (messages.record = 'contact' or delivered_at is null and (wave = 1 or attempted_at is not null))
        offset 0
      ) as unannounced
      where unannounced.held_until > now()
    ) as announcement_hold
    offset 0
  ), postponed as (
    update deliveries set
      due_at = greatest(deliveries.due_at, due.held_until),
      priority = greatest(deliveries.priority, due.held_priority)
    from due
    where deliveries.id = due.id and (due.held_until > now() or due.held_priority > due.priority)
  )
  select due.id, due.pod_id as "podId", due.message_id as "messageId", due.record, due.about, due.priority,
    due.sender_id as "senderId", due.public as "isPublic", due.attempts, due.encrypted_envelope as "encryptedEnvelope", due.created_at as "writtenAt",
    coalesce(people.guid_at_pod, people.guid) as "personGuid", people.public_key as "publicKey", due.held_until is not null as held, due.trace_id as trace
  from due
  left join people on people.id = due.person_id
  order by due.priority, due.id`

/** The result of a failed delivery. */
export interface FailedDelivery {
  readonly id: number
  readonly status: number | undefined
  readonly fault: string
  /** Counts as an attempt: the delivery was refused, forbidden, unsealed, or answered with 500. */
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
  | { readonly kind: 'refuses'; readonly status: PodStatus; readonly error: string; readonly moved: number }
  /** The pod is not contacted for some seconds. */
  | { readonly kind: 'away'; readonly status: PodStatus; readonly error: string; readonly seconds: number }
  /** The pod answers too slowly. Until its next success it uses only the slots of unproven pods. */
  | { readonly kind: 'silent' }
  /** No change. */
  | { readonly kind: 'unknown' }

export interface DeliveryResults {
  readonly podId: number
  readonly owner: string
  readonly milliseconds: number
  readonly arrived: readonly number[]
  readonly failed: readonly FailedDelivery[]
  readonly podHealth: PodHealthChange
  /** The pod has answered with any HTTP status. */
  readonly hasAnswered: boolean
  /** Number of redirects in a row that requests a check of the pod. */
  readonly redirects: number
}

/**
 * Stores the results of rounds of deliveries, at most one round of each pod. The lease of a pod ends with it unless more of its
 * deliveries are due. A delivery that is inserted meanwhile is either seen here or finds the pod without a lease. Returns the pods
 * that have more due deliveries and are still leased.
 */
export async function recordDeliveryResults(
  db: Knex,
  results: readonly DeliveryResults[],
): Promise<ReadonlySet<number>> {
  const rounds = results.map(({ podId, owner, milliseconds, arrived, failed, podHealth, hasAnswered, redirects }) => {
    const settled = [...arrived, ...failed.map(({ id }) => id)]
    return { podId, owner, milliseconds, hasAnswered, redirects, settled, ...podHealth }
  })
  const rows = await queryPrepared<{ readonly podId: number }>(db, 'delivery-results', recordResults, [
    results.flatMap(({ arrived }) => arrived),
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
const recordResults = `
  with arrived as (
    delete from deliveries where id = any($1::bigint[]) returning pod_id, priority
  ), failed as (
    update deliveries set
      attempts = attempts + cast(failure."countsAsAttempt" as integer),
      last_status = failure.status,
      last_fault = failure.fault,
      encrypted_envelope = coalesce(deliveries.encrypted_envelope, failure."encryptedEnvelope"),
      due_at = coalesce(now() + failure.seconds * interval '1 second', due_at),
      state = case when failure."isFinal" or ${DELIVERY_IS_EXPIRED} then 'dead' else state end,
      died_at = case when failure."isFinal" or ${DELIVERY_IS_EXPIRED} then now() end
    from json_to_recordset($2::json) as failure(
      id bigint, status smallint, fault text, "countsAsAttempt" boolean, seconds double precision, "isFinal" boolean, "encryptedEnvelope" text
    )
    where deliveries.id = failure.id and deliveries.id = any(${opaqueParam('$4', 'bigint[]')}::bigint[])
      and coalesce(deliveries.state, '') = 'waiting'
  ), results as materialized (
    select * from json_to_recordset($3::json) as round(
      "podId" bigint, owner uuid, milliseconds integer, "hasAnswered" boolean, redirects integer, settled bigint[],
      kind text, status text, error text, seconds double precision, moved integer
    )
  ), locked as materialized (
    -- In the order of their ids, so that two changes cannot deadlock.
    select results.* from results
    join pods on pods.id = results."podId" and pods.drained_by = results.owner
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
        kind = 'refuses' and pods.redirects < rounds.redirects and pods.redirects + rounds.moved >= rounds.redirects
      ),
      last_success_at = case kind when 'available' then now() when 'silent' then null else pods.last_success_at end,
      answered_at = coalesce(pods.answered_at, case when rounds."hasAnswered" then now() end),
      participation_at = coalesce(pods.participation_at, case
        -- A subquery without a reference to the row is hashed.
        when pods.id in (select pod_id from arrived where priority = ${DELIVERY_PRIORITY.participation}) then now()
      end),
      drained_by = case when rounds.is_due and pods.blocked_at is null and not ${POD_IS_PAUSED} then pods.drained_by end,
      drained_until = case
        when rounds.is_due and pods.blocked_at is null and not ${POD_IS_PAUSED} then now() + rounds.milliseconds * interval '1 millisecond'
      end
    from rounds
    where pods.id = rounds."podId" and pods.drained_by = rounds.owner
    returning pods.id, pods.drained_by
  )
  select id as "podId" from changed where drained_by is not null`

/** Pods without a lease whose deliveries have been due for 5 seconds: their delivery job was probably lost. */
export const OVERDUE_PODS = `
  from pods
  where ${POD_ACCEPTS_DELIVERIES}
    and (drained_until is null or drained_until <= now())
    and exists (
      select from deliveries
      where pod_id = pods.id and state = 'waiting' and due_at <= now() - interval '5 seconds'
        and (pods.blocked_at is null or exists (
          select from outbound_messages as messages where messages.id = deliveries.message_id and ${EXEMPT_FROM_BLOCKS}
        ))
    )`

/** Finds overdue pods, proven ones first. */
export async function findOverduePods(
  db: Knex,
  limit: number,
): Promise<readonly { readonly podId: number; readonly proven: boolean }[]> {
  const { rows } = await db.raw(
    `select id as "podId", ${POD_IS_PROVEN} as proven ${OVERDUE_PODS} order by proven desc, id limit ?`,
    [limit],
  )
  return rows
}

/** Gives up waiting deliveries to sleeping or blocked pods; returns how many, at most `limit`. */
export async function giveUpDeliveries(db: Knex, limit: number): Promise<number> {
  const { rowCount } = await db.raw(
    `update deliveries set state = 'dead', died_at = now(), last_fault = lost.fault
     from (
       select deliveries.id, case when pods.blocked_at is null then 'pod_asleep' else 'pod_blocked' end as fault
       from pods
       join deliveries on deliveries.pod_id = pods.id and deliveries.state = 'waiting'
       join outbound_messages as messages on messages.id = deliveries.message_id
       where (pods.blocked_at is not null and not ${EXEMPT_FROM_BLOCKS}) or ${POD_IS_ASLEEP}
       limit ?
     ) as lost
     where deliveries.id = lost.id`,
    [limit],
  )
  return rowCount
}

/** Makes deliveries due again that were given up while these pods were asleep or blocked, unless they have expired. */
export async function reviveDeliveriesOfPods(
  db: Knex,
  podIds: readonly number[],
  fault: 'pod_asleep' | 'pod_blocked',
): Promise<void> {
  if (podIds.length === 0) return
  await db.raw(
    `update deliveries set state = 'waiting', died_at = null, due_at = date_trunc('milliseconds', now())
     where pod_id = any(?) and state = 'dead' and last_fault = ? and not ${DELIVERY_IS_EXPIRED}`,
    [[...podIds], fault],
  )
}

/** Finds pods without a check for a day. Offline pods that sent a message are due sooner. */
export async function findPodsToCheck(
  db: Knex,
  {
    checkEveryHours,
    recheckMinutes,
    checksAtOnce,
  }: Record<'checkEveryHours' | 'recheckMinutes' | 'checksAtOnce', number>,
): Promise<readonly number[]> {
  const { rows } = await db.raw(
    `select id
     from pods
     where blocked_at is null and not ${POD_IS_PAUSED}
       and (
         coalesce(checked_at, created_at) <= now() - :checkEveryHours * interval '1 hour'
         or check_wanted and coalesce(checked_at <= now() - :recheckMinutes * interval '1 minute', true)
       )
     order by check_wanted desc, coalesce(checked_at, created_at)
     limit :checksAtOnce`,
    { checkEveryHours, recheckMinutes, checksAtOnce },
  )
  return rows.map((row: { id: number }) => row.id)
}
