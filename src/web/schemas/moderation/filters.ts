import { Type } from 'typebox'
import {
  FILTER_ACTIONS,
  FILTER_FIELDS,
  FILTER_KINDS,
  FILTER_ORIGINS,
  FILTER_STATES,
} from '../../../persistence/moderation/filters.js'
import { Timestamp } from '../formats.js'
import { nullable } from '../references.js'

const Kind = Type.Enum([...FILTER_KINDS])
const Field = Type.Enum([...FILTER_FIELDS])
const Origin = Type.Enum([...FILTER_ORIGINS])
const Action = Type.Enum([...FILTER_ACTIONS])
const State = Type.Enum([...FILTER_STATES])

const AGE = 'Only people whom this pod has known for less than this number of days.'

/** The conditions of a filter, which have defaults. */
const conditions = {
  fields: Type.Optional(Type.Array(Field, { description: 'What is searched. Default: everything.', maxItems: 20 })),
  origin: Type.Optional(Origin),
  account_age_days: Type.Optional(
    Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 1, maximum: 3_650, description: AGE }),
  ),
  exempt_followed: Type.Optional(Type.Boolean({ description: 'Not people whom a local user follows. Default: true.' })),
  private: Type.Optional(
    Type.Boolean({ description: 'Private content too; no text of it is kept. Only admins. Default: false.' }),
  ),
  state: Type.Optional(State),
}

const ACTION = '`reject` is for admins.'

export const newFilterBody = {
  kind: Kind,
  value: Type.String({ description: 'Of a `pattern`: one word with `*` for any characters.' }),
  action: Type.Enum([...FILTER_ACTIONS], { description: ACTION }),
  ...conditions,
}

export const changedFilterBody = {
  kind: Type.Optional(Kind),
  value: Type.Optional(Type.String()),
  action: Type.Optional(Type.Enum([...FILTER_ACTIONS], { description: ACTION })),
  ...conditions,
}

const filterFields = {
  id: Type.Integer(),
  kind: Kind,
  value: Type.String({ description: 'In the form in which texts are compared.' }),
  fields: Type.Array(Field),
  origin: Origin,
  account_age_days: nullable(Type.Integer({ description: AGE })),
  exempt_followed: Type.Boolean(),
  private: Type.Boolean(),
  action: Action,
  state: State,
  hits_30_days: Type.Integer(),
  created_by: Type.String(),
  created_at: Timestamp,
  changed_at: Timestamp,
}

export const FilterSchema = Type.Object(filterFields, {
  $id: 'ModerationFilter',
  description: 'A filter, with its hits of the last 30 days.',
})

const hitFields = {
  type: Type.Enum(['post', 'comment', 'person', 'message']),
  guid: Type.String(),
  author: Type.String({ description: 'The address of the author.' }),
  field: Type.String(),
  text: nullable(Type.String({ description: 'The beginning of the text; null for private content.' })),
}

export const FilterDetailsSchema = Type.Object(
  {
    ...filterFields,
    days: Type.Array(Type.Object({ day: Type.String({ format: 'date' }), hits: Type.Integer() }), {
      description: 'Newest first, without days that have no hits.',
    }),
    latest: Type.Array(
      Type.Object({
        ...hitFields,
        at: Timestamp,
        effect: Type.Enum(['counted', 'flagged', 'hidden', 'rejected']),
      }),
      { description: 'The last 50 hits, newest first.' },
    ),
  },
  { $id: 'WholeModerationFilter', description: 'A filter with its hits.' },
)

export const DryRunSchema = Type.Object(
  {
    hits: Type.Integer(),
    authors: Type.Integer(),
    pods: Type.Integer(),
    followed: Type.Integer({ description: 'Authors whom a local user follows.' }),
    samples: Type.Array(Type.Object(hitFields)),
    scanned_from: Timestamp,
    complete: Type.Boolean({ description: 'False: the limit of rows or seconds was reached at `scanned_from`.' }),
  },
  { $id: 'FilterDryRun', description: 'What a filter would have hit.' },
)
