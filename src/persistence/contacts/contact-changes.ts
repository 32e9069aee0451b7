import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** A person and a local user between whom sharing starts or stops. */
export interface SharingPair {
  readonly userId: number
  readonly personId: number
}

export interface FollowedBackPair extends SharingPair {
  /** Person id of the user. */
  readonly ownPersonId: number
  /** User id of the person; null: a remote person. */
  readonly theirUserId: number | null
}

export interface BegunSharing extends SharingPair {
  /** The archive of the user named the person as a follower of the old account. */
  readonly wasClaimed: boolean
}

/** Records that people share with users, with one statement; returns the pairs that are new. */
export async function startSharing(
  transaction: Knex.Transaction,
  pairs: readonly SharingPair[],
): Promise<readonly BegunSharing[]> {
  if (pairs.length === 0) return []
  return queryRows<BegunSharing>(transaction, NEW_SHARING_SQL, [JSON.stringify(pairs)])
}

/** Starts sharing in return for users who have chosen to follow back, unless they share already or block the person. */
export async function followBack(
  transaction: Knex.Transaction,
  pairs: readonly SharingPair[],
): Promise<readonly FollowedBackPair[]> {
  if (pairs.length === 0) return []
  return queryRows<FollowedBackPair>(transaction, FOLLOWED_BACK_SQL, [JSON.stringify(pairs)])
}

/** Starts sharing of a user with a person; `isNew` unless there was sharing before. The row is locked. */
export async function startReceiving(
  transaction: Knex.Transaction,
  { userId, personId }: SharingPair,
): Promise<{ readonly id: number; readonly isNew: boolean }> {
  const [begun] = await queryRows<{ readonly id: number }>(transaction, NEW_RECEIVING_SQL, [userId, personId])
  if (begun !== undefined) return { id: begun.id, isNew: true }
  const contact = await transaction('contacts').where({ userId, personId }).forUpdate().first('id')
  if (contact === undefined) return startReceiving(transaction, { userId, personId }) // deleted between the two statements
  return { id: contact.id, isNew: false }
}

/** Ends sharing of people with users and deletes the notifications about it. Returns the pairs that have changed. */
export async function stopSharing(
  transaction: Knex.Transaction,
  pairs: readonly SharingPair[],
): Promise<readonly SharingPair[]> {
  return lockAndStopSharing(transaction, pairs, ENDED_SHARING_SQL)
}

/** Ends sharing of blocked people, whose contacts are inactive: the undo of the block does not bring it back. */
export async function stopInactiveSharing(transaction: Knex.Transaction, pairs: readonly SharingPair[]): Promise<void> {
  if (pairs.length === 0) return
  await transaction.raw(
    `update contacts set inactive_sharing = false from ${PAIRS_AS_ROWS_SQL} as pair
     where user_id = "userId" and person_id = "personId" and inactive_sharing`,
    [JSON.stringify(pairs)],
  )
}

/** Ends sharing of users with people. Returns the pairs that have changed. */
export async function stopReceiving(
  transaction: Knex.Transaction,
  pairs: readonly SharingPair[],
): Promise<readonly SharingPair[]> {
  return lockAndStopSharing(transaction, pairs, ENDED_RECEIVING_SQL)
}

interface BlockedContact extends SharingPair {
  /** Person id of the user. */
  readonly ownPersonId: number
  /** The person shares with the user as well. */
  readonly isMutual: boolean
}

/** The contacts with a person of users who share with them, and block them. */
export async function findBlockedContacts(
  transaction: Knex.Transaction,
  personId: number,
): Promise<readonly BlockedContact[]> {
  return queryRows<BlockedContact>(
    transaction,
    `select contacts.user_id as "userId", contacts.person_id as "personId", users.person_id as "ownPersonId", sharing as "isMutual"
     from contacts
     join blocks on blocks.user_id = contacts.user_id and blocks.person_id = contacts.person_id
     join users on users.id = contacts.user_id
     where contacts.person_id = ? and receiving order by contacts.user_id`,
    [personId],
  )
}

