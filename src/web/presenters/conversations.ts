import type { Static } from 'typebox'
import type { ListedConversation, ListedMessage } from '../../persistence/conversations/list-conversations.js'
import type { DialectContext } from '../api/dialect.js'
import type { Conversation, MarkedConversation, Message, StartedConversation } from '../schemas/conversations.js'
import { presentPersonSummary } from './people.js'

export function presentConversation(conversation: ListedConversation, podUrl: string): Static<typeof Conversation> {
  const { guid, subject, createdAt, read, participants } = conversation
  return {
    guid,
    subject,
    created_at: createdAt.toISOString(),
    read,
    participants: participants.map((person) => presentPersonSummary(person, podUrl)),
  }
}

/** The response to a change of the read mark: a list with the conversation; in the dialect of diaspora*, the conversation itself. */
export function presentMarkedConversation(
  conversation: ListedConversation,
  { url, dialect }: DialectContext,
): Static<typeof MarkedConversation> {
  const marked = presentConversation(conversation, url)
  return dialect === 'diaspora' ? marked : [marked]
}

/** The response to the author of a new conversation. */
export function presentStartedConversation(
  conversation: ListedConversation,
  { url, dialect }: DialectContext,
): Static<typeof StartedConversation> {
  const { read, ...started } = presentConversation(conversation, url)
  return dialect === 'diaspora' ? { ...started, read } : started
}

export function presentMessage(
  { guid, createdAt, text, author }: ListedMessage,
  podUrl: string,
): Static<typeof Message> {
  return {
    guid,
    created_at: createdAt.toISOString(),
    body: text,
    author: presentPersonSummary(author, podUrl),
  }
}
