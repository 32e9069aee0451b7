import { type Static, Type } from 'typebox'
import { Timestamp } from '../formats.js'
import type { PersonSummary } from '../people.js'
import { nullable, refTo } from '../references.js'
import { Count } from './counts.js'

/** Moderation state of a post or a comment, for its author. */
export const Moderation = Type.Object(
  { hidden: Type.Boolean(), text: Type.String() },
  { description: 'Present if a moderator has hidden this: only you can see it.' },
)

/** The fields of every action. */
export const actionBody = {
  reason: Type.Optional(Type.String({ description: 'Why, for the audit log: 1 to 2 000 characters. Required.' })),
  case_id: Type.Optional(
    Type.Integer({ maximum: Number.MAX_SAFE_INTEGER, description: 'The case that the action belongs to.' }),
  ),
}

const deletionReason = Type.Object({ reason: actionBody.reason })

/** A deletion takes its reason from the query or the body: some clients and proxies drop the body of a DELETE. */
export const deletionFields = { querystring: deletionReason, body: deletionReason }

export function readDeletionReason(request: {
  readonly query: Static<typeof deletionReason>
  readonly body: Static<typeof deletionReason>
}): Static<typeof deletionReason> {
  const reason = request.query.reason ?? request.body.reason
  return reason === undefined ? {} : { reason }
}

/** A field of actions on content. */
export const silent = Type.Optional(Type.Boolean({ description: 'A local author gets no notice.' }))

/** The end of a temporary action. */
export const until = Type.Optional(
  Type.String({ description: 'The pod undoes the action at this time. Without it the action has no end.' }),
)

/** The refusals of every action. */
export const actionRefusals = {
  reason_needed: 422,
  reason_invalid: 422,
  role_needed: 403,
  case_not_found: 404,
} as const

/** The refusals of actions on people and their content. */
export const targetRefusals = { own_account: 422, target_outranks: 403 } as const

/** The refusals of actions that the account of the podmin is exempt from. */
export const podminRefusal = { podmin_account: 409 } as const

export const ActionSummary = Type.Object(
  {
    id: Type.Integer(),
    kind: Type.String(),
    undo: Type.Object({
      possible: Type.Boolean(),
      until: Type.Optional({ ...Timestamp, description: 'The undo is possible until then.' }),
      loses: Type.Optional(Type.String({ description: 'What an undo does not bring back.' })),
    }),
  },
  { description: 'The recorded action; absent if nothing changed.' },
)

export const Changed = Type.Boolean({
  description: 'False: the action was in force already, and nothing was recorded.',
})

/** The response to an action. */
export const actionResponse = { action: Type.Optional(ActionSummary), changed: Changed }

/** Fields of content without its text: reading the text of private content is recorded. */
const contentFields = {
  type: Type.Enum(['post', 'comment']),
  guid: Type.String(),
  author: Type.Unsafe<Static<typeof PersonSummary>>({ $ref: 'PersonSummary#' }),
  public: Type.Boolean({ description: 'Whether it is public, or was before it was hidden.' }),
  created_at: Timestamp,
  hidden: Type.Boolean(),
  post: Type.String({ description: 'The guid of the post; of a comment, that of its post.' }),
  case_id: nullable(Type.Integer()),
}

export const ContentSchema = Type.Object(
  { ...contentFields, text: Type.String() },
  { $id: 'ModeratedContent', description: 'A post or a comment for moderators.' },
)

/** The response to an action on content. Deleted content has no further fields. */
export const contentResponse = { ...actionResponse, ...Type.Partial(Type.Object(contentFields)).properties }

const personRecord = {
  guid: Type.String(),
  network_id: Type.String(),
  diaspora_id: Type.String(),
  name: Type.String(),
  avatar: Type.String(),
  local: Type.Boolean(),
  state: Type.Enum(['open', 'silenced', 'blocked', 'locked', 'closing', 'closed']),
  role: Type.String(),
  first_seen_at: Timestamp,
  reports_muted: Type.Boolean(),
  restrictions: Type.Array(
    Type.Object({
      action_id: nullable(Type.Integer({ description: 'The action to undo; null for a rule about the pod.' })),
      kind: Type.Enum(['silence', 'block', 'lock', 'close']),
      by: Type.Enum(['person', 'pod_rule']),
      until: nullable(Timestamp),
    }),
    { description: 'All restrictions in force. The strictest holds.' },
  ),
}

export const ListedPersonSchema = Type.Object(personRecord, {
  $id: 'ModeratedPerson',
  description: 'A person for moderators.',
})

/** The answer to an action on a person. */
export const personResponse = { ...actionResponse, ...personRecord }

