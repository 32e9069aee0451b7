import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { pagesAfter } from '../sql/pages-after.js'

/** A conversation as one participant sees it. */
export interface ArchivedConversation {
  readonly id: number
  readonly guid: string
  readonly author: string
  readonly subject: string
  readonly createdAt: Date
  readonly participants: readonly string[]
  readonly read: boolean
}

export interface ArchivedMessage {
  readonly conversationId: number
  readonly guid: string
  readonly author: string
  readonly text: string
  readonly createdAt: Date
}

/** The conversations of a person page by page, in the order of their ids. */
export function archivedConversations(
  db: Knex,
  personId: number,
  limit: number,
): AsyncGenerator<readonly ArchivedConversation[]> {
  return pagesAfter({
    size: limit,
    start: 0,
    positionOf: ({ id }: ArchivedConversation) => id,
    async read(after) {
      return queryRows<ArchivedConversation>(
        db,
        `select conversations.id, conversations.guid, author.address as author, subject,
           conversations.created_at as "createdAt", unread = 0 as read,
           coalesce(imported_participants, array(
             select people.address from conversation_visibilities as other
             join people on people.id = other.person_id
             where other.conversation_id = conversations.id order by people.address
           )) as participants
         from conversation_visibilities as visibility
         join conversations on conversations.id = visibility.conversation_id
         join people as author on author.id = conversations.author_id
         where visibility.person_id = ? and conversations.id > ?
         order by conversations.id limit ?`,
        [personId, after, limit],
      )
    },
  })
}

/** The messages of conversations, the oldest first. */
export async function findArchivedMessages(
  db: Knex,
  conversationIds: readonly number[],
): Promise<readonly ArchivedMessage[]> {
  return queryRows<ArchivedMessage>(
    db,
    `select conversation_id as "conversationId", messages.guid, people.address as author, text,
       messages.created_at as "createdAt"
     from messages join people on people.id = messages.author_id
     where conversation_id = any(?) order by conversation_id, arrived_at, messages.id`,
    [[...conversationIds]],
  )
}

/** Who sees conversations: of each guid that exists here, whether one of these people takes part. */
export async function findConversationParts(
  db: Knex,
  personIds: readonly number[],
  guids: readonly string[],
): Promise<ReadonlyMap<string, boolean>> {
  const rows = await queryRows<{ readonly guid: string; readonly takesPart: boolean }>(
    db,
    `select guid, exists (
       select from conversation_visibilities where conversation_id = conversations.id and person_id = any(?)
     ) as "takesPart"
     from conversations where guid = any(?)`,
    [[...personIds], [...guids]],
  )
  return new Map(rows.map((row) => [row.guid, row.takesPart]))
}

/** A conversation of an archive, with its messages in their order. */
export interface ImportedConversation {
  readonly guid: string
  readonly authorId: number
  readonly subject: string
  readonly participants: readonly string[]
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly read: boolean
  readonly messages: readonly {
    readonly guid: string
    readonly authorId: number
    readonly text: string
    readonly createdAt: Date
  }[]
}

/** Stores conversations that only one person sees. Messages whose guid exists are left out. Returns the guids of new conversations. */
export async function insertImportedConversations(
  transaction: Knex.Transaction,
  personId: number,
  conversations: readonly ImportedConversation[],
): Promise<ReadonlySet<string>> {
  if (conversations.length === 0) return new Set()
  const rows = await queryRows<{ readonly guid: string }>(
    transaction,
    `with input as (
       select * from json_to_recordset(:conversations::json) as input(
         guid text, "authorId" bigint, subject text, participants json, "createdAt" timestamptz, "updatedAt" timestamptz,
         read boolean, messages json)
     ), inserted as (
       insert into conversations (guid, author_id, subject, created_at, updated_at, imported_participants)
       select guid, "authorId", subject, "createdAt", "updatedAt", array(select json_array_elements_text(participants))
       from input order by guid
       on conflict do nothing
       returning id, guid, created_at, updated_at
     ), visible as (
       insert into conversation_visibilities (conversation_id, person_id, unread, created_at, updated_at)
       select inserted.id, :personId, case when input.read then 0 else 1 end, created_at, updated_at
       from inserted join input using (guid)
     ), written as (
       insert into messages (guid, conversation_id, author_id, text, created_at, arrived_at)
       select message.guid, inserted.id, message."authorId", message.text, message."createdAt", message."createdAt"
       from inserted join input using (guid)
       cross join lateral json_to_recordset(input.messages) as message(
         guid text, "authorId" bigint, text text, "createdAt" timestamptz)
       order by message.guid
       on conflict do nothing
     )
     select guid from inserted`,
    { conversations: JSON.stringify(conversations), personId },
  )
  return new Set(rows.map(({ guid }) => guid))
}

