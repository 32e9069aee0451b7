import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../database/database.js'
import { isRetractedSql } from '../models/tombstone.js'
import { isRestrictedForSql } from '../people/restricted-people.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowByRowSql } from '../sql/row-by-row.js'

/** A received or new conversation, with the addresses of its participants. */
export interface ReceivedConversation {
  readonly guid: string
  readonly author: string
  readonly subject: string
  readonly participants: readonly string[]
  /** Remote participants who are not known here yet. */
  readonly unknownParticipants: readonly string[]
  readonly createdAt: Date
  /** Time of arrival, by the clock of this pod. */
  readonly arrivedAt: Date
}

export interface NewConversationMessage {
  readonly guid: string
  readonly conversationGuid: string
  readonly author: string
  readonly text: string
  readonly createdAt: Date
  /** Time of arrival, by the clock of this pod. */
  readonly arrivedAt: Date
}

export interface InsertedRow {
  readonly id: number
  readonly guid: string
}

/**
 * Inserts conversations with one statement; returns the new ones. Known participants see them at once, unknown ones as soon as they
 * become known.
 */
export async function insertNewConversations(
  transaction: Knex.Transaction,
  conversations: readonly ReceivedConversation[],
): Promise<readonly InsertedRow[]> {
  if (conversations.length === 0) return []
  return queryRows<InsertedRow>(transaction, NEW_CONVERSATIONS_SQL, [JSON.stringify(conversations)])
}

/**
 * Inserts messages into stored conversations; returns the new ones. They count as unread for local participants other than the
 * author, unless they block the author.
 */
export async function insertConversationMessages(
  transaction: Knex.Transaction,
  messages: readonly NewConversationMessage[],
): Promise<readonly InsertedRow[]> {
  if (messages.length === 0) return []
  return queryPrepared<InsertedRow>(transaction, 'new-messages', NEW_MESSAGES_SQL, [
    messages.map(({ guid }) => guid),
    messages.map(({ conversationGuid }) => conversationGuid),
    messages.map(({ author }) => author),
    messages.map(({ text }) => text),
    messages.map(({ createdAt }) => createdAt),
    messages.map(({ arrivedAt }) => arrivedAt),
  ])
}

/** Returns the guids of conversations whose author is not a contact of a local participant, or is blocked by one. */
export async function findRefusedConversations(
  transaction: Knex.Transaction,
  conversations: readonly Pick<ReceivedConversation, 'guid' | 'author' | 'participants'>[],
): Promise<ReadonlySet<string>> {
  if (conversations.length === 0) return new Set()
  const rows = await queryRows<{ readonly guid: string }>(transaction, REFUSED_CONVERSATIONS_SQL, [
    JSON.stringify(conversations),
  ])
  return new Set(rows.map(({ guid }) => guid))
}

/** Finds the authors of stored conversations or messages, by guid. */
export async function findAuthorsByGuid(
  transaction: Knex.Transaction,
  table: 'conversations' | 'messages',
  guids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (guids.length === 0) return new Map()
  const rows = await queryRows<{ readonly guid: string; readonly address: string }>(transaction, authors[table], [
    [...guids],
  ])
  return new Map(rows.map((row) => [row.guid, row.address]))
}

/** Makes conversations visible to a person who became known after the conversations named them. */
export async function showConversationsTo(
  transaction: Knex.Transaction,
  person: { readonly id: number; readonly address: string },
): Promise<void> {
  await transaction.raw(SHOWN_CONVERSATIONS_SQL, [person.address, person.id])
}

/** Distance between the arrival times of two messages of a conversation, so that their order is strict. */
const ONE_MILLISECOND_SQL = `interval '1 millisecond'`

const CONVERSATION_ROWS_SQL = `
  select * from json_to_recordset(?::json) as row(
    guid text, author text, subject text, participants json, "unknownParticipants" json, "createdAt" timestamptz,
    "arrivedAt" timestamptz
  )`

