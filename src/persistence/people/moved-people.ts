import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

/** A local person who has moved, with the newest identity. */
export interface MovedPerson {
  readonly guid: string
  readonly address: string
  readonly publicKey: string
  /** The message of the move as it was received; null: it came before this pod kept it. */
  readonly envelope: string | null
  readonly newest: {
    readonly guid: string
    /** The guid at its pod, if another person has it here; null: the same. */
    readonly guidAtPod: string | null
    readonly address: string
    /** Null: an account of this pod. */
    readonly pod: { readonly host: string; readonly port: number; readonly ssl: boolean } | null
    /** Moderators have blocked the person or their pod. */
    readonly isBlocked: boolean
  }
}

/** Finds a local person who has moved away, by guid or address. */
export async function findMovedPerson(
  db: Knex,
  by: { readonly guid: string } | { readonly address: string },
): Promise<MovedPerson | undefined> {
  const [column, value] = 'guid' in by ? ['guid', by.guid] : ['address', by.address]
  const [row] = await queryRows<MovedPerson>(
    db,
    `with recursive old as (
       select people.id, guid, address, public_key, envelope, new_person_id
       from people join account_migrations on old_person_id = people.id
       where people.${column} = ? and people.pod_id is null
     ), step(id, depth) as (
       select new_person_id, 0 from old
       union
       select account_migrations.new_person_id, depth + 1
       from step join account_migrations on old_person_id = step.id where depth < 100
     )
     select old.guid, old.address, old.public_key as "publicKey", old.envelope,
       json_build_object(
         'guid', newest.guid, 'guidAtPod', newest.guid_at_pod, 'address', newest.address,
         'pod', case when pods.id is not null then json_build_object('host', pods.host, 'port', pods.port, 'ssl', pods.ssl) end,
         'isBlocked', pods.blocked_at is not null or newest.restriction is not distinct from 'block'
       ) as newest
     from old
     join people as newest on newest.id = (select id from step order by depth desc limit 1)
     left join pods on pods.id = newest.pod_id`,
    [value],
  )
  return row
}

/** A person who has moved away from this pod, with the pod of the newest identity. */
export interface MovedFromHere {
  readonly oldId: number
  readonly guid: string
  readonly address: string
  readonly newestId: number
  readonly podId: number
}

/** Finds the local people who have become these people within this number of days. */
export async function findMovedFromHere(
  db: Knex,
  newestIds: readonly number[],
  days: number,
): Promise<readonly MovedFromHere[]> {
  if (newestIds.length === 0) return []
  return queryRows<MovedFromHere>(
    db,
    `with recursive step(newest, id, depth) as (
       select id, id, 0 from unnest(?::bigint[]) as input(id)
       union
       select newest, old_person_id, depth + 1
       from step join account_migrations on new_person_id = step.id
       where old_person_id is not null and depth < 100
     )
     select old.id as "oldId", old.guid, old.address, newest.id as "newestId", newest.pod_id as "podId"
     from step
     join people as old on old.id = step.id and old.pod_id is null
     join account_migrations on old_person_id = old.id and account_migrations.created_at > now() - make_interval(days => ?)
     join people as newest on newest.id = step.newest and newest.pod_id is not null
     order by old.id`,
    [[...newestIds], days],
  )
}

/** The message of a move that this pod answers for: from an account that was here, or to one that is. */
export async function findEnvelopeOfMove(db: Knex, oldGuid: string): Promise<string | undefined> {
  const [move] = await queryRows<{ readonly envelope: string }>(
    db,
    `select envelope from people join account_migrations on old_person_id = people.id
     where people.guid = ? and envelope is not null and (people.pod_id is null or announce_until is not null)`,
    [oldGuid],
  )
  return move?.envelope
}

/**
 * The addresses from which a person has moved within this number of days, the latest move first. A move from an account that this pod
 * never knew is not proven: everyone can claim one.
 */
export async function findRecentAddresses(db: Knex, personId: number, days: number): Promise<readonly string[]> {
  const rows = await queryRows<{ readonly address: string }>(
    db,
    `select old.address
     from account_migrations join people as old on old.id = old_person_id and old.closed_at is not null
     where new_person_id = ? and account_migrations.created_at > now() - make_interval(days => ?)
     order by account_migrations.id desc`,
    [personId, days],
  )
  return rows.map(({ address }) => address)
}

/**
 * The newest addresses of people who have moved, by the old ones. A move from an account that this pod never knew is not proven and
 * leads nowhere, nor does the address of a person whose account is open.
 */
export async function findNewestAddresses(
  db: Knex,
  oldAddresses: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await queryRows<{ readonly start: string; readonly address: string }>(
    db,
    `with recursive step(start, id, depth) as (
       select old.address, new_person_id, 1
       from people as old join account_migrations on old_person_id = old.id
       where old.address = any(:addresses) and old.closed_at is not null
       union
       select start, new_person_id, depth + 1 from step join account_migrations on old_person_id = step.id where depth < 100
     )
     select distinct on (start) start, people.address from step join people on people.id = step.id order by start, depth desc`,
    { addresses: [...new Set(oldAddresses)] },
  )
  return new Map(rows.map(({ start, address }) => [start, address]))
}

/** Moves in a row that one more move from a person to another one would make. */
export async function countMovesInARow(
  transaction: Knex.Transaction,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number> {
  const { moves } = await queryRow<{ readonly moves: number }>(
    transaction,
    `with recursive before(id, depth) as (
       select :from::bigint, 0
       union
       select old_person_id, depth + 1 from before join account_migrations on new_person_id = before.id
       where old_person_id is not null and depth < 100
     ), after(id, depth) as (
       select :to::bigint, 0
       union
       select new_person_id, depth + 1 from after join account_migrations on old_person_id = after.id where depth < 100
     )
     select (select max(depth) from before) + 1 + (select max(depth) from after) as moves`,
    { from, to },
  )
  return moves
}
