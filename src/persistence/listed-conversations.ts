import type { Knex } from 'knex'
import { named } from './database.js'
import type { PersonSummary } from './listed-posts.js'
import {
  type IndexPage,
  mostOf,
  openConditions,
  orderOf,
  type Page,
  pageOf,
  seek,
  type TimePage,
  unseen,
} from './paged.js'
import { type PeopleOfPage, peopleOf, personAmong } from './people-of-page.js'

export interface ConversationFilter extends TimePage {
  readonly onlyUnread?: boolean
  /** With a message later than this. */
  readonly onlyAfter?: Date
}

export interface MessageFilter extends IndexPage {
  /** Written later than this. */
  readonly onlyAfter?: Date
}

/** What a client is shown of a conversation. */
export interface ListedConversation {
  readonly id: number
  readonly guid: string
  readonly subject: string
  readonly createdAt: Date
  readonly read: boolean
  /** Everybody who has it, the viewer included, in the order in which they became known here. */
  readonly participants: readonly PersonSummary[]
}

export interface ListedMessage {
  readonly guid: string
  readonly text: string
  readonly createdAt: Date
  readonly author: PersonSummary
}

/** The newest first, if the page names no place. */
export async function listedConversations(
  db: Knex,
  personId: number,
  filter: ConversationFilter,
): Promise<Page<ListedConversation>> {
  const { onlyUnread = false, onlyAfter } = filter
  const values: unknown[] = [personId]
  const { conditions, names, narrow } = openConditions(values)
  if (onlyUnread) narrow('unread', () => 'unread > 0')
  if (onlyAfter !== undefined) narrow('changed-after', (place) => `updated_at > ${place}`, onlyAfter)
  const part = seek(filter, values, { time: 'created_at', id: 'conversation_id' })
  const some = `
    select * from conversation_visibilities where person_id = $1 ${conditions.join(' ')} ${part.condition} ${part.order}`
  const page = `select * from (${some}) as found limit ${part.most}`

  const name = ['conversations', ...names, part.name].join(' ')
  const direction = orderOf(filter) === 'newest first' ? 'desc' : 'asc'
  const text = shown(page, `order by place ${direction}, id ${direction}`)
  return pageOf(await found(db, { name, text, values }), filter)
}

/** Undefined: there is none that this person still has. */
export async function listedConversation(
  db: Knex,
  personId: number,
  guid: string,
): Promise<ListedConversation | undefined> {
  const one = `
    select conversation_visibilities.*
    from conversation_visibilities join conversations on conversations.id = conversation_id
    where person_id = $1 and conversations.guid = $2`
  const [conversation] = await found(db, { name: 'conversation', text: shown(one), values: [personId, guid] })
  return conversation
}

/** The oldest first; nothing, where this person has no conversation of that name. */
export async function listedMessages(
  db: Knex,
  personId: number,
  { conversationGuid, onlyAfter, ...page }: MessageFilter & { readonly conversationGuid: string },
): Promise<Page<ListedMessage>> {
  const values: unknown[] = [personId, conversationGuid, page.offset, page.limit + 1]
  if (onlyAfter !== undefined) values.push(onlyAfter)
  const later = onlyAfter === undefined ? '' : 'and created_at > $5'
  const name = onlyAfter === undefined ? 'messages' : 'messages changed-after'
  const most = mostOf(page)
  const [all] = await named<FoundMessages>(db, `${name} ${most}`, messages(later, most), values)
  const person = personAmong(all?.people)
  const found = (all?.messages ?? []).map(({ guid, text, createdAt, authorId }) => ({
    guid,
    text,
    createdAt: new Date(createdAt),
    author: person(authorId),
  }))
  return pageOf(found, page)
}

/** A message where its conversation is not known from the question. */
export interface MessageInConversation extends ListedMessage {
  readonly id: number
  readonly conversationGuid: string
}

/** Those that are in conversations which this person still has, in no order that matters. */
export function listedMessagesOf(
  db: Knex,
  personId: number,
  ids: readonly number[],
): Promise<readonly MessageInConversation[]> {
  return named<MessageInConversation>(
    db,
    'messages-of-ids',
    `select
       messages.id, messages.guid, messages.text, messages.created_at as "createdAt", ${summary} as author,
       conversations.guid as "conversationGuid"
     from messages
     join people on people.id = messages.author_id
     join conversations on conversations.id = messages.conversation_id
     join conversation_visibilities as visible
       on visible.conversation_id = messages.conversation_id and visible.person_id = $1
     where messages.id = any($2::bigint[])`,
    [personId, ids],
  )
}

const summary = `
  json_build_object('guid', people.guid, 'address', people.address, 'name', people.name, 'avatarUrl', people.avatar_url)`

/** All in one row, as that of the conversations; null: there is nothing of the kind. */
interface FoundMessages {
  readonly messages:
    | readonly (Pick<ListedMessage, 'guid' | 'text'> & { readonly createdAt: string; readonly authorId: number })[]
    | null
  readonly people: PeopleOfPage
}

function messages(later: string, most: number): string {
  const [offset, limit] = [unseen('$3', 'bigint'), unseen('$4', 'bigint')]
  return `
    with page as materialized (
      select * from (
        select * from messages
        where conversation_id = (
          select conversation_id
          from conversation_visibilities join conversations on conversations.id = conversation_id
          where person_id = $1 and conversations.guid = $2
        ) ${later}
        order by created_at, id offset ${offset} limit ${limit}
      ) as found
      limit ${most}
    )
    select
      (
        select json_agg(message)
        from (
          select guid, text, created_at as "createdAt", author_id as "authorId" from page order by created_at, id
        ) as message
      ) as messages,
      ${peopleOf('select author_id from page')} as people`
}

interface ConversationQuery {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
}

interface FoundConversations {
  readonly conversations: readonly Row[] | null
  readonly people: PeopleOfPage
}

interface Row extends Omit<ListedConversation, 'createdAt' | 'participants'> {
  readonly createdAt: string
  readonly participantIds: readonly number[]
}

async function found(db: Knex, { name, text, values }: ConversationQuery): Promise<readonly ListedConversation[]> {
  const [all] = await named<FoundConversations>(db, name, text, values)
  const person = personAmong(all?.people)
  return (all?.conversations ?? []).map(({ id, guid, subject, createdAt, read, participantIds }) => ({
    id,
    guid,
    subject,
    createdAt: new Date(createdAt),
    read,
    participants: participantIds.map(person),
  }))
}

const participants = `array(
  select person_id from conversation_visibilities where conversation_id = conversations.id order by person_id
)`

function shown(which: string, order = ''): string {
  return `
    with page as materialized (
      select
        conversations.*, chosen.created_at as place, chosen.unread = 0 as read, ${participants} as participant_ids
      from (${which}) as chosen join conversations on conversations.id = chosen.conversation_id
    )
    select
      (
        select json_agg(conversation)
        from (
          select id, guid, subject, created_at as "createdAt", read, participant_ids as "participantIds"
          from page ${order}
        ) as conversation
      ) as conversations,
      ${peopleOf('select unnest(participant_ids) from page')} as people`
}
