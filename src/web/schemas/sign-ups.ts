import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { nullable } from './references.js'

export const SignUpSchema = Type.Object(
  {
    id: Type.Integer(),
    username: nullable(Type.String()),
    email: nullable(Type.String()),
    email_confirmed: Type.Boolean(),
    language: Type.String(),
    reason: nullable(Type.String({ description: 'Why the person requests an account.' })),
    invitation_id: nullable(Type.Integer()),
    network: nullable(Type.String({ description: 'The /24 or /48 of the network address.' })),
    rules: Type.Array(Type.String(), { description: 'The rules that apply, like `mail_rule 3`.' }),
    others_of_network: Type.Integer({ description: 'Other waiting sign-ups from this network.' }),
    created_at: Timestamp,
    expires_at: Timestamp,
  },
  { $id: 'SignUp', description: 'A sign-up that waits for a decision. No person exists yet.' },
)
