import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { nullable } from './references.js'

export const UserNoticeSchema = Type.Object(
  {
    id: Type.Integer(),
    kind: Type.Enum(['warning', 'content_hidden', 'content_removed', 'contacts_lost']),
    title: Type.String({ description: 'What happened, in one sentence.' }),
    text: Type.String({
      description: 'Of a warning what the moderators write, of lost contacts the host of their pod.',
    }),
    target: nullable(Type.Object({ type: Type.String(), guid: Type.String() })),
    contacts_lost: Type.Integer(),
    created_at: Timestamp,
    confirmed_at: nullable(Timestamp),
  },
  { $id: 'UserNotice', description: 'A notice of the moderators.' },
)
