import { Conversation, ConversationMessage } from '../../persistence/models/conversation.js'
import type { ConversationEntity, MessageEntity } from '../../protocol/entities/conversations.js'
import type { Services } from '../../services/services.js'

/** A conversation with its first message; later messages are sent on their own. Undefined: it is deleted. */
export async function conversationEntity(
  { db }: Pick<Services, 'db'>,
  guid: string,
): Promise<ConversationEntity | undefined> {
  const conversation = await Conversation.query(db)
    .findOne({ guid })
    .withGraphFetched('[author, participants]')
    .modifyGraph('participants', (people) => people.orderBy('people.id'))
  if (conversation?.author === undefined) return undefined
  const { address: author } = conversation.author
  const [first] = await ConversationMessage.query(db)
    .where({ conversationId: conversation.id, authorId: conversation.authorId })
    .orderBy(['createdAt', 'id'])
    .limit(1)
  const participants = (conversation.participants ?? []).map(({ address }) => address)
  return {
    type: 'conversation',
    author,
    guid,
    subject: conversation.subject,
    created_at: conversation.createdAt,
    participants: [...new Set([author, ...participants])],
    messages: first === undefined ? [] : [messageEntityOf(first, { author, conversation: guid })],
  }
}

/** A later message of a conversation; undefined: it is deleted. */
export async function messageEntity({ db }: Pick<Services, 'db'>, guid: string): Promise<MessageEntity | undefined> {
  const message = await ConversationMessage.query(db)
    .findOne({ 'messages.guid': guid })
    .joinRelated('author')
    .join('conversations', 'conversations.id', 'messages.conversationId')
    .select('messages.*', 'author.address as sender', 'conversations.guid as conversation')
    .castTo<(ConversationMessage & { readonly sender: string; readonly conversation: string }) | undefined>()
  return message && messageEntityOf(message, { author: message.sender, conversation: message.conversation })
}

function messageEntityOf(
  { guid, text, createdAt }: ConversationMessage,
  { author, conversation }: { readonly author: string; readonly conversation: string },
): MessageEntity {
  return { type: 'message', author, guid, text, created_at: createdAt, conversation_guid: conversation }
}