export const PersonDetailsSchema = Type.Object(
  {
    ...personRecord,
    counts: Type.Object(
      {
        people: Count,
        local_followers: Count,
        contacts: Count,
        posts: Count,
        comments: Count,
        deliveries_waiting: Count,
      },
      { description: 'Local followers are users who share with the person.' },
    ),
    last_active_at: nullable(Timestamp),
    email: nullable(Type.String({ description: 'Of a local account; also before it is confirmed.' })),
    email_confirmed: Type.Boolean(),
    ips: Type.Array(
      Type.Object({ ip: Type.String(), used_for: Type.Enum(['sign_up', 'sign_in']), at: nullable(Timestamp) }),
      { description: 'Of the sign-up and the last sign-in. After 30 days the network (/24 or /48) is left.' },
    ),
    invited_by: nullable(Type.Integer({ description: 'The number of the invitation.' })),
    followed_here: Type.Integer({ description: 'Local users who follow the person.' }),
    warnings: Type.Integer(),
    notes: Type.Array(
      Type.Object({
        at: Timestamp,
        actor: Type.Object({ guid: nullable(Type.String()), name: Type.String(), role: Type.String() }),
        text: Type.String(),
      }),
      {
        description: 'The last 50 notes of moderators, the latest first. Moderators do not see notes about themselves.',
      },
    ),
  },
  { $id: 'WholeModeratedPerson', description: 'A person for moderators, with counts.' },
)

export const ActionSchema = Type.Object(
  {
    id: Type.Integer(),
    kind: Type.String(),
    target: Type.Object({ type: Type.String(), guid: Type.String(), label: Type.String() }),
    actor: Type.Object({ guid: nullable(Type.String()), name: Type.String(), role: Type.String() }),
    reason: Type.String(),
    case_id: nullable(Type.Integer()),
    until: nullable(Timestamp),
    created_at: Timestamp,
    undone_by: nullable(Type.Integer({ description: 'The action that has undone this one.' })),
    undo: Type.Object({ possible: Type.Boolean() }),
  },
  { $id: 'ModerationAction', description: 'An action of a moderator, an admin, a command or the pod itself.' },
)

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

const caseTarget = {
  type: Type.Enum(['post', 'comment', 'person', 'message', 'cluster']),
  guid: Type.String(),
  author: Type.Unsafe<Static<typeof PersonSummary> | null>({ anyOf: [{ $ref: 'PersonSummary#' }, { type: 'null' }] }),
  public: Type.Boolean(),
  url: nullable(Type.String({ description: 'The page of the target; null for private content.' })),
  created_at: nullable(Timestamp),
  hidden: Type.Boolean({
    description: 'A post or comment that is stored, and shown to its author and moderators only.',
  }),
  deleted: nullable(
    Type.String({ description: 'By whom it was deleted: `author`, `moderator`, `account_closed` or `purge`.' }),
  ),
  parent: nullable(
    Type.String({ description: 'The guid of the post of a comment, or the conversation of a message.' }),
  ),
  photos: Type.Array(Type.String()),
}

const caseFields = {
  id: Type.Integer(),
  state: Type.Enum(['open', 'taken', 'resolved', 'dismissed']),
  kind: Type.Enum(['report', 'filter', 'cluster']),
  report_count: Type.Integer(),
  reporter_count: Type.Integer({ description: 'Without users whose reports are muted.' }),
  ignore_further: Type.Boolean({ description: 'Later reports are only counted.' }),
  taken_by: nullable(Type.String({ description: 'A user name.' })),
  taken_at: nullable(Timestamp),
  first_reported_at: Timestamp,
  last_reported_at: Timestamp,
  actions: Type.Array(
    Type.Object({
      id: Type.Integer(),
      kind: Type.String(),
      reason: Type.String(),
      created_at: Timestamp,
      undone: Type.Boolean(),
      undo: Type.Object({ possible: Type.Boolean() }),
    }),
    { description: 'The actions that name the case, oldest first.' },
  ),
}

export const ListedCaseSchema = Type.Object(
  { ...caseFields, target: Type.Object(caseTarget) },
  { $id: 'ModerationCase', description: 'All reports of one thing, in short.' },
)

export const CaseReportSchema = Type.Object(
  {
    id: Type.Integer(),
    reporter: Type.Object({ guid: Type.String(), username: Type.String() }),
    reason: Type.String(),
    created_at: Timestamp,
  },
  { $id: 'CaseReport', description: 'A report of a user.' },
)

export const CaseEventSchema = Type.Object(
  {
    at: Timestamp,
    actor: nullable(Type.String({ description: 'A user name; null: the pod itself or a command.' })),
    event: Type.String(),
    text: nullable(Type.String()),
    action_id: nullable(Type.Integer()),
  },
  { $id: 'CaseEvent', description: 'A step of a case.' },
)

export const CaseDetailsSchema = Type.Object(
  {
    ...caseFields,
    target: Type.Object({
      ...caseTarget,
      text: nullable(Type.String({ description: 'The text when it was reported; null once it is erased.' })),
    }),
    reports: Type.Array(refTo(CaseReportSchema), {
      description: 'The newest 100, oldest first. `GET /cases/{id}/reports` lists all.',
    }),
    history: Type.Array(refTo(CaseEventSchema), {
      description: 'The newest 100, oldest first. `GET /cases/{id}/history` lists all.',
    }),
  },
  { $id: 'WholeModerationCase', description: 'All reports of one thing, with its text and the history.' },
)

export const OwnReportSchema = Type.Object(
  {
    target: Type.Object({ type: caseTarget.type, guid: Type.String() }),
    created_at: Timestamp,
    state: Type.Enum(['open', 'closed']),
  },
  { $id: 'OwnReport', description: 'A report that you have made.' },
)
