import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** Ids of the people whom a user blocks. */
export async function findUserBlocks(db: Knex, userId: number): Promise<ReadonlySet<number>> {
  const rows: readonly { readonly personId: number }[] = await db('blocks').where({ userId }).select('personId')
  return new Set(rows.map(({ personId }) => personId))
}

/** A contact of an archive: the person, and the aspects into which the user has put them. */
export interface ImportedContact {
  readonly personId: number
  readonly receiving: boolean
  readonly claimed: boolean
  readonly aspectIds: readonly number[]
}

/** Contacts of a user, with their aspects. */
export interface KnownContact {
  readonly personId: number
  readonly receiving: boolean
  readonly sharing: boolean
  readonly aspectIds: readonly number[]
}

export async function findContactsAmong(
  db: Knex,
  userId: number,
  personIds: readonly number[],
): Promise<ReadonlyMap<number, KnownContact>> {
  const rows = await queryRows<KnownContact>(
    db,
    `select contacts.person_id as "personId", receiving, sharing,
       array(select aspect_id from aspect_memberships where contact_id = contacts.id) as "aspectIds"
     from contacts where user_id = ? and person_id = any(?)`,
    [userId, [...personIds]],
  )
  return new Map(
    rows.map((row) => [
      Number(row.personId),
      { ...row, personId: Number(row.personId), aspectIds: row.aspectIds.map(Number) },
    ]),
  )
}

/** Ids of the aspects of a user that have members besides those whom an archive names in them. */
export async function findAspectsOfOthers(
  db: Knex,
  userId: number,
  named: readonly { readonly aspectId: number; readonly personId: number }[],
): Promise<ReadonlySet<number>> {
  const rows = await queryRows<{ readonly id: number }>(
    db,
    `select distinct aspect_id as id from contacts join aspect_memberships on contact_id = contacts.id
     where user_id = ? and (aspect_id, person_id) not in (
       select "aspectId", "personId" from json_to_recordset(?::json) as named("aspectId" bigint, "personId" bigint)
     )`,
    [userId, JSON.stringify(named)],
  )
  return new Set(rows.map(({ id }) => Number(id)))
}

/** Ids of the people among these whom an archive names as followers of the user. */
export async function findClaimedAmong(
  db: Knex,
  userId: number,
  personIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const rows: readonly { readonly personId: number }[] = await db('claimedFollowers')
    .where({ userId })
    .whereRaw('person_id = any(?)', [[...personIds]])
    .select('personId')
  return new Set(rows.map(({ personId }) => personId))
}

/** Stores contacts that the user shares with, and the claim that others share with the user. Nothing is sent. */
export async function insertImportedContacts(
  transaction: Knex.Transaction,
  userId: number,
  contacts: readonly ImportedContact[],
): Promise<void> {
  const json = JSON.stringify(contacts)
  await transaction.raw(
    `insert into contacts (user_id, person_id, receiving)
     select ?, "personId", true from json_to_recordset(?::json) as input("personId" bigint, receiving boolean)
     where input.receiving order by "personId"
     on conflict (user_id, person_id) do update set receiving = true where not contacts.receiving`,
    [userId, json],
  )
  await transaction.raw(
    `insert into aspect_memberships (aspect_id, contact_id)
     select aspect.id::bigint, contacts.id
     from json_to_recordset(?::json) as input("personId" bigint, receiving boolean, "aspectIds" json)
     cross join json_array_elements_text(input."aspectIds") as aspect(id)
     join contacts on contacts.user_id = ? and contacts.person_id = input."personId"
     where input.receiving order by 1, 2
     on conflict do nothing`,
    [json, userId],
  )
  await transaction.raw(
    `insert into claimed_followers (user_id, person_id)
     select ?, "personId" from json_to_recordset(?::json) as input("personId" bigint, claimed boolean)
     where input.claimed and not exists (
       select from contacts where user_id = ? and person_id = input."personId" and sharing)
     order by "personId"
     on conflict do nothing`,
    [userId, json, userId],
  )
}
