import type { Knex } from 'knex'

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
}

/** Lists dead deliveries, latest first. */
export async function listDeadDeliveries(
  db: Knex,
  {
    id,
    fault,
    podId,
    limit,
  }: {
    readonly id?: number | undefined
    readonly fault?: string | undefined
    readonly podId?: number | undefined
    readonly limit: number
  },
): Promise<readonly DeadDelivery[]> {
  const { rows } = await db.raw(
    `select deliveries.id, deliveries.last_fault as fault, deliveries.last_status as status, deliveries.attempts,
       deliveries.created_at as "createdAt", deliveries.died_at as "diedAt", pods.host, pods.port,
       people.address as person, messages.record, messages.guid, messages.verb
     from deliveries
     join pods on pods.id = deliveries.pod_id
     join outbound_messages as messages on messages.id = deliveries.message_id
     left join people on people.id = deliveries.person_id
     where deliveries.state = 'dead'
       and (cast(:id as bigint) is null or deliveries.id = :id)
       and (cast(:fault as text) is null or deliveries.last_fault = :fault)
       and (cast(:podId as bigint) is null or deliveries.pod_id = :podId)
     order by deliveries.died_at desc, deliveries.id desc
     limit cast(:limit as bigint)`,
    { id: id ?? null, fault: fault ?? null, podId: podId ?? null, limit: Number.isFinite(limit) ? limit : null },
  )
  return rows
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

/** Dead deliveries by one of their properties, the most first. */
export async function countDeadDeliveries(
  db: Knex,
  by: 'fault' | 'pod',
  limit: number,
): Promise<readonly { readonly value: string; readonly count: number }[]> {
  const value = {
    fault: 'deliveries.last_fault',
    pod: `pods.host || case when pods.port = 443 then '' else ':' || pods.port end`,
  }
  const { rows } = await db.raw(
    `select coalesce(${value[by]}, 'unknown') as value, sum(deliveries.count)::integer as count
     from (
       select pod_id, last_fault, count(*) from deliveries where state = 'dead' group by pod_id, last_fault
     ) as deliveries
     join pods on pods.id = deliveries.pod_id
     group by value order by count desc, value limit ?`,
    [limit],
  )
  return rows
}
