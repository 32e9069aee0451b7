import type { Knex } from 'knex'
import { queryRow, queryRows, queryUnprepared } from '../database/database.js'
import type { PodCheckStatus } from '../models/remote-pod.js'
import { POD_IS_ASLEEP_SQL, POD_IS_PROVEN_SQL } from '../outbound/delivery-conditions.js'
import { DELIVERY_PRIORITY } from '../outbound/delivery-priority.js'
import { DEAD_OF_POD_SQL, POD_LIST_CONDITIONS } from '../outbound/known-pods.js'
import { escapeLike } from '../sql/escape-like.js'

/** Counts stop here: a list must not count a million rows. */
export const MAX_COUNTED = 10_000

export const POD_LIST_FILTERS = ['normal', 'limited', 'blocked', 'paused', 'asleep', 'offline'] as const
export const POD_SORTS = ['host', 'waiting', 'people', 'failures'] as const

export interface PodListFilter {
  /** A part of the host. */
  readonly q?: string | undefined
  readonly state?: (typeof POD_LIST_FILTERS)[number] | undefined
  /** The result of the last check. */
  readonly status?: PodCheckStatus | undefined
  readonly sort: (typeof POD_SORTS)[number]
}

export interface ListedPod {
  readonly id: number
  readonly host: string
  readonly port: number
  readonly status: PodCheckStatus
  readonly software: string | null
  readonly failures: number
  readonly nextTryAt: Date | null
  readonly blockedAt: Date | null
  readonly limitedAt: Date | null
  readonly pausedUntil: Date | null
  readonly asleep: boolean
  readonly isProven: boolean
  /** Known people of the pod. All counts here end at one more than `MAX_COUNTED`. */
  readonly people: number
  readonly waiting: number
  readonly dead: number
  /** Null: nothing waits. */
  readonly oldestWaiting: Date | null
}

const orders = {
  host: 'pods.host, pods.port',
  waiting: 'found.waiting desc nulls last, pods.host, pods.port',
  people: 'found.people desc nulls last, pods.host, pods.port',
  failures: 'pods.failures desc, pods.host, pods.port',
} as const

