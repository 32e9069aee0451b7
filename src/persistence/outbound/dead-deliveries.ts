import type { Knex } from 'knex'
import { traceDigits } from '../sql/trace.js'

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
  /** Null: public, for all people of the pod. */
  readonly person: string | null
  readonly record: string
  readonly guid: string
  readonly verb: string
  readonly trace: string | null
}

export interface DeadDeliveryFilter {
  readonly ids?: readonly number[] | undefined
  readonly fault?: string | undefined
  /** With its port if it is not the default one. */
  readonly pod?: string | undefined
  /** The record of the message, such as `post`. */
  readonly entity?: string | undefined
  readonly since?: Date | undefined
  readonly until?: Date | undefined
}

const NAME_OF_POD = `pods.host || case when pods.port = 443 then '' else ':' || pods.port end`

const MATCHES = `
  deliveries.state = 'dead'
  and (cast(:ids as bigint[]) is null or deliveries.id = any(:ids))
  and (cast(:fault as text) is null or deliveries.last_fault = :fault)
  and (cast(:pod as text) is null or deliveries.pod_id in (select pods.id from pods where ${NAME_OF_POD} = :pod))
  and (cast(:entity as text) is null or messages.record = :entity)
  and (cast(:since as timestamptz) is null or deliveries.died_at >= :since)
  and (cast(:until as timestamptz) is null or deliveries.died_at < :until)`

function bindings({ ids, fault, pod, entity, since, until }: DeadDeliveryFilter) {
  return {
    ids: ids === undefined ? null : [...ids],
    fault: fault ?? null,
    pod: pod ?? null,
    entity: entity ?? null,
    since: since ?? null,
    until: until ?? null,
  }
}

/** A page in the order of time and id, behind a position. */
export interface DeadDeliveryPage {
  readonly order: 'newest first' | 'oldest first'
  readonly behind: { readonly at: Date; readonly id: number }
  readonly limit: number
}

/** Lists dead deliveries without their payloads. */
export async function listDeadDeliveries(
  db: Knex,
  filter: DeadDeliveryFilter,
  { order, behind, limit }: DeadDeliveryPage,
): Promise<readonly DeadDelivery[]> {
  const [compare, direction] = order === 'newest first' ? ['<', 'desc'] : ['>', 'asc']
  const { rows } = await db.raw(
    `select deliveries.id, deliveries.last_fault as fault, deliveries.last_status as status, deliveries.attempts,
       deliveries.created_at as "createdAt", deliveries.died_at as "diedAt", pods.host, pods.port,
       people.address as person, messages.record, messages.guid, messages.verb,
       ${traceDigits('messages.trace_id')} as trace
     from deliveries
     join pods on pods.id = deliveries.pod_id
     join outbound_messages as messages on messages.id = deliveries.message_id
     left join people on people.id = deliveries.person_id
     where ${MATCHES} and (deliveries.died_at, deliveries.id) ${compare} (:at, cast(:behindId as bigint))
     order by deliveries.died_at ${direction}, deliveries.id ${direction}
     limit :limit`,
    { ...bindings(filter), at: behind.at, behindId: behind.id, limit },
  )
  return rows
}

/** What was sent. */
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

/** Makes dead deliveries due with attempts reset; returns the ids of their pods. */
export async function reviveDeliveries(db: Knex, ids: readonly number[]): Promise<readonly number[]> {
  const { rows } = await db.raw(
    `with revived as (
       update deliveries set state = 'waiting', died_at = null, attempts = 0, due_at = now()
       where id = any(?) and state = 'dead'
       returning pod_id
     )
     select distinct pod_id as id from revived`,
    [[...ids]],
  )
  return rows.map((row: { id: number }) => row.id)
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
  pod: NAME_OF_POD,
  entity: 'messages.record',
  hour: `to_char(date_trunc('hour', deliveries.died_at at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:00:00"Z"')`,
} as const

/** Counts the latest dead deliveries by one of their properties. */
export async function countDeadDeliveries(
  db: Knex,
  by: keyof typeof GROUPS,
  filter: DeadDeliveryFilter = {},
  latest: number = Number.MAX_SAFE_INTEGER,
): Promise<readonly { readonly value: string | null; readonly count: number }[]> {
  const { rows } = await db.raw(
    `select value, count(*)::integer as count
     from (
       select ${GROUPS[by]} as value
       from deliveries
       join pods on pods.id = deliveries.pod_id
       join outbound_messages as messages on messages.id = deliveries.message_id
       where ${MATCHES}
       order by deliveries.died_at desc, deliveries.id desc limit :latest
     ) as latest
     group by 1`,
    { ...bindings(filter), latest },
  )
  return rows
}
