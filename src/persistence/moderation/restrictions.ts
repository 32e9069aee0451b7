import type { Knex } from 'knex'
import { hideComments, hidePosts, showContentRows } from './hidden-content.js'

export type RestrictionKind = 'silence' | 'block'

/** What restricts people: an action of a moderator, or a rule about their pod. */
export interface RestrictionSource {
  readonly source: 'action' | 'pod_rule'
  readonly id: number
}

export interface RestrictionChange {
  /** Contacts of users who share with people that are no longer blocked. The users' pods send them a contact message. */
  readonly resumed: readonly ResumedContact[]
}

export interface ResumedContact {
  readonly userId: number
  readonly ownPersonId: number
  readonly personId: number
}

/**
 * Restricts people for a source, in the transaction of the action. A block hides all their content and makes their contacts inactive.
 * A second call for the same source changes its kind. At most a few hundred people a call: the content of each is hidden at once.
 */
export async function restrictPeople(
  transaction: Knex.Transaction,
  { source, id }: RestrictionSource,
  kind: RestrictionKind,
  personIds: readonly number[],
): Promise<RestrictionChange> {
  if (personIds.length === 0) return { resumed: [] }
  await transaction.raw(insertRestrictions, { source, sourceId: id, kind, personIds: [...personIds] })
  return applyRestrictions(transaction, personIds)
}

/** Ends the restrictions of a source for these people, or for all. Restrictions of other sources hold. */
export async function liftRestrictions(
  transaction: Knex.Transaction,
  { source, id }: RestrictionSource,
  personIds?: readonly number[],
): Promise<RestrictionChange> {
  const query = transaction('person_restrictions').where({ source, sourceId: id })
  if (personIds !== undefined) query.whereIn('personId', [...personIds])
  const lifted: readonly { readonly personId: number }[] = await query.delete().returning('personId')
  return applyRestrictions(
    transaction,
    lifted.map(({ personId }) => personId),
  )
}

interface ChangedPerson {
  readonly id: number
  readonly wasBlocked: boolean
  readonly isBlocked: boolean
}

async function applyRestrictions(
  transaction: Knex.Transaction,
  personIds: readonly number[],
): Promise<RestrictionChange> {
  const { rows }: { rows: readonly ChangedPerson[] } = await transaction.raw(updateStrictest, [[...personIds]])
  const blocked = rows.filter(({ wasBlocked, isBlocked }) => isBlocked && !wasBlocked).map(({ id }) => id)
  const unblocked = rows.filter(({ wasBlocked, isBlocked }) => wasBlocked && !isBlocked).map(({ id }) => id)
  if (blocked.length > 0) {
    await hidePosts(transaction, await idsOfAuthors(transaction, 'posts', blocked))
    await hideComments(transaction, await idsOfAuthors(transaction, 'comments', blocked))
    await transaction.raw(deactivateContacts, [blocked])
  }
  if (unblocked.length === 0) return { resumed: [] }
  await showContentRows(transaction, {
    postIds: await idsOfAuthors(transaction, 'posts', unblocked),
    commentIds: await idsOfAuthors(transaction, 'comments', unblocked),
  })
  const { rows: resumed } = await transaction.raw(reactivateContacts, [unblocked, unblocked])
  return { resumed: resumed.filter(({ receiving }: { receiving: boolean }) => receiving) }
}

async function idsOfAuthors(
  transaction: Knex.Transaction,
  table: 'posts' | 'comments',
  authorIds: readonly number[],
): Promise<readonly number[]> {
  return transaction(table)
    .whereIn('authorId', [...authorIds])
    .orderBy('id')
    .pluck('id')
}

const insertRestrictions = `
  insert into person_restrictions (person_id, source, source_id, kind)
  select people.id, :source, :sourceId, :kind from people where people.id = any(:personIds)
  order by people.id
  on conflict (person_id, source, source_id) do update set kind = excluded.kind`

/** Locks the people in id order. 'block' is before 'silence' in the order of texts. */
const updateStrictest = `
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

const deactivateContacts = `
  update contacts set
    inactive_sharing = sharing, inactive_receiving = receiving, sharing = false, receiving = false
  where person_id = any(?) and inactive_sharing is null`

/** A contact that has ended on both sides meanwhile is deleted. */
const reactivateContacts = `
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