/** Locks the rows first: whether a row is deleted or updated depends on its other flag. */
async function lockAndStopSharing(
  transaction: Knex.Transaction,
  pairs: readonly SharingPair[],
  statement: string,
): Promise<readonly SharingPair[]> {
  if (pairs.length === 0) return []
  const json = JSON.stringify(pairs)
  await transaction.raw(LOCKED_CONTACTS_SQL, [json])
  return queryRows<SharingPair>(transaction, statement, [json])
}

const PAIRS_AS_ROWS_SQL = `(
    select distinct "userId", "personId" from json_to_recordset(?::json) as pair("userId" bigint, "personId" bigint)
  )`

const LOCKED_CONTACTS_SQL = `
  select from contacts join ${PAIRS_AS_ROWS_SQL} as pair on user_id = "userId" and person_id = "personId"
  order by user_id, person_id
  for update of contacts`

/** Messages of the people replace the claim of an archive. */
const NEW_SHARING_SQL = `
  with pair as ${PAIRS_AS_ROWS_SQL}, claimed as (
    delete from claimed_followers using pair where user_id = "userId" and person_id = "personId"
    returning user_id, person_id
  ), begun as (
    insert into contacts (user_id, person_id, sharing)
    select "userId", "personId", true from pair
    order by "userId", "personId"
    on conflict (user_id, person_id) do update set sharing = true where not contacts.sharing
    returning user_id, person_id
  )
  select user_id as "userId", person_id as "personId", claimed.user_id is not null as "wasClaimed"
  from begun left join claimed using (user_id, person_id)`

const NEW_RECEIVING_SQL = `
  insert into contacts (user_id, person_id, receiving) values (?, ?, true)
  on conflict (user_id, person_id) do update set receiving = true where not contacts.receiving
  returning id`

const FOLLOWED_BACK_SQL = `
  with followed as (
    update contacts set receiving = true
    from ${PAIRS_AS_ROWS_SQL} as pair
    join users on users.id = pair."userId"
    join people on people.id = pair."personId"
    left join users as theirs on theirs.person_id = people.id
    where contacts.user_id = users.id and contacts.person_id = people.id and not contacts.receiving
      and users.follow_back_aspect_id is not null and users.closed_at is null and users.close_at is null and people.closed_at is null
      and people.restriction is null
      and not exists (select from blocks where blocks.user_id = users.id and blocks.person_id = people.id)
    returning contacts.id, users.id as "userId", people.id as "personId", users.person_id as "ownPersonId",
      users.follow_back_aspect_id as aspect_id, theirs.id as "theirUserId"
  ), memberships as (
    insert into aspect_memberships (aspect_id, contact_id) select aspect_id, id from followed on conflict do nothing
  )
  select "userId", "personId", "ownPersonId", "theirUserId" from followed order by 1, 2`

const ENDED_SHARING_SQL = `
  with pair as ${PAIRS_AS_ROWS_SQL}, ended as (
    delete from contacts using pair
    where user_id = "userId" and person_id = "personId" and sharing and not receiving
    returning user_id as "userId", person_id as "personId"
  ), cleared as (
    update contacts set sharing = false from pair
    where user_id = "userId" and person_id = "personId" and sharing and receiving
    returning user_id as "userId", person_id as "personId"
  ), stopped as (
    select * from ended union all select * from cleared
  ), removed_claims as (
    delete from claimed_followers using pair where user_id = "userId" and person_id = "personId"
  ), removed_notifications as (
    delete from notifications using stopped
    where notifications.type = 'started_sharing' and notifications.user_id = stopped."userId"
      and notifications.person_id = stopped."personId"
  )
  select * from stopped`

/** Deletes rows without the other flag and clears the flag of the rest, with their aspect memberships. */
const ENDED_RECEIVING_SQL = `
  with pair as ${PAIRS_AS_ROWS_SQL}, ended as (
    delete from contacts using pair
    where user_id = "userId" and person_id = "personId" and receiving and not sharing
    returning user_id as "userId", person_id as "personId"
  ), cleared as (
    update contacts set receiving = false from pair
    where user_id = "userId" and person_id = "personId" and receiving and sharing
    returning id, user_id as "userId", person_id as "personId"
  ), removed_memberships as (
    delete from aspect_memberships using cleared where aspect_memberships.contact_id = cleared.id
  )
  select * from ended union all select "userId", "personId" from cleared`
