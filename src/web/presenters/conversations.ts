import type { Static } from 'typebox'
import type {
  ListedConversation,
  ListedConversationMessage,
} from '../../persistence/conversations/list-conversations.js'
import type { DialectContext } from '../api/dialect.js'
import type { Conversation, MarkedConversation, Message, StartedConversation } from '../schemas/conversations.js'
import { presentPersonSummary } from './people.js'
import type { PodAddresses } from './picture-urls.js'

export function presentConversation(
  conversation: ListedConversation,
  addresses: PodAddresses,
): Static<typeof Conversation> {
  const { guid, subject, createdAt, read, participants } = conversation
  return {
    guid,
    subject,
    created_at: createdAt.toISOString(),
    read,
    participants: participants.map((person) => presentPersonSummary(person, addresses)),
  }
}

/** The response to a change of the read mark: a list with the conversation; in the dialect of diaspora*, the conversation itself. */
export function presentMarkedConversation(
  conversation: ListedConversation,
  { addresses, dialect }: DialectContext,
): Static<typeof MarkedConversation> {
  const presentedConversation = presentConversation(conversation, addresses)
  return dialect === 'diaspora' ? presentedConversation : [presentedConversation]
}

/** The response to the author of a new conversation. */
export function presentStartedConversation(
  conversation: ListedConversation,
  { addresses, dialect }: DialectContext,
): Static<typeof StartedConversation> {
  const { read, ...started } = presentConversation(conversation, addresses)
  return dialect === 'diaspora' ? { ...started, read } : started
}

export function presentMessage(
  { guid, createdAt, text, author }: ListedConversationMessage,
  addresses: PodAddresses,
): Static<typeof Message> {
  return {
    guid,
    created_at: createdAt.toISOString(),
    body: text,
    author: presentPersonSummary(author, addresses),
  }
}