const NEW_CONVERSATIONS_SQL = `
  with input as (
    ${CONVERSATION_ROWS_SQL}
  ), inserted as (
    insert into conversations (guid, author_id, subject, created_at, updated_at)
    select input.guid, people.id, input.subject, input."createdAt", input."arrivedAt" - ${ONE_MILLISECOND_SQL}
    from input ${rowByRowSql('people', 'people.address = input.author')}
    where people.closed_at is null and not ${isRetractedSql('conversation', 'input.guid', ['people.id'])}
    order by input.guid
    on conflict do nothing
    returning id, guid, created_at, updated_at
  ), visible as (
    insert into conversation_visibilities (conversation_id, person_id, created_at, updated_at)
    select inserted.id, people.id, inserted.created_at, inserted.updated_at
    from inserted
    join input using (guid)
    cross join json_array_elements_text(input.participants) as participant(address)
    ${rowByRowSql('people', 'people.address = participant.address and people.closed_at is null')}
    order by 1, 2
  ), named as (
    insert into conversation_unknown_participants (conversation_id, address)
    select inserted.id, unknown.address
    from inserted
    join input using (guid)
    cross join json_array_elements_text(input."unknownParticipants") as unknown(address)
    order by 1, 2
  )
  select id, guid from inserted`

const MESSAGES = [
  opaqueParam('$1', 'text[]'),
  opaqueParam('$2', 'text[]'),
  opaqueParam('$3', 'text[]'),
  opaqueParam('$4', 'text[]'),
  opaqueParam('$5', 'timestamptz[]'),
  opaqueParam('$6', 'timestamptz[]'),
].join(', ')

/**
 * Locks the conversations in id order, so that two batches cannot deadlock and arrival times within a conversation ascend. Then it
 * inserts the messages and updates the visibilities of all participants.
 */
const NEW_MESSAGES_SQL = `
  with input as (
    select * from unnest(${MESSAGES}) with ordinality
      as row(guid, "conversationGuid", author, text, "createdAt", "arrivedAt", position)
  ), locked as (
    select id, guid, updated_at from conversations
    where guid in (select "conversationGuid" from input)
    order by id for no key update
  ), inserted as (
    insert into messages (guid, conversation_id, author_id, text, created_at, arrived_at)
    select
      input.guid, locked.id, people.id, input.text, input."createdAt",
      greatest(input."arrivedAt", locked.updated_at + ${ONE_MILLISECOND_SQL})
        + ${ONE_MILLISECOND_SQL} * (row_number() over (partition by locked.id order by input.position) - 1)
    from input
    join locked on locked.guid = input."conversationGuid"
    ${rowByRowSql('people', 'people.address = input.author')}
    order by input.guid
    on conflict do nothing
    returning id, guid, conversation_id, author_id, arrived_at
  ), latest as (
    select conversation_id, max(arrived_at) as at from inserted group by conversation_id
  ), touched as (
    update conversations set updated_at = greatest(updated_at, latest.at)
    from latest where conversations.id = latest.conversation_id
  ), unread as (
    update conversation_visibilities as visible set
      updated_at = greatest(visible.updated_at, latest.at),
      unread = visible.unread + case when people.pod_id is null then (
        select count(*) from inserted
        where inserted.conversation_id = visible.conversation_id and inserted.author_id <> visible.person_id
          and not exists (
            select from blocks join users on users.id = blocks.user_id
            where users.person_id = visible.person_id and blocks.person_id = inserted.author_id
          )
      ) else 0 end
    from latest, people
    where visible.conversation_id = latest.conversation_id and people.id = visible.person_id
  )
  select id, guid from inserted`

const REFUSED_CONVERSATIONS_SQL = `
  with input as (
    ${CONVERSATION_ROWS_SQL}
  )
  select distinct input.guid
  from input
  ${rowByRowSql('people', 'people.address = input.author', 'authors')}
  cross join json_array_elements_text(input.participants) as participant(address)
  ${rowByRowSql('people', 'people.address = participant.address and people.id <> authors.id and people.closed_at is null')}
  ${rowByRowSql('users', 'users.person_id = people.id')}
  where not exists (select from contacts where contacts.user_id = users.id and contacts.person_id = authors.id)
    or exists (select from blocks where blocks.user_id = users.id and blocks.person_id = authors.id)
    or ${isRestrictedForSql('users.id', 'authors')}`

const authors = {
  conversations: `
    select conversations.guid, address from conversations join people on people.id = author_id where conversations.guid = any(?)`,
  messages: `
    select messages.guid, address from messages join people on people.id = author_id where messages.guid = any(?)`,
} as const

const SHOWN_CONVERSATIONS_SQL = `
  with named as (
    delete from conversation_unknown_participants where address = ? returning conversation_id
  )
  insert into conversation_visibilities (conversation_id, person_id, created_at, updated_at)
  select conversations.id, ?, conversations.created_at, conversations.updated_at
  from named join conversations on conversations.id = named.conversation_id
  order by conversations.id
  on conflict do nothing`
