import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { nullable } from './references.js'

/** The fields of every action. */
export const actionBody = {
  reason: Type.Optional(Type.String({ description: 'Why, for the audit log: 1 to 2 000 characters. Required.' })),
  case_id: Type.Optional(Type.Integer({ description: 'The case that the action belongs to.' })),
}

/** The refusals of every action. */
export const actionRefusals = { reason_needed: 422, reason_invalid: 422, role_needed: 403 } as const

export const ActionSummary = Type.Object(
  {
    id: Type.Integer(),
    kind: Type.String(),
    undo: Type.Object({
      possible: Type.Boolean(),
      loses: Type.Optional(Type.String({ description: 'What an undo does not bring back.' })),
    }),
  },
  { description: 'The recorded action; absent if nothing changed.' },
)

export const Changed = Type.Boolean({
  description: 'False: the action was in force already, and nothing was recorded.',
})

const Values = Type.Unsafe<object | null>({ type: ['object', 'null'], additionalProperties: true })

export const AuditEntrySchema = Type.Object(
  {
    id: Type.Integer(),
    at: Timestamp,
    actor: Type.Object({
      guid: nullable(Type.String()),
      name: Type.String({ description: 'The user name, or `command` or `system`.' }),
      role: Type.String(),
    }),
    via: Type.Enum(['api', 'console', 'command', 'system']),
    client_id: nullable(Type.String()),
    action: Type.String(),
    target: Type.Object({
      type: Type.String(),
      guid: nullable(Type.String()),
      label: Type.String({ description: 'The name of the target at that time.' }),
    }),
    reason: nullable(Type.String()),
    before: Values,
    after: Values,
    case_id: nullable(Type.Integer()),
    batch_id: nullable(Type.Integer()),
    undoes: nullable(Type.Integer({ description: 'The action that this one undid.' })),
    trace_id: nullable(Type.String()),
    hash: Type.String({ description: 'SHA-256 of the hash before and of this entry, in hexadecimal digits.' }),
  },
  { $id: 'AuditEntry', description: 'An entry of the audit log.' },
)