/** A conversation of an archive, for the comparison with the copy that another account has imported. */
export interface ComparableConversation {
  readonly guid: string
  /** The network IDs of the importing person. */
  readonly names: readonly string[]
  /** The ids of all people whom the archive names as participants. */
  readonly participantIds: readonly number[]
  readonly messages: readonly (Pick<ImportedConversation['messages'][number], 'guid' | 'text'> & {
    /** The ids of the importing person: more than one if the person is about to move. */
    readonly authorIds: readonly number[]
  })[]
}

/**
 * The guids of the conversations that are the same on both sides. The person who imported it first names the second one as a participant,
 * the second one names everybody who sees it, and every message that is stored is in the second archive, too: so nobody reads anything
 * that their own archive does not contain.
 */
export async function findSameConversations(
  db: Knex,
  conversations: readonly ComparableConversation[],
): Promise<ReadonlySet<string>> {
  if (conversations.length === 0) return new Set()
  const rows = await queryRows<{ readonly guid: string }>(db, SAME_CONVERSATIONS_SQL, [JSON.stringify(conversations)])
  return new Set(rows.map(({ guid }) => guid))
}

/** Shows conversations to one more person, with the messages of that person that are not stored yet. */
export async function joinImportedConversations(
  transaction: Knex.Transaction,
  personId: number,
  conversations: readonly ImportedConversation[],
): Promise<void> {
  if (conversations.length === 0) return
  await transaction.raw(
    `with input as (
       select conversations.id, conversations.created_at, conversations.updated_at, input.read, input.messages
       from json_to_recordset(:conversations::json) as input(guid text, read boolean, messages json)
       join conversations using (guid)
     ), visible as (
       insert into conversation_visibilities (conversation_id, person_id, unread, created_at, updated_at)
       select id, :personId, case when read then 0 else 1 end, created_at, updated_at from input order by id
       on conflict do nothing
     )
     insert into messages (guid, conversation_id, author_id, text, created_at, arrived_at)
     select message.guid, input.id, :personId, message.text, message."createdAt", message."createdAt"
     from input
     cross join lateral json_to_recordset(input.messages) as message(
       guid text, "authorId" bigint, text text, "createdAt" timestamptz)
     where message."authorId" = :personId
     order by message.guid
     on conflict do nothing`,
    { conversations: JSON.stringify(conversations), personId },
  )
}

/** Locks the conversations: no message arrives between the comparison and the commit. */
export async function lockConversations(transaction: Knex.Transaction, guids: readonly string[]): Promise<void> {
  if (guids.length === 0) return
  await transaction('conversations')
    .whereIn('guid', [...guids])
    .orderBy('id')
    .forNoKeyUpdate()
    .select('id')
}

const SAME_CONVERSATIONS_SQL = `
  select conversations.guid
  from json_to_recordset(?::json) as input(guid text, names text[], "participantIds" bigint[], messages json)
  join conversations on conversations.guid = input.guid and conversations.imported_participants && input.names
  where not exists (
    select from conversation_visibilities
    where conversation_id = conversations.id and person_id <> all (input."participantIds")
  ) and not exists (
    select from messages
    where messages.conversation_id = conversations.id and not exists (
      select from json_to_recordset(input.messages) as message(guid text, "authorIds" bigint[], text text)
      where message.guid = messages.guid and messages.author_id = any (message."authorIds") and message.text = messages.text
    )
  )`
