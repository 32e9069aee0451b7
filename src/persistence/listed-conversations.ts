import type { Knex } from 'knex'
import { named, namedList } from './database.js'
import type { Person } from './models/person.js'
import { type IndexPage, openConditions, orderOf, type Page, pageOf, seek, type TimePage } from './paged.js'

export interface ConversationFilter extends TimePage {
  readonly onlyUnread?: boolean
  /** With a message later than this. */
  readonly onlyAfter?: Date
}

export interface MessageFilter extends IndexPage {
  /** Written later than this. */
  readonly onlyAfter?: Date
}

type PersonSummary = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

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
  const found = `
    select * from conversation_visibilities where person_id = $1 ${conditions.join(' ')} ${part.condition} ${part.order}`
  const page = `select * from (${found}) as found limit ${part.most}`

  const name = ['conversations', ...names, part.name].join(' ')
  const text = shown(page, orderOf(filter) === 'newest first' ? 'desc' : 'asc')
  return pageOf(await namedList<ListedConversation>(db, name, text, { values, times: ['createdAt'] }), filter)
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
  const [conversation] = await named<ListedConversation>(db, 'conversation', shown(one, 'desc'), [personId, guid])
  return conversation
}

/** The oldest first. */
export async function listedMessages(
  db: Knex,
  conversationId: number,
  filter: MessageFilter,
): Promise<Page<ListedMessage>> {
  const { onlyAfter, offset, limit } = filter
  const later = onlyAfter === undefined ? '' : 'and messages.created_at > $4'
  const values = [conversationId, offset, limit + 1, ...(onlyAfter === undefined ? [] : [onlyAfter])]
  const found = await namedList<ListedMessage>(
    db,
    onlyAfter === undefined ? 'messages' : 'messages changed-after',
    `select messages.guid, messages.text, messages.created_at as "createdAt", ${summary} as author
     from messages join people on people.id = messages.author_id
     where conversation_id = $1 ${later}
     order by messages.created_at, messages.id offset $2 limit $3`,
    { values, times: ['createdAt'] },
  )
  return pageOf(found, filter)
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

function shown(page: string, order: 'asc' | 'desc'): string {
  return `
    select
      conversations.id, conversations.guid, conversations.subject, conversations.created_at as "createdAt",
      page.unread = 0 as read,
      (
        select json_agg(${summary} order by people.id)
        from conversation_visibilities as visible join people on people.id = visible.person_id
        where visible.conversation_id = page.conversation_id
      ) as participants
    from (${page}) as page
    join conversations on conversations.id = page.conversation_id
    order by page.created_at ${order}, page.conversation_id ${order}`
}
