import type { Knex } from 'knex'
import { queryPrepared, queryPreparedRow } from '../database/database.js'
import {
  decodePeople,
  groupPeopleByOwner,
  type OwnedPerson,
  type PersonSummary,
  peopleSql,
} from '../people/person-summaries.js'
import { isAuthorUnblockedSql } from '../posts/visibility.js'
import {
  type AggregatedColumns,
  aggregateColumns,
  booleanColumn,
  numberColumn,
  textColumn,
  timeColumn,
  valueAt,
} from '../sql/column-lists.js'
import {
  createConditionList,
  keysetClauses,
  maxRowsOfPage,
  type OffsetPage,
  type Page,
  type TimePage,
  toPage,
} from '../sql/keyset-page.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { isConversationShownSql } from './shown-conversations.js'

export interface ConversationFilter extends TimePage {
  readonly onlyUnread?: boolean
  /** Time after which a message of the conversation must have arrived. */
  readonly onlyAfter?: Date
}

export interface ConversationMessageFilter extends OffsetPage {
  /** Received later than this. */
  readonly onlyAfter?: Date
}

/** A conversation as clients see it. */
export interface ListedConversation {
  readonly id: number
  readonly guid: string
  readonly subject: string
  readonly createdAt: Date
  readonly read: boolean
  /** All participants who have not left, the viewer included, in the order in which they became known here. */
  readonly participants: readonly PersonSummary[]
}

export interface ListedConversationMessage {
  readonly guid: string
  readonly text: string
  readonly createdAt: Date
  readonly author: PersonSummary
}

/** Lists a page of the conversations of a person, newest first unless the page has a position. */
export async function listConversationsOfPerson(
  db: Knex,
  personId: number,
  filter: ConversationFilter,
): Promise<Page<ListedConversation>> {
  const { onlyUnread = false, onlyAfter } = filter
  const values: unknown[] = [personId]
  const { conditions, names, addCondition } = createConditionList(values)
  if (onlyUnread) addCondition('unread', () => 'unread > 0')
  if (onlyAfter !== undefined) addCondition('changed-after', (place) => `updated_at > ${place}`, onlyAfter)
  const part = keysetClauses(filter, values, { time: 'created_at', id: 'conversation_id' })
  const candidatesSql = `
    select * from conversation_visibilities
    where person_id = $1 ${conditions.join(' ')} ${part.condition} and ${isConversationShownSql('conversation_id')} ${part.order}`
  const pageSql = `select * from (${candidatesSql}) as found limit ${part.maxRows}`
  const name = ['conversations', ...names, part.name].join(' ')
  return toPage(await queryConversations(db, { name, rowsSql: pageSql, values }), filter)
}

/** Undefined: the person has no such conversation. */
export async function findListedConversation(
  db: Knex,
  personId: number,
  guid: string,
): Promise<ListedConversation | undefined> {
  const rowSql = `
    select conversation_visibilities.*
    from conversation_visibilities join conversations on conversations.id = conversation_id
    where person_id = $1 and conversations.guid = $2 and ${isAuthorUnblockedSql('conversations.author_id')}`
  const [conversation] = await queryConversations(db, {
    name: 'conversation',
    rowsSql: rowSql,
    values: [personId, guid],
  })
  return conversation
}

/** Lists messages in the order of arrival; empty if the person has no conversation with that guid. */
export async function listMessagesOfConversation(
  db: Knex,
  personId: number,
  { conversationGuid, onlyAfter, ...page }: ConversationMessageFilter & { readonly conversationGuid: string },
): Promise<Page<ListedConversationMessage>> {
  const values: unknown[] = [personId, conversationGuid, page.offset, page.limit + 1]
  if (onlyAfter !== undefined) values.push(onlyAfter)
  const later = onlyAfter === undefined ? '' : 'and arrived_at > $5'
  const name = onlyAfter === undefined ? 'messages' : 'messages changed-after'
  const maxRows = maxRowsOfPage(page)
  const rows = await queryPreparedRow<FoundMessages>(
    db,
    `${name} ${maxRows}`,
    () => messagesSql(later, maxRows),
    values,
  )
  const { guid: guids, text, createdAt, authorId } = messageAggregate.decode(rows.messages)
  const person = decodePeople(rows.people)
  const conversations = guids.map((guid, index) => ({
    guid,
    text: valueAt(text, index),
    createdAt: new Date(valueAt(createdAt, index)),
    author: person(valueAt(authorId, index)),
  }))
  return toPage(conversations, page)
}

/** A message with the guid of its conversation. */
export interface ConversationMessageWithGuid extends ListedConversationMessage {
  readonly id: number
  readonly conversationGuid: string
}