/** Lists known pods. Counts are read for the pods of the page alone. */
export async function listPodPage(
  db: Knex,
  { q, state, status, sort }: PodListFilter,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<readonly ListedPod[]> {
  const joins = {
    host: '',
    failures: '',
    waiting: joinCountsSql(
      `select pod_id, count(*) as waiting from deliveries where state = 'waiting' group by pod_id`,
    ),
    people: joinCountsSql('select pod_id, count(*) as people from people where pod_id is not null group by pod_id'),
  } as const
  return queryUnprepared<ListedPod>(
    db,
    `with page as (
       select pods.*, row_number() over (order by ${orders[sort]}) as rank
       from pods ${joins[sort]}
       where ($1::text is null or pods.host like $1) and ($4::text is null or pods.status = $4) and ${state === undefined ? 'true' : POD_LIST_CONDITIONS[state]}
       order by ${orders[sort]} offset $2 limit $3
     )
     select pods.id, pods.host, pods.port, pods.status, pods.software, pods.failures, pods.next_try_at as "nextTryAt",
       pods.blocked_at as "blockedAt", pods.limited_at as "limitedAt", pods.paused_until as "pausedUntil",
       ${POD_IS_ASLEEP_SQL} as asleep, ${POD_IS_PROVEN_SQL} as "isProven",
       (${countSql('select from people where people.pod_id = pods.id')}) as people,
       (${countSql(`select from deliveries where deliveries.pod_id = pods.id and state = 'waiting'`)}) as waiting,
       (${countSql(DEAD_OF_POD_SQL)}) as dead,
       (${OLDEST_WAITING_SQL}) as "oldestWaiting"
     from page as pods order by rank`,
    [q === undefined ? null : `%${escapeLike(q)}%`, offset, limit, status ?? null],
  )
}

/**
 * Returns the time of the oldest waiting delivery. Within a priority this is the first one, so that one row of the index
 * `deliveries_line` is read for each priority, with any number of waiting deliveries.
 */
const OLDEST_WAITING_SQL = `
  select min(first.created_at) from unnest(array[${Object.values(DELIVERY_PRIORITY).join(', ')}]) as ranks(priority), lateral (
    select created_at from deliveries
    where deliveries.pod_id = pods.id and deliveries.priority = ranks.priority and state = 'waiting'
    order by id limit 1
  ) as first`

/** Joins the counts by pod, for an order by them. */
function joinCountsSql(counts: string): string {
  return `left join (${counts}) as found on found.pod_id = pods.id`
}

function countSql(rows: string): string {
  return `select count(*)::integer from (${rows} limit ${MAX_COUNTED + 1}) as counted`
}

/** The current exchange with a pod. */
export interface PodExchange {
  /** When the oldest waiting delivery was written; null: nothing waits. */
  readonly oldestWaiting: Date | null
  /** A process sends deliveries to the pod now. */
  readonly isDelivering: boolean
  /** Relations of local users to people of the pod, and of these people to local users; both end at one more than `MAX_COUNTED`. */
  readonly localFollowers: number
  readonly remoteFollowers: number
}

export async function readPodExchange(db: Knex, podId: number): Promise<PodExchange> {
  const contacts = (direction: 'receiving' | 'sharing') =>
    countSql(
      `select from people join contacts on contacts.person_id = people.id where people.pod_id = pods.id and ${direction}`,
    )
  return queryRow<PodExchange>(
    db,
    `select (${OLDEST_WAITING_SQL}) as "oldestWaiting", coalesce(pods.drained_until > now(), false) as "isDelivering",
       (${contacts('receiving')}) as "localFollowers", (${contacts('sharing')}) as "remoteFollowers"
     from pods where pods.id = ?`,
    [podId],
  )
}

export interface UndeliveredMessage {
  readonly record: string
  readonly verb: string
  readonly guid: string
  readonly state: 'waiting' | 'dead'
  readonly attempts: number
  readonly fault: string | null
  readonly status: number | null
  readonly createdAt: Date
  readonly dueAt: Date
}

/**
 * The latest waiting deliveries to a pod and those given up last, the latest first; of private messages only the kind. Reads the returned
 * number of rows of the index `deliveries_line` for each priority, and of `deliveries_dead_of_pod`.
 */
export async function listUndelivered(db: Knex, podId: number, limit: number): Promise<readonly UndeliveredMessage[]> {
  return queryRows<UndeliveredMessage>(db, UNDELIVERED_SQL, { podId, limit })
}

const UNDELIVERED_SQL = `
  with latest as (
    select waiting.id from unnest(array[${Object.values(DELIVERY_PRIORITY).join(', ')}]) as ranks(priority), lateral (
      select id from deliveries
      where deliveries.pod_id = :podId and deliveries.priority = ranks.priority and state = 'waiting'
      order by id desc limit :limit
    ) as waiting
    union all
    select id from (
      select id from deliveries where deliveries.pod_id = :podId and state = 'dead' order by died_at desc, id desc limit :limit
    ) as dead
  )
  select messages.record, messages.verb, messages.guid, deliveries.state, deliveries.attempts,
    deliveries.last_fault as fault, deliveries.last_status as status, deliveries.created_at as "createdAt",
    deliveries.due_at as "dueAt"
  from (select id from latest order by id desc limit :limit) as shown
  join deliveries using (id) join outbound_messages as messages on messages.id = deliveries.message_id
  order by deliveries.id desc`

export interface PodError {
  readonly at: Date
  readonly status: PodCheckStatus
  /** Parts of it may come from the other pod. */
  readonly error: string
}

/** The last ten errors of a pod, the latest first. The trigger `pods_keep_error` writes them. */
export async function listPodErrors(db: Knex, podId: number): Promise<readonly PodError[]> {
  return db('pod_errors').where({ podId }).orderBy('id', 'desc').limit(10).select('at', 'status', 'error')
}
