import type { Knex } from 'knex'
import { named, namedRow } from '../database/database.js'
import {
  type PersonOfOne,
  type PersonSummary,
  peopleOf,
  peopleOfEach,
  personAmong,
} from '../people/person-summaries.js'
import { columnForm, moment, number, text, truth, valueAt, type Written } from '../sql/column-lists.js'
import { type IndexPage, mostOf, openConditions, type Page, pageOf, seek, type TimePage } from '../sql/keyset-page.js'
import { opaqueParam } from '../sql/opaque-param.js'

export interface ConversationFilter extends TimePage {
  readonly onlyUnread?: boolean
  /** With a message that arrived later than this. */
  readonly onlyAfter?: Date
}

export interface MessageFilter extends IndexPage {
  /** Arrived later than this. */
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
export async function listConversationsOfPerson(
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
  return pageOf(await found(db, { name, which: page, values }), filter)
}

/** Undefined: there is none that this person still has. */
export async function findListedConversation(
  db: Knex,
  personId: number,
  guid: string,
): Promise<ListedConversation | undefined> {
  const one = `
    select conversation_visibilities.*
    from conversation_visibilities join conversations on conversations.id = conversation_id
    where person_id = $1 and conversations.guid = $2`
  const [conversation] = await found(db, { name: 'conversation', which: one, values: [personId, guid] })
  return conversation
}

/** In the order of arrival; nothing, where this person has no conversation of that name. */
export async function listMessagesOfConversation(
  db: Knex,
  personId: number,
  { conversationGuid, onlyAfter, ...page }: MessageFilter & { readonly conversationGuid: string },
): Promise<Page<ListedMessage>> {
  const values: unknown[] = [personId, conversationGuid, page.offset, page.limit + 1]
  if (onlyAfter !== undefined) values.push(onlyAfter)
  const later = onlyAfter === undefined ? '' : 'and arrived_at > $5'
  const name = onlyAfter === undefined ? 'messages' : 'messages changed-after'
  const most = mostOf(page)
  const all = await namedRow<FoundMessages>(db, `${name} ${most}`, () => messages(later, most), values)
  const { guid: guids, text, createdAt, authorId } = messageForm.read(all.messagesStatement)
  const person = personAmong(all.people)
  const queryConversations = guids.map((guid, place) => ({
    guid,
    text: valueAt(text, place),
    createdAt: new Date(valueAt(createdAt, place)),
    author: person(valueAt(authorId, place)),
  }))
  return pageOf(queryConversations, page)
}

/** A message where its conversation is not known from the question. */
export interface MessageInConversation extends ListedMessage {
  readonly id: number
  readonly conversationGuid: string
}

/** Those that are in conversations which this person still has, in no order that matters. */
export function listMessagesByIds(
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

const messageForm = columnForm({
  createdAt: moment('created_at'),
  authorId: number('author_id'),
  guid: text('guid'),
  text: text('text'),
})

/** All in one row, as that of the conversations. */
interface FoundMessages {
  readonly messagesStatement: Written
  readonly people: Written
}

function messages(later: string, most: number): string {
  const [offset, limit] = [opaqueParam('$3', 'bigint'), opaqueParam('$4', 'bigint')]
  return `
    select messages, ${peopleOf('author_ids')} as people
    from (
      select ${messageForm.select} as messages, array_agg(author_id) as author_ids
      from (
        select * from (
          select * from messages
          where conversation_id = (
            select conversation_id
            from conversation_visibilities join conversations on conversations.id = conversation_id
            where person_id = $1 and conversations.guid = $2
          ) ${later}
          order by arrived_at, id offset ${offset} limit ${limit}
        ) as found
        limit ${most}
      ) as found
    ) as page`
}

interface ConversationQuery {
  readonly name: string
  /** Selects rows of `conversation_visibilities`, in the order in which the conversations are to be listed. */
  readonly which: string
  readonly values: readonly unknown[]
}

const visibilityForm = columnForm({ conversationId: number('conversation_id'), read: truth('unread = 0') })

const conversationForm = columnForm({
  id: number('id'),
  createdAt: moment('created_at'),
  guid: text('guid'),
  subject: text('subject'),
})

const participantForm = columnForm<PersonOfOne>({ ownerId: number('conversation_id'), personId: number('person_id') })

/** All in one row. */
interface FoundConversations {
  readonly visibilities: Written
  /** In no order that matters. */
  readonly conversations: Written
  readonly participants: Written
  readonly people: Written
}

async function found(db: Knex, { name, which, values }: ConversationQuery): Promise<readonly ListedConversation[]> {
  const all = await namedRow<FoundConversations>(db, name, () => conversationsStatement(which), values)
  const { id: ids, guid, subject, createdAt } = conversationForm.read(all.conversations)
  const places = new Map(ids.map((id, place) => [id, place]))
  const participantsOf = peopleOfEach(participantForm.read(all.participants), personAmong(all.people))
  const { conversationId, read } = visibilityForm.read(all.visibilities)
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

/** Each table is searched once for all conversations. */
function conversationsStatement(which: string): string {
  return `
    select visibilities, conversations, participants, ${peopleOf('taking_part.person_ids')} as people
    from (
      select ${visibilityForm.select} as visibilities, array_agg(conversation_id) as ids from (${which}) as found
    ) as page
    cross join lateral (
      select ${conversationForm.select} as conversations from conversations where id = any(page.ids)
    ) as about
    cross join lateral (
      select ${participantForm.select} as participants, array_agg(person_id) as person_ids
      from (
        select conversation_id, person_id
        from conversation_visibilities where conversation_id = any(page.ids)
        order by conversation_id, person_id
      ) as participant
    ) as taking_part`
}
