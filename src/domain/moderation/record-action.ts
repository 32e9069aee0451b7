import type { Knex } from 'knex'
import { inRequestTransaction, runAfterCommit } from '../../persistence/database/transactions.js'
import { type AuditTarget, type AuditValues, appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import { addCaseWork, findCase } from '../../persistence/moderation/cases.js'
import { isWithinLength } from '../../protocol/values.js'
import { type ModerationServices, type Services, withTransaction } from '../../services/services.js'
import type { Power } from '../accounts/role-powers.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'
import type { Actor } from './actor.js'
import { MODERATION_LIMITS } from './limits.js'

/** The kinds of actions. `actions.ts` says whether and how each is undone. */
export type ActionKind =
  | 'hide'
  | 'remove'
  | 'purge'
  | 'silence'
  | 'block'
  | 'lock'
  | 'close'
  | 'hide_content'
  | 'remove_content'
  | 'clear_profile'
  | 'forget'
  | 'warn'
  | 'role'
  | 'end_sessions'
  | 'pod_rule'
  | 'pod_rule.delete'
  | 'cluster.clean'
  | 'cluster.dismiss'
  | 'filter.apply'
  | 'invitation'
  | 'invitation.change'
  | 'invitation.recall'
  | `${'filter' | 'mail_rule' | 'ip_rule'}.${'add' | 'change' | 'remove'}`

/** The parameters of every action. */
export interface ActionOptions {
  readonly reason?: string | undefined
  readonly caseId?: number | undefined
  /** The action is undone at this time. */
  readonly until?: Date | undefined
}

/** The result of every action. `action` is undefined if nothing changed. */
export interface ActionOutcome {
  readonly changed: boolean
  readonly action?: RecordedAction
}

export interface RecordedAction {
  readonly id: number
  readonly kind: string
  readonly undo: UndoOffer
}

interface UndoOffer {
  readonly possible: boolean
  /** The end of the possibility. */
  readonly until?: string
  /** Data that the undo does not restore. */
  readonly loses?: string
}

export interface NewAction {
  readonly kind: ActionKind | `${ActionKind}.undo`
  readonly target: AuditTarget & { readonly guid: string }
  readonly reason: string
  readonly undo: UndoOffer
  /** The power that this action needs, and its undo. Default: moderation. */
  readonly power?: Power
  readonly before?: AuditValues
  readonly after?: AuditValues
  /** Data for the undo. */
  readonly details?: AuditValues
  readonly caseId?: number | undefined
  readonly until?: Date | undefined
  /** The action that this one undoes. */
  readonly undoes?: number
}

/** An action without its entries in the history of its case and in the audit log. */
interface InsertedAction {
  readonly id: number
  readonly createdAt: Date
  readonly actor: Actor
  readonly action: NewAction
}

/** Returns the trimmed reason. Every action needs one. */
export function requireReason(options: ActionOptions): string {
  const reason = readReason(options)
  if (reason === undefined) throw new Refusal('reason_needed', 'This action needs a reason.')
  return reason
}

/** The trimmed reason; undefined without one. */
export function readReason({ reason = '' }: ActionOptions): string | undefined {
  const text = reason.trim()
  if (text === '') return undefined
  const isTooLong = !isWithinLength(text, MODERATION_LIMITS.reasonCharacters)
  if (isTooLong || findTextFault(text) !== undefined) {
    throw new Refusal('reason_invalid', `A reason must have at most ${MODERATION_LIMITS.reasonCharacters} characters.`)
  }
  return text
}

/** Refuses the end of an action or a rule that is over already. */
export function requireFutureEnd({ now }: Pick<Services, 'now'>, until: Date | null | undefined): void {
  if (until instanceof Date && until <= now()) throw new Refusal('until_invalid', 'The end must be in the future.')
}

/**
 * Stores an action with its entries in the history of its case and in the audit log, in the transaction of the action. Call it last: it
 * takes the lock of the audit log. An effect that needs the id of the action stands between `insertAction` and `auditAction`.
 */
export async function recordAction(
  services: Pick<Services, 'log' | 'now'>,
  transaction: Knex.Transaction,
  actor: Actor,
  action: NewAction,
): Promise<RecordedAction> {
  return auditAction(services, transaction, await insertAction(services, transaction, actor, action))
}

/** Inserts an action. The caller then changes what it is about, and calls `auditAction`. */
export async function insertAction(
  services: Pick<Services, 'now'>,
  transaction: Knex.Transaction,
  actor: Actor,
  action: NewAction,
): Promise<InsertedAction> {
  const { kind, target, reason, undo, power = 'moderation', details = {}, caseId, until, undoes } = action
  const createdAt = services.now()
  if (caseId !== undefined) await requireCase(transaction, actor, caseId)
  const [row]: readonly { readonly id: number }[] = await transaction('moderation_actions')
    .insert({
      kind,
      targetType: target.type,
      targetGuid: target.guid,
      targetLabel: target.label,
      actor: JSON.stringify(auditActor(actor)),
      reason,
      caseId: caseId ?? null,
      details: JSON.stringify(details),
      until: until ?? null,
      canBeUndone: undo.possible,
      power,
      createdAt,
    })
    .returning('id')
  if (row === undefined) throw new Error('A moderation action was inserted and not returned.')
  if (undoes !== undefined) await transaction('moderation_actions').where({ id: undoes }).update({ undoneById: row.id })
  return { id: row.id, createdAt, actor, action }
}

/** Adds an inserted action to the history of its case and to the audit log. Call it last: it takes the lock of the audit log. */
export async function auditAction(
  services: Pick<Services, 'log'>,
  transaction: Knex.Transaction,
  { id, createdAt, actor, action }: InsertedAction,
): Promise<RecordedAction> {
  const { kind, target, reason, undo, before, after, caseId, undoes } = action
  if (caseId !== undefined) {
    const event = undoes === undefined ? 'action' : 'undone'
    await addCaseWork(transaction, { caseId, event, actorId: actor.userId, text: reason, actionId: id, at: createdAt })
  }
  const entry = { action: kind, target, reason, before, after, caseId, undoes }
  await appendAuditEntry(transaction, { ...entry, ...auditContext(actor) }, createdAt)
  runAfterCommit(transaction, () => services.log.info({ action: id, kind }, 'moderation action'))
  return { id, kind, undo }
}

async function requireCase(transaction: Knex.Transaction, { personId }: Actor, caseId: number): Promise<void> {
  const moderationCase = await findCase(transaction, caseId, personId)
  if (moderationCase === undefined) throw new Refusal('case_not_found', 'There is no case with this number.')
}

/** Runs several use cases in one transaction: if one of them refuses, none has an effect. */
export function runInOneTransaction(
  services: ModerationServices,
  useCases: readonly ((services: ModerationServices) => Promise<unknown>)[],
): Promise<void> {
  return inRequestTransaction(services, async (transaction) => {
    for (const run of useCases) await run(withTransaction(services, transaction))
  })
}

/** The fields of an audit entry that are about the actor. */
export function auditContext(actor: Actor) {
  const { via, clientId, traceId } = actor
  return { actor: auditActor(actor), via, clientId, traceId }
}

function auditActor({ guid, name, role }: Actor) {
  return { guid, name, role }
}
