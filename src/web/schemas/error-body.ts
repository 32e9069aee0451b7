import { Type } from 'typebox'
import { ERROR_REASONS, type ErrorReason } from '../server/error-reasons.js'
import { refTo } from './references.js'

export const ErrorReasonName = Type.Enum(Object.keys(ERROR_REASONS) as ErrorReason[], {
  $id: 'ErrorReason',
  description:
    'What is wrong, for programs to compare. New reasons may be added; existing ones are never renamed or removed.',
})

export const ErrorBody = Type.Object(
  {
    code: Type.Integer({ description: 'The HTTP status.' }),
    message: Type.String({ description: 'For people to read. The wording may change at any time.' }),
    reason: refTo(ErrorReasonName),
    field: Type.Optional(
      Type.String({
        description: 'The field or parameter that is wrong, as `poll.question`; the first one of several.',
      }),
    ),
    fields: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 2,
        description: 'All fields or parameters that are wrong, if there are several.',
      }),
    ),
    preview: Type.Optional(
      Type.Unsafe<object>({ type: 'object', description: 'With `confirmation_needed`: what the action would change.' }),
    ),
    error: Type.Optional(Type.String({ description: 'With 401 and 429: the OAuth error code.' })),
    error_description: Type.Optional(Type.String({ description: 'With 401 and 429: the OAuth error in words.' })),
  },
  { $id: 'Error', description: 'The body of every error.' },
)
