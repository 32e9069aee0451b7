import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Tombstone } from '../../persistence/models/tombstone.js'
import { User } from '../../persistence/models/user.js'
import { readActionDetails } from '../../persistence/moderation/action-details.js'
import {
  type ActionFilter,
  type ActionRow,
  findActionsInForce,
  findActionsRestricting,
  findEndedActions,
  findLaterAction,
  hasAction,
  listActions,
  lockAction,
  markNotUndoable,
} from '../../persistence/moderation/actions.js'
import { showContentOfAction } from '../../persistence/moderation/hidden-content.js'
import { liftRestrictions } from '../../persistence/moderation/restrictions.js'
import type { IdPage, ListPage } from '../../persistence/sql/id-page.js'
import type { ModerationServices, Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { type Actor, requireActionOn, requirePower, SYSTEM_ACTOR } from './actor.js'
import { undoCleaning } from './clusters/clean-cluster.js'
import { undoDismissal } from './clusters/reopen-cluster.js'
import { reloadFilters } from './filters/active-filters.js'
import { followUpRestrictions } from './follow-up-restrictions.js'
import { SHOW_CONTENT, showContentInChunks } from './hide-content.js'
import { unlockUsers } from './lock-users.js'
import { undoClosing } from './people/close-person.js'
import { undoContentChange } from './people/content-of-person.js'
import {
  type ActionKind,
  type ActionOptions,
  type ActionOutcome,
  auditAction,
  insertAction,
  requireReason,
  runInOneTransaction,
} from './record-action.js'

/** Restores what an action changed. The action is locked and in force. */
type Undo = (services: ModerationServices, transaction: Knex.Transaction, action: ActionRow) => Promise<void>

/** The undo of each kind of action; undefined: the action is final. */
const UNDO_OF_KIND: Readonly<Record<ActionKind, Undo | undefined>> = {
  'cluster.clean': undoCleaning,
  'cluster.dismiss': undoDismissal,
  'filter.apply': undoHiding,
  hide: undoHiding,
  remove: undoRemoval,
  silence: undoRestriction,
  block: undoRestriction,
  lock: undoLock,
  close: undoClosing,
  hide_content: undoContentChange,
  remove_content: undoContentChange,
  purge: undefined,
  clear_profile: undefined,
  forget: undefined,
  warn: undefined,
  role: undefined,
  end_sessions: undefined,
  pod_rule: undefined,
  'pod_rule.delete': undefined,
  invitation: undefined,
  'invitation.change': undefined,
  'invitation.recall': undefined,
  'filter.add': undefined,
  'filter.change': undefined,
  'filter.remove': undefined,
  'mail_rule.add': undefined,
  'mail_rule.change': undefined,
  'mail_rule.remove': undefined,
  'ip_rule.add': undefined,
  'ip_rule.change': undefined,
  'ip_rule.remove': undefined,
}

/** False for undos, which cannot be undone. */
function isKindOfAction(kind: string): kind is ActionKind {
  return Object.hasOwn(UNDO_OF_KIND, kind)
}

/** Lists actions, newest first. Those on cases about the reader are left out. */
export async function listModerationActions(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  filter: ActionFilter,
  page: IdPage,
): Promise<ListPage<ActionRow>> {
  requirePower(actor, 'moderation')
  return listActions(db, filter, actor.personId, page)
}

export async function requireAction({ db }: Pick<Services, 'db'>, actor: Actor, id: number): Promise<void> {
  requirePower(actor, 'moderation')
  if (!(await hasAction(db, id))) throw actionNotFound()
}

/** Undoes an action with all its effects that no later action has changed. An action that was undone before stays as it is. */
export async function undoAction(
  services: ModerationServices,
  actor: Actor,
  id: number,
  options: ActionOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  const outcome = await inRequestTransaction(services, async (transaction): Promise<ActionOutcome> => {
    const action = await lockAction(transaction, id)
    if (action === undefined) throw actionNotFound()
    const reason = requireReason(options)
    if (action.undoneById !== null) return { changed: false }
    const { kind } = action
    const undo = action.canBeUndone && isKindOfAction(kind) ? UNDO_OF_KIND[kind] : undefined
    if (!isKindOfAction(kind) || undo === undefined) throw notUndoable(`An action of the kind ${kind} is final.`)
    await requireUndoOf(transaction, actor, action)
    const later = action.targetType === 'person' ? undefined : await findLaterAction(transaction, action, ['purge'])
    if (later !== undefined) throw notUndoable(`Action ${later.id} has deleted what this action changed.`, later.id)
    const { targetType: type, targetGuid: guid, targetLabel: label } = action
    const newAction = await insertAction(services, transaction, actor, {
      kind: `${kind}.undo`,
      target: { type, guid, label },
      reason,
      caseId: options.caseId ?? action.caseId ?? undefined,
      undo: { possible: false },
      undoes: action.id,
    })
    await undo(services, transaction, action)
    return { changed: true, action: await auditAction(services, transaction, newAction) }
  })
  if (outcome.changed) await reloadFilters(services) // cleaning a cluster adds a filter, which its undo removes
  return outcome
}

/** Undoes the actions of some kinds that are in force for a target: all of them, or none. */
export async function undoActionsOnTarget(
  services: ModerationServices,
  actor: Actor,
  { type, guid, kinds }: { readonly type: string; readonly guid: string; readonly kinds: readonly string[] },
  options: ActionOptions,
): Promise<{ readonly changed: boolean }> {
  const actions =
    type === 'person'
      ? await findActionsRestricting(services.db, guid, kinds)
      : await findActionsInForce(services.db, { targetType: type, targetGuid: guid }, kinds)
  let hasChanged = false
  await runInOneTransaction(services, [
    async (scoped) => {
      hasChanged = false
      for (const { id } of actions) hasChanged = (await undoAction(scoped, actor, id, options)).changed || hasChanged
    },
  ])
  return { changed: hasChanged }
}

const ENDED_ACTION_BATCH_SIZE = 100

/**
 * Undoes actions whose time is over, in the name of the pod. Returns how many. An action that a later one has overtaken, such as the
 * hiding of purged content, can no longer be undone; any other failure is repeated at the next run.
 */
export async function endTemporaryActions(services: ModerationServices): Promise<number> {
  const ids = await findEndedActions(services.db, services.now(), ENDED_ACTION_BATCH_SIZE)
  let endedActions = 0
  for (const id of ids) {
    try {
      const { changed } = await undoAction(services, SYSTEM_ACTOR, id, { reason: 'The time of the action is over.' })
      if (changed) endedActions += 1
    } catch (err) {
      if (err instanceof Refusal) await markNotUndoable(services.db, id)
      services.log.warn({ err, action: id }, 'temporary action not undone')
    }
  }
  return endedActions
}

/** The rights for the undo are those for the action. `details.userId` is the account that the action concerns. */
async function requireUndoOf(transaction: Knex.Transaction, actor: Actor, action: ActionRow): Promise<void> {
  requirePower(actor, action.power)
  const { userId } = action.details
  const user = typeof userId === 'number' ? await User.query(transaction).findById(userId) : undefined
  if (user !== undefined) requireActionOn(actor, user)
}

async function undoHiding(
  services: ModerationServices,
  transaction: Knex.Transaction,
  { id }: ActionRow,
): Promise<void> {
  await showContentInChunks(services, transaction, id, SHOW_CONTENT)
}

async function undoRestriction(
  services: ModerationServices,
  transaction: Knex.Transaction,
  { id }: ActionRow,
): Promise<void> {
  await followUpRestrictions(services, transaction, await liftRestrictions(transaction, { source: 'action', id }))
}

async function undoLock(
  _services: ModerationServices,
  transaction: Knex.Transaction,
  action: ActionRow,
): Promise<void> {
  const { userId, wasLocked = false } = readActionDetails(action, 'lock')
  if (!wasLocked) await unlockUsers(transaction, [userId])
}

async function undoRemoval(
  _services: ModerationServices,
  transaction: Knex.Transaction,
  action: ActionRow,
): Promise<void> {
  const { tombstones, caseId } = readActionDetails(action, 'remove')
  await Tombstone.takeBackPermanent(transaction, tombstones)
  if (caseId !== null) {
    await transaction('moderation_cases')
      .where({ id: caseId, targetDeleted: 'moderator' })
      .update({ targetDeleted: null })
  }
  await showContentOfAction(transaction, action.id)
}

function actionNotFound(): Refusal {
  return new Refusal('action_not_found', 'There is no action with this number.')
}

function notUndoable(message: string, actionId?: number): Refusal {
  return new Refusal('not_undoable', message, actionId === undefined ? {} : { details: { action_id: actionId } })
}
