import type { Knex } from 'knex'
import { changeRows, queryRows } from '../database/database.js'
import { countEachSql, type GroupedCount } from '../sql/count-each.js'
import { NOW_SQL } from '../sql/database-time.js'
import { traceDigitsSql } from '../sql/trace.js'
import { DELIVERY_IS_EXPIRED_SQL, EXEMPT_FROM_BLOCKS_SQL, POD_IS_ASLEEP_SQL } from './delivery-conditions.js'

/** A delivery that was given up, with its record. */
export interface DeadDelivery {
  readonly id: number
  readonly fault: string
  readonly status: number | null
  readonly attempts: number
  readonly createdAt: Date
  readonly diedAt: Date
  readonly host: string
  readonly port: number
  readonly record: string
  readonly guid: string
  readonly verb: string
  readonly trace: string | null
}

export interface DeadDeliveryFilter {
  readonly ids?: readonly number[] | undefined
  readonly fault?: string | undefined
  /** Host of the pod, with its port if it is not the default one. */
  readonly pod?: string | undefined
  /** The record of the message, such as `post`. */
  readonly entity?: string | undefined
  readonly since?: Date | undefined
  readonly until?: Date | undefined
}

const ROW_BATCH_SIZE = 1_000

const NAME_OF_POD_SQL = `pods.host || case when pods.port = 443 then '' else ':' || pods.port end`

/** The id of the pod of the filter, as one value: the planner then uses the index of its dead deliveries. */
const POD_ID_SQL = `(
  select id from pods
  where host = regexp_replace(cast(:pod as text), ':[0-9]{1,5}$', '')
    and port = coalesce(cast(substring(cast(:pod as text) from ':([0-9]{1,5})$') as integer), 443)
)`

/** Contains only the conditions that the filter has: with `… is null or …` the planner could not use their indexes. */
function filterSql({ ids, fault, pod, entity, since, until }: DeadDeliveryFilter): string {
  return [
    `deliveries.state = 'dead'`,
    ...(ids === undefined ? [] : ['deliveries.id = any(cast(:ids as bigint[]))']),
    ...(fault === undefined ? [] : ['deliveries.last_fault = :fault']),
    ...(pod === undefined ? [] : [`deliveries.pod_id = ${POD_ID_SQL}`]),
    ...(entity === undefined ? [] : ['messages.record = :entity']),
    ...(since === undefined ? [] : ['deliveries.died_at >= :since']),
    ...(until === undefined ? [] : ['deliveries.died_at < :until']),
  ].join(' and ')
}

const JOIN_MESSAGES_SQL = 'join outbound_messages as messages on messages.id = deliveries.message_id'

/** The messages of the page are read after the page is chosen, unless the filter needs them. */
function joinForFilter({ entity }: DeadDeliveryFilter): string {
  return entity === undefined ? '' : JOIN_MESSAGES_SQL
}

function bindings({ ids, fault, pod, entity, since, until }: DeadDeliveryFilter) {
  return { ids: [...(ids ?? [])], fault, pod, entity, since, until }
}

/** A page in the order of time and id, after a position. */
export interface DeadDeliveryPage {
  readonly order: 'newest first' | 'oldest first'
  readonly startAfter: { readonly at: Date; readonly id: number }
  readonly limit: number
}

/** Lists dead deliveries without their payloads. */
export async function listDeadDeliveries(
  db: Knex,
  filter: DeadDeliveryFilter,
  { order, startAfter, limit }: DeadDeliveryPage,
): Promise<readonly DeadDelivery[]> {
  const [compare, direction] = order === 'newest first' ? ['<', 'desc'] : ['>', 'asc']
  return queryRows<DeadDelivery>(
    db,
    `select deliveries.id, deliveries.last_fault as fault, deliveries.last_status as status, deliveries.attempts,
       deliveries.created_at as "createdAt", deliveries.died_at as "diedAt", pods.host, pods.port,
       messages.record, messages.guid, messages.verb,
       ${traceDigitsSql('messages.trace_id')} as trace
     from (
       select deliveries.* from deliveries ${joinForFilter(filter)}
       where ${filterSql(filter)} and (deliveries.died_at, deliveries.id) ${compare} (:at, cast(:startAfterId as bigint))
       order by deliveries.died_at ${direction}, deliveries.id ${direction}
       limit :limit
     ) as deliveries
     join pods on pods.id = deliveries.pod_id
     join outbound_messages as messages on messages.id = deliveries.message_id
     order by deliveries.died_at ${direction}, deliveries.id ${direction}`,
    { ...bindings(filter), at: startAfter.at, startAfterId: startAfter.id, limit },
  )
}

/** The sent record. */
export interface DeadDeliveryPayload {
  readonly isPublic: boolean
  readonly entity: string
  readonly recipientGuid: string | null
}

