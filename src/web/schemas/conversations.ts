import { Type } from 'typebox'
import { PersonSummary, refTo, Timestamp } from './common.js'

const conversation = {
  guid: Type.String({ description: 'The same on every pod, and for ever.' }),
  subject: Type.String(),
  created_at: Timestamp,
  participants: Type.Array(refTo(PersonSummary), { description: 'Everybody who still has it, you included.' }),
}

export const Conversation = Type.Object(
  { ...conversation, read: Type.Boolean({ description: 'Whether there is nothing in it that is new to you.' }) },
  { $id: 'Conversation', description: 'A private conversation.' },
)

export const MarkedConversation = Type.Union([Type.Array(refTo(Conversation)), refTo(Conversation)], {
  description: 'A list with the conversation. In the dialect `diaspora` the conversation itself.',
})

export const StartedConversation = Type.Object(
  {
    ...conversation,
    read: Type.Optional(Type.Boolean({ description: 'Always true; only in the dialect `diaspora`.' })),
  },
  { $id: 'StartedConversation', description: 'A private conversation that has just begun.' },
)

export const Message = Type.Object(
  {
    guid: Type.String({ description: 'The same on every pod, and for ever.' }),
    created_at: Timestamp,
    body: Type.String({ description: 'Markdown.' }),
    author: refTo(PersonSummary),
  },
  { $id: 'Message', description: 'What somebody said in a conversation.' },
)
