import type { Knex } from 'knex'
import { newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import {
  type ConversationFilter,
  type ConversationMessageFilter,
  findListedConversation,
  type ListedConversation,
  type ListedConversationMessage,
  listConversationsOfPerson,
  listMessagesOfConversation,
} from '../../persistence/conversations/list-conversations.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Contact } from '../../persistence/models/contact.js'
import { Conversation, ConversationVisibility } from '../../persistence/models/conversation.js'
import { Person } from '../../persistence/models/person.js'
import { findNewestIdentities } from '../../persistence/people/move-person.js'
import type { Page } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { TEXT_LIMITS } from '../limits.js'
import { applyFilterEffects, requireUnfiltered } from '../moderation/filters/check-documents.js'
import { messageDocument } from '../moderation/filters/filter-document.js'
import { newGuid } from '../new-guid.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'
import { addConversationMessages } from './add-conversation-messages.js'
import { beginConversation } from './begin-conversation.js'

export interface NewConversation {
  readonly subject: string
  readonly text: string
  readonly recipientGuids: readonly string[]
}

/** Creates a conversation with a first message. Recipients must be mutual contacts of the viewer. */
export async function startConversation(
  services: Services,
  viewer: Viewer,
  input: NewConversation,
): Promise<ListedConversation> {
  const { subject, text } = input
  const fault = subject.trim() === '' ? 'is empty' : findTextFault(subject, TEXT_LIMITS.subjectCharacters)
  if (fault !== undefined) throw new Refusal('subject_invalid', `The subject ${fault}.`)
  requireText(text)

  const guid = newGuid()
  const messageGuid = newGuid()
  const matchedDocuments = await requireUnfiltered(services, viewer, (author) =>
    messageDocument({ guid: messageGuid, author }, [subject, text]),
  )
  const createdAt = services.now()
  await inRequestTransaction(services, async (transaction) => {
    const sender = await Person.query(transaction).findById(viewer.personId).throwIfNotFound()
    const recipients = await requireMutualContacts(transaction, viewer, input.recipientGuids)
    await beginConversation(services, transaction, sender, { guid, messageGuid, recipients, subject, text, createdAt })
    await applyFilterEffects(services, transaction, matchedDocuments)
  })
  return getConversation(services, viewer, guid)
}

/** Adds a message to a conversation that the viewer has not left. */
export async function createMessage(
  services: Services,
  viewer: Viewer,
  input: { readonly conversationGuid: string; readonly text: string },
): Promise<ListedConversationMessage> {
  const { conversationGuid, text } = input
  await getConversation(services, viewer, conversationGuid)
  requireText(text)

  const guid = newGuid()
  const matchedDocuments = await requireUnfiltered(services, viewer, (author) =>
    messageDocument({ guid, author }, [text]),
  )
  const createdAt = services.now()
  const {
    address,
    name,
    avatarUrl,
    guid: authorGuid,
  } = await Person.query(services.db).findById(viewer.personId).throwIfNotFound()
  await inRequestTransaction(services, async (transaction) => {
    const message = { guid, conversationGuid, author: address, text, createdAt, arrivedAt: createdAt }
    const dispatch = newDispatchJob(viewer.personId, { record: 'message', guid })
    const [written] = await addConversationMessages(services, transaction, [message], [dispatch])
    if (written === undefined) throw conversationNotFound()
    await applyFilterEffects(services, transaction, matchedDocuments)
  })
  return { guid, text, createdAt, author: { guid: authorGuid, address, name, avatarUrl } }
}

/** Lists conversations that the viewer has not left. */
export async function listConversations(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  filter: ConversationFilter,
): Promise<Page<ListedConversation>> {
  return listConversationsOfPerson(services.db, viewer.personId, filter)
}

/** Returns a conversation without marking it as read. */
export async function getConversation(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedConversation> {
  const conversation = await findListedConversation(services.db, viewer.personId, guid)
  if (conversation === undefined) throw conversationNotFound()
  return conversation
}

/** Lists the messages of a conversation, oldest first, without marking it as read. */
export async function listConversationMessages(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  conversationGuid: string,
  filter: ConversationMessageFilter,
): Promise<Page<ListedConversationMessage>> {
  const messages = await listMessagesOfConversation(services.db, viewer.personId, { ...filter, conversationGuid })
  // An empty page can mean that the conversation does not exist.
  if (messages.items.length === 0) await getConversation(services, viewer, conversationGuid)
  return messages
}

/** Marks a conversation as read or unread. */
export async function setConversationRead(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
  isRead: boolean,
): Promise<ListedConversation> {
  const rowCount = await queryOwnVisibility(services.db, viewer, guid).patch({ unread: isRead ? 0 : 1 })
  if (rowCount === 0) throw conversationNotFound()
  return getConversation(services, viewer, guid)
}

/** Removes the conversation for the viewer permanently. The last participant who leaves deletes it. */
export async function leaveConversation(
  services: Pick<Services, 'db' | 'requestContext'>,
  viewer: Viewer,
  guid: string,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    // Locked, so that of two participants who leave at the same time one is the last.
    const conversation = await Conversation.query(transaction).findOne({ guid }).forUpdate()
    const leftCount = conversation === undefined ? 0 : await queryOwnVisibility(transaction, viewer, guid).delete()
    if (conversation === undefined || leftCount === 0) throw conversationNotFound()
    const otherVisibility = await ConversationVisibility.query(transaction).findOne({ conversationId: conversation.id })
    if (otherVisibility === undefined) await conversation.$query(transaction).delete()
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
    throw new Refusal(
      'recipients_invalid',
      `A conversation must have 1 to ${TEXT_LIMITS.recipientsOfConversation} recipients.`,
    )
  }
  const people = await Person.query(transaction)
    .findByIds(await findNewestIds(transaction, guids))
    .whereNull('closedAt')
    .whereIn('id', Contact.query(transaction).select('personId').where({ userId, sharing: true, receiving: true }))
    .orderBy('id')
  // A recipient who is named twice is refused too.
  if (people.length === guids.length) return people
  throw new Refusal('recipients_invalid', 'Each recipient must be a mutual contact of yours, named once.')
}

/** Ids of the people with these guids; of people who have moved, those of the newest identities. */
async function findNewestIds(transaction: Knex.Transaction, guids: readonly string[]): Promise<number[]> {
  const named = await Person.query(transaction)
    .whereIn('guid', [...guids])
    .select('id', 'closedAt')
  const closed = named.filter(({ closedAt }) => closedAt !== null).map(({ id }) => id)
  const newest = await findNewestIdentities(transaction, closed)
  return named.map(({ id }) => newest.get(id) ?? id)
}

function requireText(text: string): void {
  const fault = text.trim() === '' ? 'is empty' : findTextFault(text)
  if (fault !== undefined) throw new Refusal('text_invalid', `The text ${fault}.`)
}

function conversationNotFound(): Refusal {
  return new Refusal('conversation_not_found', 'This conversation does not exist, or you have left it.')
}