export async function findDeadDeliveryPayload(db: Knex, id: number): Promise<DeadDeliveryPayload | undefined> {
  return db('deliveries')
    .join('outboundMessages as messages', 'messages.id', 'deliveries.messageId')
    .leftJoin('people', 'people.id', 'deliveries.personId')
    .where({ 'deliveries.id': id, 'deliveries.state': 'dead' })
    .first({ isPublic: 'messages.public', entity: 'messages.entity', recipientGuid: 'people.guid' })
}

/** Makes dead deliveries due with attempts reset; one older than 14 days ends at its first failure. Returns the ids of their pods. */
export async function reviveDeliveries(db: Knex, ids: readonly number[]): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly id: number }>(
    db,
    `with revived as (
       update deliveries set state = 'waiting', died_at = null, attempts = 0, due_at = now()
       where id = any(?) and state = 'dead'
       returning pod_id
     )
     select distinct pod_id as id from revived`,
    [[...ids]],
  )
  return rows.map((row) => row.id)
}

/** Deletes dead deliveries and subtracts them from the number of recipients of their messages. */
export async function deleteDeadDeliveries(db: Knex, ids: readonly number[]): Promise<void> {
  await db.raw(
    `with dropped as (
       delete from deliveries where id = any(?) and state = 'dead' returning message_id
     )
     update outbound_messages set sent_to = sent_to - dropped.count
     from (select message_id, count(*) from dropped group by message_id) as dropped
     where outbound_messages.id = dropped.message_id`,
    [[...ids]],
  )
}

const GROUPS = {
  queue: `'outbound'`,
  fault: 'deliveries.last_fault',
  pod: NAME_OF_POD_SQL,
  entity: 'messages.record',
  hour: `to_char(date_trunc('hour', deliveries.died_at at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:00:00"Z"')`,
} as const

/**
 * Counts dead deliveries by each of some properties: all that match, or the latest of them. Without a number of latest ones there is no
 * order, so that an index alone may be enough.
 */
export async function countDeadDeliveries(
  db: Knex,
  groupings: readonly (keyof typeof GROUPS)[],
  filter: DeadDeliveryFilter,
  latest: number | undefined,
): Promise<readonly GroupedCount[]> {
  const { columns, counts } = countEachSql(groupings.map((by) => GROUPS[by]))
  const order = 'order by deliveries.died_at desc, deliveries.id desc limit :latest'
  return queryRows<GroupedCount>(
    db,
    `with counted as (
       select ${columns}
       from (
         select deliveries.* from deliveries ${joinForFilter(filter)} where ${filterSql(filter)} ${latest === undefined ? '' : order}
       ) as deliveries
       ${groupings.includes('pod') ? 'join pods on pods.id = deliveries.pod_id' : ''}
       ${groupings.includes('entity') ? JOIN_MESSAGES_SQL : ''}
     )
     ${counts}`,
    { ...bindings(filter), ...(latest !== undefined && { latest }) },
  )
}

/** Gives up waiting deliveries to all sleeping or blocked pods, in transactions that do not hold their locks long. */
export async function giveUpDeliveriesInBatches(db: Knex): Promise<void> {
  let givenUp = ROW_BATCH_SIZE
  while (givenUp === ROW_BATCH_SIZE) givenUp = await giveUpDeliveries(db, ROW_BATCH_SIZE)
}

/** Gives up waiting deliveries to sleeping or blocked pods; returns how many, at most `limit`. */
export async function giveUpDeliveries(db: Knex, limit: number): Promise<number> {
  return changeRows(
    db,
    `update deliveries set state = 'dead', died_at = now(), last_fault = lost.fault
     from (
       select deliveries.id, case when pods.blocked_at is null then 'pod_asleep' else 'pod_blocked' end as fault
       from pods
       join deliveries on deliveries.pod_id = pods.id and deliveries.state = 'waiting'
       join outbound_messages as messages on messages.id = deliveries.message_id
       where (pods.blocked_at is not null and not ${EXEMPT_FROM_BLOCKS_SQL}) or ${POD_IS_ASLEEP_SQL}
       limit ?
     ) as lost
     where deliveries.id = lost.id`,
    [limit],
  )
}

/** Makes deliveries due again that were given up while these pods were asleep or blocked, unless they have expired. */
export async function reviveDeliveriesOfPods(
  db: Knex,
  podIds: readonly number[],
  fault: 'pod_asleep' | 'pod_blocked',
): Promise<number> {
  if (podIds.length === 0) return 0
  return changeRows(
    db,
    `update deliveries set state = 'waiting', died_at = null, due_at = ${NOW_SQL}
     where pod_id = any(?) and state = 'dead' and last_fault = ? and not ${DELIVERY_IS_EXPIRED_SQL}`,
    [[...podIds], fault],
  )
}