/** Lists messages by ids, in any order, without those of conversations that the person has left. */
export function listConversationMessagesByIds(
  db: Knex,
  personId: number,
  ids: readonly number[],
): Promise<readonly ConversationMessageWithGuid[]> {
  return queryPrepared<ConversationMessageWithGuid>(
    db,
    'messages-of-ids',
    `select
       messages.id, messages.guid, messages.text, messages.created_at as "createdAt", ${SUMMARY_SQL} as author,
       conversations.guid as "conversationGuid"
     from messages
     join people on people.id = messages.author_id
     join conversations on conversations.id = messages.conversation_id
     join conversation_visibilities as visible
       on visible.conversation_id = messages.conversation_id and visible.person_id = $1
     where messages.id = any($2::bigint[]) and people.restriction is distinct from 'block'
       and ${isAuthorUnblockedSql('conversations.author_id')}`,
    [personId, ids],
  )
}

const SUMMARY_SQL = `
  json_build_object('guid', people.guid, 'address', people.address, 'name', people.name, 'avatarUrl', people.avatar_url)`

const messageAggregate = aggregateColumns({
  createdAt: timeColumn('created_at'),
  authorId: numberColumn('author_id'),
  guid: textColumn('guid'),
  text: textColumn('text'),
})

/** The messages in one row, like the conversations. */
interface FoundMessages {
  readonly messages: AggregatedColumns
  readonly people: AggregatedColumns
}

function messagesSql(later: string, maxRows: number): string {
  const [offset, limit] = [opaqueParam('$3', 'bigint'), opaqueParam('$4', 'bigint')]
  return `
    select messages, ${peopleSql('author_ids')} as people
    from (
      select ${messageAggregate.select} as messages, array_agg(author_id) as author_ids
      from (
        select * from (
          select * from messages
          where conversation_id = (
            select conversation_id
            from conversation_visibilities join conversations on conversations.id = conversation_id
            where person_id = $1 and conversations.guid = $2 and ${isAuthorUnblockedSql('conversations.author_id')}
          ) ${later} and ${isAuthorUnblockedSql('messages.author_id')}
          order by arrived_at, id offset ${offset} limit ${limit}
        ) as found
        limit ${maxRows}
      ) as found
    ) as page`
}

interface ConversationQuery {
  readonly name: string
  /** Selects rows of `conversation_visibilities`, in the order in which the conversations are to be listed. */
  readonly rowsSql: string
  readonly values: readonly unknown[]
}

const visibilityAggregate = aggregateColumns({
  conversationId: numberColumn('conversation_id'),
  read: booleanColumn('unread = 0'),
})

const conversationAggregate = aggregateColumns({
  id: numberColumn('id'),
  createdAt: timeColumn('created_at'),
  guid: textColumn('guid'),
  subject: textColumn('subject'),
})

const participantAggregate = aggregateColumns<OwnedPerson>({
  ownerId: numberColumn('conversation_id'),
  personId: numberColumn('person_id'),
})

/** All in one row. */
interface FoundConversations {
  readonly visibilities: AggregatedColumns
  /** Conversations in any order. */
  readonly conversations: AggregatedColumns
  readonly participants: AggregatedColumns
  readonly people: AggregatedColumns
}

async function queryConversations(
  db: Knex,
  { name, rowsSql, values }: ConversationQuery,
): Promise<readonly ListedConversation[]> {
  const rows = await queryPreparedRow<FoundConversations>(db, name, () => conversationsSql(rowsSql), values)
  const { id: ids, guid, subject, createdAt } = conversationAggregate.decode(rows.conversations)
  const places = new Map(ids.map((id, index) => [id, index]))
  const participantsOf = groupPeopleByOwner(participantAggregate.decode(rows.participants), decodePeople(rows.people))
  const { conversationId, read } = visibilityAggregate.decode(rows.visibilities)
  return conversationId.flatMap((id, order) => {
    const place = places.get(id)
    if (place === undefined) return []
    return {
      id,
      guid: valueAt(guid, place),
      subject: valueAt(subject, place),
      createdAt: new Date(valueAt(createdAt, place)),
      read: valueAt(read, order),
      participants: participantsOf(id),
    }
  })
}

/** Returns one row: visibilities, conversations and participants as aggregated columns. Each table is scanned once for the whole page. */
function conversationsSql(rowsSql: string): string {
  return `
    select visibilities, conversations, participants, ${peopleSql('taking_part.person_ids')} as people
    from (
      select ${visibilityAggregate.select} as visibilities, array_agg(conversation_id) as ids from (${rowsSql}) as found
    ) as page
    cross join lateral (
      select ${conversationAggregate.select} as conversations from conversations where id = any(page.ids)
    ) as about
    cross join lateral (
      select ${participantAggregate.select} as participants, array_agg(person_id) as person_ids
      from (
        select conversation_id, person_id
        from conversation_visibilities where conversation_id = any(page.ids)
        order by conversation_id, person_id
      ) as participant
    ) as taking_part`
}
