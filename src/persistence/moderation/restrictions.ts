import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { changeContentOfPerson, recordContentChanges } from './blocked-author-content.js'
import { deactivateContacts, deleteLostContacts } from './user-notices.js'

export type RestrictionKind = 'silence' | 'block'

/** The source of a restriction: an action of a moderator, or a rule about the pod. */
export interface RestrictionSource {
  readonly source: 'action' | 'pod_rule'
  readonly id: number
}

export interface RestrictionChange {
  /** Contacts of users who share with people that are no longer blocked. The users' pods send them a contact message. */
  readonly resumed: readonly ResumedContact[]
  /** More content than one transaction changes: an operation does the rest. */
  readonly isContentLeft: boolean
}

const NO_CHANGE: RestrictionChange = { resumed: [], isContentLeft: false }

interface ResumedContact {
  readonly userId: number
  readonly ownPersonId: number
  readonly personId: number
}

/**
 * Restricts people for a source, in the transaction of the action. A block hides all their content and makes their contacts inactive.
 * A second call for the same source changes its kind. At most a few hundred people a call.
 */
export async function restrictPeople(
  transaction: Knex.Transaction,
  { source, id }: RestrictionSource,
  kind: RestrictionKind,
  personIds: readonly number[],
): Promise<RestrictionChange> {
  if (personIds.length === 0) return NO_CHANGE
  await transaction.raw(NEW_RESTRICTIONS_SQL, { source, sourceId: id, kind, personIds: [...personIds] })
  return applyRestrictions(transaction, personIds, source)
}

/** Ends the restrictions of a source for these people, or for all. Restrictions of other sources hold. */
export async function liftRestrictions(
  transaction: Knex.Transaction,
  { source, id }: RestrictionSource,
  personIds?: readonly number[],
): Promise<RestrictionChange> {
  const query = transaction('person_restrictions').where({ source, sourceId: id })
  if (personIds !== undefined) query.whereIn('personId', [...personIds])
  const liftedRestrictions: readonly { readonly personId: number }[] = await query.delete().returning('personId')
  return applyRestrictions(
    transaction,
    liftedRestrictions.map(({ personId }) => personId),
    source,
  )
}

/** People whom a source restricts, in the order of their ids. */
export async function findRestrictedPeople(
  db: Knex,
  { source, id }: RestrictionSource,
  limit: number,
): Promise<readonly number[]> {
  const rows: readonly { readonly personId: number }[] = await db('person_restrictions')
    .where({ source, sourceId: id })
    .orderBy('personId')
    .limit(limit)
    .select('personId')
  return rows.map(({ personId }) => personId)
}

export async function countRestrictedPeople(db: Knex, { source, id }: RestrictionSource): Promise<number> {
  const [countRow] = await db('person_restrictions').where({ source, sourceId: id }).count()
  return Number(countRow?.['count'] ?? 0)
}

/** Applies the restrictions that were moved to people together with content and contacts of others. */
export async function reapplyRestrictions(
  transaction: Knex.Transaction,
  personIds: readonly number[],
): Promise<RestrictionChange> {
  const people = await updateStrictest(transaction, personIds)
  return applyRestrictionEffects(transaction, {
    blocked: people.filter(({ isBlocked }) => isBlocked),
    unblocked: people.filter(({ isBlocked }) => !isBlocked),
    shouldNotifyUsers: false,
  })
}

async function applyRestrictions(
  transaction: Knex.Transaction,
  personIds: readonly number[],
  source: RestrictionSource['source'],
): Promise<RestrictionChange> {
  const people = await updateStrictest(transaction, personIds)
  return applyRestrictionEffects(transaction, {
    blocked: people.filter(({ wasBlocked, isBlocked }) => isBlocked && !wasBlocked),
    unblocked: people.filter(({ wasBlocked, isBlocked }) => wasBlocked && !isBlocked),
    shouldNotifyUsers: source === 'pod_rule',
  })
}

interface ChangedPerson {
  readonly id: number
  readonly wasBlocked: boolean
  readonly isBlocked: boolean
}

async function updateStrictest(
  transaction: Knex.Transaction,
  personIds: readonly number[],
): Promise<readonly ChangedPerson[]> {
  return queryRows<ChangedPerson>(transaction, STRICTEST_RESTRICTION_SQL, [[...personIds]])
}

/** Posts, comments and likes that are changed in the transaction of the restriction itself. */
const ROW_BATCH_SIZE = 1_000

interface ReactivatedContact extends ResumedContact {
  readonly receiving: boolean
}

async function applyRestrictionEffects(
  transaction: Knex.Transaction,
  people: {
    readonly blocked: readonly ChangedPerson[]
    readonly unblocked: readonly ChangedPerson[]
    /** The users who lose contacts get a notice. */
    readonly shouldNotifyUsers: boolean
  },
): Promise<RestrictionChange> {
  const blockedIds = people.blocked.map(({ id }) => id)
  const unblockedIds = people.unblocked.map(({ id }) => id)
  const changedIds = [...blockedIds, ...unblockedIds].toSorted((one, other) => one - other)
  await recordContentChanges(transaction, changedIds)
  let remainingRows = ROW_BATCH_SIZE
  for (const id of changedIds)
    if (remainingRows > 0) remainingRows -= await changeContentOfPerson(transaction, id, remainingRows)
  if (blockedIds.length > 0) await deactivateContacts(transaction, blockedIds, people)
  if (unblockedIds.length === 0) return { resumed: [], isContentLeft: remainingRows === 0 }
  await deleteLostContacts(transaction, unblockedIds)
  const reactivatedContacts = await queryRows<ReactivatedContact>(transaction, REACTIVATED_CONTACTS_SQL, [
    unblockedIds,
    unblockedIds,
  ])
  return {
    resumed: reactivatedContacts.filter(({ receiving }) => receiving),
    isContentLeft: remainingRows === 0,
  }
}

const NEW_RESTRICTIONS_SQL = `
  insert into person_restrictions (person_id, source, source_id, kind)
  select people.id, :source, :sourceId, :kind from people where people.id = any(:personIds)
  order by people.id
  on conflict (person_id, source, source_id) do update set kind = excluded.kind, created_at = excluded.created_at`

/** Locks the people in id order. 'block' is before 'silence' in the order of texts. */
const STRICTEST_RESTRICTION_SQL = `
  with locked as (
    select id, restriction from people where id = any(?) order by id for no key update
  ), updated as (
    update people set restriction = (
      select min(kind) from person_restrictions where person_restrictions.person_id = people.id
    )
    from locked where people.id = locked.id
    returning people.id, people.restriction
  )
  select
    updated.id, locked.restriction is not distinct from 'block' as "wasBlocked",
    updated.restriction is not distinct from 'block' as "isBlocked"
  from updated join locked using (id)`

/** A contact that has ended on both sides in the meantime is deleted. */
const REACTIVATED_CONTACTS_SQL = `
  with ended as (
    delete from contacts
    where person_id = any(?) and inactive_sharing is not null and not (inactive_sharing or inactive_receiving)
  ), active as (
    update contacts set
      sharing = inactive_sharing, receiving = inactive_receiving, inactive_sharing = null, inactive_receiving = null
    from users
    where users.id = contacts.user_id and contacts.inactive_sharing is not null
      and (contacts.inactive_sharing or contacts.inactive_receiving) and contacts.person_id = any(?)
    returning users.id as "userId", users.person_id as "ownPersonId", contacts.person_id as "personId", contacts.receiving
  )
  select * from active order by 1, 3`
