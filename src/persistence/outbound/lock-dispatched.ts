import type { Knex } from 'knex'
import { RELAYABLE_KINDS, type RelayableKind } from '../../protocol/entities/registry.js'
import { queryRows } from '../database/database.js'
import { SENT_PUBLICLY_SQL, sentPubliclySql } from '../posts/visibility.js'
import { RECORD_TABLES } from '../sql/record-tables.js'
import { traceDigitsSql } from '../sql/trace.js'

/** A record of a local person, locked until the end of the transaction so that it is not deleted while it is dispatched. */
export interface DispatchedPost {
  readonly id: number
  readonly authorId: number
  readonly public: boolean
  readonly text: string
}

export interface DispatchedPhoto {
  readonly id: number
  readonly authorId: number
  readonly public: boolean
  readonly postId: number | null
}

/** A relayable with the authors that determine which pod relays it. */
export interface DispatchedRelayable {
  readonly id: number
  readonly author: DispatchedPerson
  /** The text of a comment; otherwise empty. */
  readonly text: string
  readonly threadPost: { readonly id: number; readonly isPublic: boolean; readonly author: DispatchedPerson }
}

interface DispatchedPerson {
  readonly id: number
  /** A local person with an open account. */
  readonly isLocal: boolean
}

export interface DispatchedMessage {
  readonly authorId: number
  readonly participants: readonly number[]
}

/** Undefined, here and below: the record was deleted, or the account of its author closed. */
export async function lockDispatchedPost(
  transaction: Knex.Transaction,
  guid: string,
): Promise<DispatchedPost | undefined> {
  return queryFirst(transaction, POST_SQL, guid)
}

export async function lockDispatchedPhoto(
  transaction: Knex.Transaction,
  guid: string,
): Promise<DispatchedPhoto | undefined> {
  return queryFirst(transaction, PHOTO_SQL, guid)
}

export async function lockDispatchedRelayable(
  transaction: Knex.Transaction,
  kind: RelayableKind | 'participation',
  guid: string,
): Promise<DispatchedRelayable | undefined> {
  return queryFirst(transaction, RELAYABLES_SQL[kind], guid)
}

/** A relayable of any author that is to be relayed. */
export interface RelayedRecord extends DispatchedRelayable {
  readonly guid: string
  /** Trace of the request that delivered it. */
  readonly trace: string | null
}

/** Locks any number of relayables of one kind with one statement. */
export async function lockRelayedRecords(
  transaction: Knex.Transaction,
  kind: RelayableKind,
  guids: readonly string[],
): Promise<readonly RelayedRecord[]> {
  if (guids.length === 0) return []
  return queryRows<RelayedRecord>(transaction, manyRelayables[kind], [[...guids]])
}

export async function lockDispatchedConversation(
  transaction: Knex.Transaction,
  guid: string,
): Promise<DispatchedMessage | undefined> {
  return queryFirst(transaction, CONVERSATION_SQL, guid)
}

export async function lockDispatchedMessage(
  transaction: Knex.Transaction,
  guid: string,
): Promise<DispatchedMessage | undefined> {
  return queryFirst(transaction, MESSAGE_SQL, guid)
}

async function queryFirst<Row extends object>(
  transaction: Knex.Transaction,
  statement: string,
  guid: string,
): Promise<Row | undefined> {
  const [row] = await queryRows<Row>(transaction, statement, [guid])
  return row
}

const POST_SQL = `
  select posts.id, posts.author_id as "authorId", ${SENT_PUBLICLY_SQL} as public, posts.text
  from posts
  join people on people.id = posts.author_id and ${isLocalSql('people')}
  where posts.guid = ?
  for key share of posts`

const PHOTO_SQL = `
  select photos.id, photos.author_id as "authorId", ${sentPubliclySql('photos')} as public, photos.post_id as "postId"
  from photos
  join people on people.id = photos.author_id and ${isLocalSql('people')}
  where photos.guid = ? and not photos.pending
  for key share of photos`

const RELAYABLES_SQL: Readonly<Record<RelayableKind | 'participation', string>> = {
  ...mapKinds((kind) => relayableSql(kind, '= ?')),
  participation: relayableSql('participation', '= ?'),
}

const manyRelayables = mapKinds((kind) => relayableSql(kind, '= any(?)', true))

function mapKinds(statementOf: (kind: RelayableKind) => string): Readonly<Record<RelayableKind, string>> {
  const statements = RELAYABLE_KINDS.map((kind) => [kind, statementOf(kind)])
  return Object.fromEntries(statements) // one for each kind
}

function relayableSql(kind: RelayableKind | 'participation', guids: '= ?' | '= any(?)', hasTrace = false): string {
  const { table, author, post, mentioningText = `''` } = RECORD_TABLES[kind]
  return `
  select
    ${table}.id,
    ${table}.guid,
    json_build_object('id', author.id, 'isLocal', ${isLocalSql('author')}) as author,
    ${mentioningText} as text,
    json_build_object(
      'id', posts.id,
      'isPublic', ${SENT_PUBLICLY_SQL},
      'author', json_build_object('id', root_author.id, 'isLocal', ${isLocalSql('root_author')})
    ) as "threadPost"
    ${hasTrace ? `, ${traceDigitsSql(`${table}.trace_id`)} as trace` : ''}
  from ${table}
  join posts on posts.id = ${post}
  join people as author on author.id = ${author}
  join people as root_author on root_author.id = posts.author_id
  where ${table}.guid ${guids}
  order by ${table}.id
  for key share of ${table}`
}

const CONVERSATION_SQL = `
  select conversations.author_id as "authorId", ${participantsSql('conversations.id')} as participants
  from conversations
  join people on people.id = conversations.author_id and ${isLocalSql('people')}
  where conversations.guid = ?
  for key share of conversations`

const MESSAGE_SQL = `
  select messages.author_id as "authorId", ${participantsSql('messages.conversation_id')} as participants
  from messages
  join people on people.id = messages.author_id and ${isLocalSql('people')}
  where messages.guid = ?
  for key share of messages`

function participantsSql(conversationId: string): string {
  return `to_json(array(
    select person_id from conversation_visibilities where conversation_id = ${conversationId}
  ))`
}

function isLocalSql(person: string): string {
  return `(${person}.pod_id is null and ${person}.closed_at is null)`
}
