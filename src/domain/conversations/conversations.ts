import type { Knex } from 'knex'
import { newDispatchJob } from '../../jobs/outbox/outbox.js'
import {
  type ConversationFilter,
  findListedConversation,
  type ListedConversation,
  type ListedMessage,
  listConversationsOfPerson,
  listMessagesOfConversation,
  type MessageFilter,
} from '../../persistence/conversations/list-conversations.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Contact } from '../../persistence/models/contact.js'
import { Conversation, ConversationVisibility } from '../../persistence/models/conversation.js'
import { Person } from '../../persistence/models/person.js'
import type { Page } from '../../persistence/sql/keyset-page.js'
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { TEXT_LIMITS } from '../limits.js'
import { requireUnfiltered } from '../moderation/filters/check-documents.js'
import { messageDocument } from '../moderation/filters/filter-document.js'
import { newGuid } from '../new-guid.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'
import { beginConversation } from './begin-conversation.js'
import { addMessages } from './messages.js'

type ConversationRefusal = 'subject_invalid' | 'text_invalid' | 'recipients_invalid' | 'conversation_not_found'

export interface NewConversation {
  readonly subject: string
  readonly text: string
  readonly recipientGuids: readonly string[]
}

/** Creates a conversation with a first message. Recipients must be mutual contacts of the viewer. */
export async function startConversation(pod: Pod, viewer: Viewer, input: NewConversation): Promise<ListedConversation> {
  const { subject, text } = input
  const fault = subject.trim() === '' ? 'is empty' : findTextFault(subject, TEXT_LIMITS.subjectCharacters)
  if (fault !== undefined) throw refusal('subject_invalid', `The subject ${fault}.`)
  requireText(text)

  const guid = newGuid()
  const messageGuid = newGuid()
  const checked = await requireUnfiltered(pod, viewer, (author) =>
    messageDocument({ guid: messageGuid, author }, [subject, text]),
  )
  const createdAt = pod.now()
  await inTransaction(pod, async (transaction) => {
    const sender = await Person.query(transaction).findById(viewer.personId).throwIfNotFound()
    const recipients = await requireMutualContacts(transaction, viewer, input.recipientGuids)
    await beginConversation(pod, transaction, sender, { guid, messageGuid, recipients, subject, text, createdAt })
    await checked.record(transaction)
  })
  return findConversation(pod, viewer, guid)
}

/** Adds a message to a conversation that the viewer has not left. */
export async function createMessage(
  pod: Pod,
  viewer: Viewer,
  input: { readonly conversationGuid: string; readonly text: string },
): Promise<ListedMessage> {
  const { conversationGuid, text } = input
  await findConversation(pod, viewer, conversationGuid)
  requireText(text)

  const guid = newGuid()
  const checked = await requireUnfiltered(pod, viewer, (author) => messageDocument({ guid, author }, [text]))
  const createdAt = pod.now()
  const {
    address,
    name,
    avatarUrl,
    guid: authorGuid,
  } = await Person.query(pod.db).findById(viewer.personId).throwIfNotFound()
  await inTransaction(pod, async (transaction) => {
    const message = { guid, conversationGuid, author: address, text, createdAt, arrivedAt: createdAt }
    const dispatch = newDispatchJob(viewer.personId, { record: 'message', guid })
    const [written] = await addMessages(pod, transaction, [message], [dispatch])
    if (written === undefined) throw conversationNotFound()
    await checked.record(transaction)
  })
  return { guid, text, createdAt, author: { guid: authorGuid, address, name, avatarUrl } }
}

/** Lists conversations that the viewer has not left. */
export async function listConversations(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  filter: ConversationFilter,
): Promise<Page<ListedConversation>> {
  return listConversationsOfPerson(pod.db, viewer.personId, filter)
}

/** Returns a conversation without marking it as read. */
export async function findConversation(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedConversation> {
  const conversation = await findListedConversation(pod.db, viewer.personId, guid)
  if (conversation === undefined) throw conversationNotFound()
  return conversation
}

/** Lists the messages of a conversation, oldest first, without marking it as read. */
export async function listMessages(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  conversationGuid: string,
  filter: MessageFilter,
): Promise<Page<ListedMessage>> {
  const messages = await listMessagesOfConversation(pod.db, viewer.personId, { ...filter, conversationGuid })
  // An empty page can mean that the conversation does not exist.
  if (messages.items.length === 0) await findConversation(pod, viewer, conversationGuid)
  return messages
}

/** Marks a conversation as read or unread. */
export async function setConversationRead(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  guid: string,
  isRead: boolean,
): Promise<ListedConversation> {
  const marked = await queryOwnVisibility(pod.db, viewer, guid).patch({ unread: isRead ? 0 : 1 })
  if (marked === 0) throw conversationNotFound()
  return findConversation(pod, viewer, guid)
}

/** Removes the conversation for the viewer permanently. The last participant who leaves deletes it. */
export async function leaveConversation(pod: Pick<Pod, 'db'>, viewer: Viewer, guid: string): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    // Locked, so that of two participants who leave at the same time one is the last.
    const conversation = await Conversation.query(transaction).findOne({ guid }).forUpdate()
    const left = conversation === undefined ? 0 : await queryOwnVisibility(transaction, viewer, guid).delete()
    if (conversation === undefined || left === 0) throw conversationNotFound()
    const others = await ConversationVisibility.query(transaction).findOne({ conversationId: conversation.id })
    if (others === undefined) await conversation.$query(transaction).delete()
  })
}

function queryOwnVisibility(db: Knex, { personId }: Viewer, guid: string) {
  return ConversationVisibility.query(db)
    .where({ personId })
    .whereIn('conversationId', Conversation.query(db).select('id').where({ guid }))
}

async function requireMutualContacts(
  transaction: Knex.Transaction,
  { userId }: Viewer,
  guids: readonly string[],
): Promise<readonly Person[]> {
  if (guids.length === 0 || guids.length > TEXT_LIMITS.recipientsOfConversation) {
    throw refusal('recipients_invalid', `A conversation has 1 to ${TEXT_LIMITS.recipientsOfConversation} recipients.`)
  }
  const people = await Person.query(transaction)
    .whereIn('guid', [...guids])
    .whereNull('closedAt')
    .whereIn('id', Contact.query(transaction).select('personId').where({ userId, sharing: true, receiving: true }))
    .orderBy('id')
  // A recipient who is named twice is refused too.
  if (people.length === guids.length) return people
  throw refusal('recipients_invalid', 'Each recipient must be a mutual contact of yours, named once.')
}

function requireText(text: string): void {
  const fault = text.trim() === '' ? 'is empty' : findTextFault(text)
  if (fault !== undefined) throw refusal('text_invalid', `The text ${fault}.`)
}

function conversationNotFound(): Refusal<ConversationRefusal> {
  return refusal('conversation_not_found', 'This conversation does not exist, or you have left it.')
}

function refusal(reason: ConversationRefusal, message: string): Refusal<ConversationRefusal> {
  return new Refusal(reason, message)
}
