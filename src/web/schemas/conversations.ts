import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { PersonSummary } from './people.js'
import { refTo } from './references.js'

const conversation = {
  guid: Type.String({ description: 'Identifies the object on every pod; never changes.' }),
  subject: Type.String(),
  created_at: Timestamp,
  participants: Type.Array(refTo(PersonSummary), {
    description: 'All people who still have the conversation, including you.',
  }),
}

export const Conversation = Type.Object(
  { ...conversation, read: Type.Boolean({ description: 'Whether you have read all messages.' }) },
  { $id: 'Conversation', description: 'A private conversation.' },
)

export const MarkedConversation = Type.Union([Type.Array(refTo(Conversation)), refTo(Conversation)], {
  description: 'A list with the conversation. In the dialect `diaspora` the conversation itself.',
})

export const StartedConversation = Type.Object(
  {
    ...conversation,
    read: Type.Optional(Type.Boolean({ description: 'Always true; present only in the API dialect `diaspora`.' })),
  },
  { $id: 'StartedConversation', description: 'A private conversation that you have just started.' },
)

export const Message = Type.Object(
  {
    guid: Type.String({ description: 'Identifies the object on every pod; never changes.' }),
    created_at: Timestamp,
    body: Type.String({ description: 'Markdown.' }),
    author: refTo(PersonSummary),
  },
  { $id: 'Message', description: 'A message of a conversation.' },
)
