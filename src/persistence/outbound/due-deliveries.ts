import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { EXEMPT_FROM_BLOCKS_SQL, POD_ACCEPTS_DELIVERIES_SQL, POD_IS_PROVEN_SQL } from './delivery-conditions.js'
import type { DeliveryPriority } from './delivery-priority.js'
import type { OutboundRecord } from './outbound-record.js'

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
  readonly isHeld: boolean
  /** The request that has caused the message. */
  readonly trace: string | null
}

export interface DueRequest {
  readonly podId: number
  /** Maximum number of rows of the pod. */
  readonly limit: number
}

/**
 * Returns the due deliveries of each pod: messages of local users first, then relays, then participations, each in the order of
 * insertion. A delivery whose referenced entity still waits for this pod is held: it gets the due time and priority of that delivery,
 * and is returned with `isHeld`.
 * Messages of an account that has moved here are held until the pod knows the move, contacts for ten minutes longer: diaspora* would
 * drop the aspects of the old contact.
 */
export async function takeDueDeliveries(db: Knex, requests: readonly DueRequest[]): Promise<readonly DueDelivery[]> {
  return queryPrepared<DueDelivery>(db, 'due-deliveries', DUE_DELIVERIES_SQL, [
    requests.map(({ podId }) => podId),
    requests.map(({ limit }) => limit),
  ])
}

/**
 * Reads the first rows of each pod in the order of the index `deliveries_line`, then looks up earlier deliveries for each of them.
 * The shape pins this plan against old statistics: `offset 0` keeps the order of the joins, the row comparison fits only the index
 * `deliveries_once`, and the expressions (`+ 0`) keep the other indexes out.
 */
const DUE_DELIVERIES_SQL = `
  with first_rows as materialized (
    select waiting.*
    from unnest(${opaqueParam('$1', 'bigint[]')}, $2::integer[]) as requests(pod_id, row_limit)
    cross join lateral (
      select id, message_id, pod_id, person_id, attempts, encrypted_envelope, priority, created_at
      from deliveries
      where deliveries.pod_id = requests.pod_id and state = 'waiting' and (due_at + interval '0 seconds') <= now()
        -- Evaluated once for each pod; messages are read only for blocked pods.
        and ((select pods.blocked_at is null from pods where pods.id = requests.pod_id) or exists (
          select from outbound_messages as messages where messages.id = deliveries.message_id and ${EXEMPT_FROM_BLOCKS_SQL}
        ))
      order by priority, id
      limit requests.row_limit
    ) as waiting
  ), due as materialized (
    select first_rows.*, messages.record, messages.about, messages.sender_id, messages.public, messages.trace_id,
      greatest(earlier.due_at, move_hold.held_until) as held_until, earlier.priority as held_priority
    from first_rows
    join outbound_messages as messages on messages.id = first_rows.message_id
    cross join lateral (
      select max(others.due_at) as due_at, max(others.priority) as priority
      from (
        select messages_before.id from outbound_messages as messages_before
        where messages_before.guid = any(array[messages.guid, messages.about])
          and messages_before.id <> messages.id
          -- Contact messages of two local users to the same person are independent of each other.
          and (messages.record <> 'contact' or messages_before.sender_id = messages.sender_id)
        offset 0
      ) as referenced
      cross join lateral (
        select waiting.due_at, waiting.priority
        from deliveries as waiting
        where (waiting.message_id, waiting.pod_id) >= (referenced.id, first_rows.pod_id)
          and (waiting.message_id, waiting.pod_id) <= (referenced.id, first_rows.pod_id)
          and waiting.died_at is null
          and waiting.id + 0 < first_rows.id
          and (waiting.person_id + 0 is null or first_rows.person_id is null or waiting.person_id + 0 = first_rows.person_id)
        offset 0
      ) as others
    ) as earlier
    cross join lateral (
      select max(move_announcements.held_until) as held_until
      from (
        select case when delivered_at is null then now() + interval '1 minute' else delivered_at + interval '10 minutes' end as held_until
        from account_migrations as moved
        join migration_announcements as announcement on announcement.migration_id = moved.id
        where moved.new_person_id = messages.sender_id and announcement.pod_id = first_rows.pod_id and given_up_at is null
          and (messages.record = 'contact' or delivered_at is null and (wave = 1 or attempted_at is not null))
        offset 0
      ) as move_announcements
      where move_announcements.held_until > now()
    ) as move_hold
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
    coalesce(people.guid_at_pod, people.guid) as "personGuid", people.public_key as "publicKey", due.held_until is not null as "isHeld", due.trace_id as trace
  from due
  left join people on people.id = due.person_id
  order by due.priority, due.id`

/** Pods without a lease whose deliveries have been due for 5 seconds: their delivery job was probably lost. */
export const OVERDUE_PODS_SQL = `
  from pods
  where ${POD_ACCEPTS_DELIVERIES_SQL}
    and (drained_until is null or drained_until <= now())
    and exists (
      select from deliveries
      where pod_id = pods.id and state = 'waiting' and due_at <= now() - interval '5 seconds'
        and (pods.blocked_at is null or exists (
          select from outbound_messages as messages where messages.id = deliveries.message_id and ${EXEMPT_FROM_BLOCKS_SQL}
        ))
    )`

/** A pod with due deliveries. Proven pods (docs/pod-states.md) do not wait for others. */
export interface DuePod {
  readonly podId: number
  readonly isProven: boolean
}

/** Finds overdue pods, proven ones first. */
export async function findOverduePods(db: Knex, limit: number): Promise<readonly DuePod[]> {
  return queryRows<DuePod>(
    db,
    `select id as "podId", ${POD_IS_PROVEN_SQL} as "isProven" ${OVERDUE_PODS_SQL} order by "isProven" desc, id limit ?`,
    [limit],
  )
}
