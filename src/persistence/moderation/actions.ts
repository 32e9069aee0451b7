import type { Knex } from 'knex'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'
import { type AuditActor, type AuditValues, whereActorIs } from './audit-log.js'
import { type ExcludedAuthor, IS_NOT_ABOUT_AUTHOR_SQL } from './cases.js'

/** An action of a moderator, an admin, a command or the pod itself. */
export interface ActionRow {
  readonly id: number
  readonly kind: string
  readonly targetType: string
  readonly targetGuid: string
  readonly targetLabel: string
  readonly actor: AuditActor
  readonly reason: string
  readonly caseId: number | null
  readonly until: Date | null
  /** Data for the undo. */
  readonly details: AuditValues
  readonly canBeUndone: boolean
  /** The power that the action needed; its undo needs the same. */
  readonly power: 'moderation' | 'administration'
  readonly undoneById: number | null
  readonly createdAt: Date
}

export interface ActionFilter {
  readonly kind?: string | undefined
  /** A guid. */
  readonly target?: string | undefined
  readonly caseId?: number | undefined
  /** The user name, address or guid of a person, `command` or `system`. */
  readonly actor?: string | undefined
  readonly isInForce?: boolean | undefined
}

/** Lists actions, newest first. */
export async function listActions(
  db: Knex,
  { kind, target, caseId, actor, isInForce }: ActionFilter,
  excludedAuthorId: ExcludedAuthor,
  page: IdPage,
): Promise<ListPage<ActionRow>> {
  const query = db('moderation_actions')
  if (excludedAuthorId !== null) query.whereRaw(IS_NOT_ABOUT_AUTHOR_SQL, [excludedAuthorId])
  if (kind !== undefined) query.where({ kind })
  if (target !== undefined) query.where({ targetGuid: target })
  if (caseId !== undefined) query.where({ caseId })
  if (actor !== undefined) await whereActorIs(db, query, actor)
  if (isInForce !== undefined) query.whereRaw(`${isInForce ? '' : 'not '}(can_be_undone and undone_by_id is null)`)
  return readIdPage(query, page)
}

export async function hasAction(db: Knex, id: number): Promise<boolean> {
  return (await db('moderation_actions').where({ id }).first('id')) !== undefined
}

export async function lockAction(transaction: Knex.Transaction, id: number): Promise<ActionRow | undefined> {
  return transaction('moderation_actions').where({ id }).forUpdate().first()
}

/** Finds the action of a kind that is in force for a target. Unique index `moderation_actions_in_force`: one, except of restrictions. */
export async function findActionInForce(
  db: Knex,
  target: Pick<ActionRow, 'kind' | 'targetType' | 'targetGuid'>,
): Promise<ActionRow | undefined> {
  return db('moderation_actions')
    .where({ ...target, canBeUndone: true })
    .whereNull('undoneById')
    .first()
}

export async function findActionsInForce(
  db: Knex,
  target: Pick<ActionRow, 'targetType' | 'targetGuid'>,
  kinds: readonly string[],
): Promise<readonly ActionRow[]> {
  return db('moderation_actions')
    .where({ ...target, canBeUndone: true })
    .whereIn('kind', [...kinds])
    .whereNull('undoneById')
    .orderBy('id', 'desc')
}

/** Whether one of these actions in force lasts as long as a new one of the same kind would. */
export function isCoveredBy(actions: readonly Pick<ActionRow, 'until'>[], until: Date | undefined): boolean {
  return actions.some((action) => action.until === null || (until !== undefined && action.until >= until))
}

/** Finds actions in force that restrict a person, also those that came with the migration of another account. */
export async function findActionsRestricting(
  db: Knex,
  personGuid: string,
  kinds: readonly string[],
): Promise<readonly ActionRow[]> {
  return db('moderation_actions')
    .where({ canBeUndone: true })
    .whereIn('kind', [...kinds])
    .whereNull('undoneById')
    .whereRaw(
      `(target_type = 'person' and target_guid = ? or id in (
        select source_id from person_restrictions join people on people.id = person_id where guid = ? and source = 'action'
      ))`,
      [personGuid, personGuid],
    )
    .orderBy('id', 'desc')
}

/** Finds the last action of a kind on a target after another one. */
export async function findLaterAction(
  db: Knex,
  { id, targetType, targetGuid }: Pick<ActionRow, 'id' | 'targetType' | 'targetGuid'>,
  kinds: readonly string[],
): Promise<ActionRow | undefined> {
  return db('moderation_actions')
    .where({ targetType, targetGuid })
    .whereIn('kind', [...kinds])
    .where('id', '>', id)
    .whereNull('undoneById')
    .orderBy('id', 'desc')
    .first()
}

/** Adds tombstones to those that the undo of an action deletes. */
export async function addTombstonesToAction(
  transaction: Knex.Transaction,
  id: number,
  tombstones: readonly object[],
): Promise<void> {
  await transaction.raw(
    `update moderation_actions set details = jsonb_set(details, '{tombstones}', details->'tombstones' || cast(? as jsonb)) where id = ?`,
    [JSON.stringify(tombstones), id],
  )
}

/** Replaces members of the stored details of an action, for its work and its undo. */
export async function changeActionDetails(transaction: Knex.Transaction, id: number, changes: object): Promise<void> {
  await transaction.raw('update moderation_actions set details = details || cast(? as jsonb) where id = ?', [
    JSON.stringify(changes),
    id,
  ])
}

/** The closing of a person has ended: the action that began it is final. */
export async function endUndoOfClosing(transaction: Knex.Transaction, personGuid: string): Promise<void> {
  await transaction('moderation_actions')
    .where({ kind: 'close', targetType: 'person', targetGuid: personGuid, canBeUndone: true })
    .update({ canBeUndone: false })
}

export async function markNotUndoable(db: Knex, id: number): Promise<void> {
  await db('moderation_actions').where({ id }).update({ canBeUndone: false })
}

/** A later change has overtaken the actions of a kind that are in force for a target. */
export async function markActionsNotUndoable(
  transaction: Knex.Transaction,
  target: Pick<ActionRow, 'kind' | 'targetType' | 'targetGuid'>,
): Promise<void> {
  await transaction('moderation_actions').where(target).whereNull('undoneById').update({ canBeUndone: false })
}

/** Finds actions whose time is over. Index `moderation_actions_until`. */
export async function findEndedActions(db: Knex, now: Date, limit: number): Promise<readonly number[]> {
  return db('moderation_actions')
    .where('until', '<=', now)
    .where({ canBeUndone: true })
    .whereNull('undoneById')
    .orderBy('until')
    .limit(limit)
    .pluck('id')
}
