import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { nullable } from './references.js'

export const InvitationSchema = Type.Object(
  {
    id: Type.Integer(),
    note: nullable(Type.String()),
    uses: Type.Integer({ description: 'Sign-ups that are possible in all.' }),
    used: Type.Integer(),
    accounts: Type.Array(Type.String(), { description: 'The usernames of those who came by it.' }),
    until: Timestamp,
    recalled_at: nullable(Timestamp),
    created_at: Timestamp,
    created_by: Type.String(),
  },
  { $id: 'Invitation', description: 'An invitation to sign up. Its link is not stored.' },
)
