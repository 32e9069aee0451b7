import type { Knex } from 'knex'
import type { RecordKind } from '../../protocol/entities/registry.js'
import { type SharingPair, startSharing } from '../contacts/contact-changes.js'
import { queryRow, queryRows } from '../database/database.js'
import { reapplyRestrictions } from '../moderation/restrictions.js'
import { destroyEntities } from '../posts/destroy-entities.js'
import { RECORD_TABLES } from '../sql/record-tables.js'
import { MOVE_LIMITS, type MoveLimits } from './limits.js'
import { moveInteractions, type PersonMove, postTimesSql } from './move-interactions.js'

/** The target of an account migration. */
export interface KnownMigration {
  readonly newPersonId: number
}

export async function findMigration(
  transaction: Knex.Transaction,
  oldPersonId: number,
): Promise<KnownMigration | undefined> {
  return transaction('accountMigrations').where({ oldPersonId }).first('newPersonId')
}

/** Follows account migrations to their end. A person who has not moved is their own newest identity. */
export async function findNewestIdentity(transaction: Knex.Transaction, personId: number): Promise<number> {
  const { id } = await queryRow<{ readonly id: number }>(transaction, NEWEST_IDENTITY_SQL, [personId])
  return id
}

/** Returns the newest identities of many people; people who have not moved are left out. */
export async function findNewestIdentities(
  db: Knex,
  personIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  if (personIds.length === 0) return new Map()
  const rows = await queryRows<{ readonly start: number; readonly id: number }>(
    db,
    `with recursive step(start, id, depth) as (
       select old_person_id, new_person_id, 1 from account_migrations where old_person_id = any(?)
       union
       select start, new_person_id, depth + 1 from step join account_migrations on old_person_id = step.id where depth < 100
     )
     select distinct on (start) start, id from step order by start, depth desc`,
    [[...personIds]],
  )
  return new Map(rows.map((row) => [row.start, row.id]))
}

/**
 * Moves everything that refers to one person to another. Rows that the other person also has, such as likes of a post, are deleted.
 * Returns false if interactions remain, because there are too many for one transaction: the caller enqueues a job that moves them.
 */
export async function movePersonRows(
  transaction: Knex.Transaction,
  move: PersonMove,
  limits: MoveLimits = MOVE_LIMITS,
): Promise<boolean> {
  const duplicates = await queryRows<{ readonly id: number }>(transaction, RESHARES_OF_BOTH_SQL, move)
  await destroyEntities(
    transaction,
    'post',
    duplicates.map(({ id }) => id),
  )
  for (const statement of moveReferences) await transaction.raw(statement, move)
  const isComplete = await moveInteractions(transaction, move, limits)
  for (const statement of refreshCopies) await transaction.raw(statement, move)
  // The result of this call needs no follow-up: `store-account-migrations.ts` sends all contacts to the new pod, and the job
  // `change-missed-content` continues with content that is left.
  await reapplyRestrictions(transaction, [move.to])
  // Last, because contacts of a blocked person become active again if the new person is not blocked.
  await startSharing(transaction, await queryRows<SharingPair>(transaction, LOCAL_SHARERS_SQL, [move.to]))
  return isComplete
}

/** Makes what a local person has written, liked or subscribed to appear in the person's own streams. */
export async function refreshStreamsOfPerson(transaction: Knex.Transaction, personId: number): Promise<void> {
  for (const statement of refreshCopies) await transaction.raw(statement, { to: personId })
}

/**
 * The photo files are on the new pod of their author; a trigger notes those of this pod, which stay for a while. Local photos that
 * moderators have hidden stay local, so that they stay hidden.
 */
export async function movePhotos(transaction: Knex.Transaction, authorId: number, remotePath: string): Promise<void> {
  await transaction('photos')
    .where({ authorId })
    .where((isShownOrRemote) => isShownOrRemote.whereNull('publicBeforeHiding').orWhereNotNull('remotePath'))
    .update({ remotePath })
  await transaction('prunedMovedPhotos').where({ authorId }).update({ remotePath })
}

/** Where the photos of a person are after the person's later moves; undefined: no later move has taken them along. */
export async function findLatestPhotoPath(
  transaction: Knex.Transaction,
  personId: number,
): Promise<string | undefined> {
  const [row] = await queryRows<{ readonly path: string }>(
    transaction,
    `with recursive step(id, path, depth) as (
       select ?::bigint, null::text, 0
       union
       select new_person_id, remote_photo_path, depth + 1
       from step join account_migrations on old_person_id = step.id where depth < 100
     )
     select path from step where path is not null order by depth desc limit 1`,
    [personId],
  )
  return row?.path
}

const NEWEST_IDENTITY_SQL = `
  with recursive step(id, depth) as (
    select ?::bigint, 0
    union
    select new_person_id, depth + 1 from step join account_migrations on old_person_id = step.id where depth < 100
  )
  select id from step order by depth desc limit 1`

const RESHARES_OF_BOTH_SQL = `
  select old.id from posts as old
  join posts as new on new.root_id = old.root_id and new.author_id = :to
  where old.author_id = :from and old.root_id is not null`

/** Local people who share with a local person: between two accounts of this pod no message says so. */
const LOCAL_SHARERS_SQL = `
  select moved.id as "userId", users.person_id as "personId"
  from users as moved
  join contacts on contacts.person_id = moved.person_id and contacts.receiving
  join users on users.id = contacts.user_id and users.id <> moved.id
  where moved.person_id = ?`

const USER_OF_NEW_SQL = `(select id from users where person_id = :to)`

/** Statements that move the records of a kind; in this order. `move-interactions.ts` moves the kinds without statements but polls. */
const MOVE_RECORDS_SQL: Readonly<Record<RecordKind, readonly string[]>> = {
  post: [setAuthorSql('post')],
  photo: [setAuthorSql('photo')],
  comment: [],
  like: [],
  poll_participation: [],
  participation: [
    // The counts of both are added.
    `with duplicates as (
       delete from participations as old using participations as new
       where old.author_id = :from and new.author_id = :to and new.post_id = old.post_id
       returning new.id, old.count
     )
     update participations set count = participations.count + duplicates.count from duplicates where participations.id = duplicates.id`,
    setAuthorSql('participation'),
  ],
  poll: [], // belongs to its post
  conversation: [setAuthorSql('conversation')],
  message: [setAuthorSql('message')],
}

function setAuthorSql(kind: RecordKind): string {
  return `update ${RECORD_TABLES[kind].table} set author_id = :to where author_id = :from`
}

const READ_COLUMNS = {
  hidden_post_visibilities: 'post_id',
  photo_visibilities: 'photo_id',
  hidden_photo_visibilities: 'photo_id',
} as const

function readByOldSql(table: 'post_visibilities' | keyof typeof READ_COLUMNS): string {
  return `from users as old join ${table} on ${table}.user_id = old.id join users as new on new.person_id = :to
   where old.person_id = :from`
}

const moveReferences: readonly string[] = [
  // A restriction by an action follows the person, that by a rule belongs to the pod. No local account is blocked.
  `insert into person_restrictions (person_id, source, source_id, kind)
   select new.id, source, source_id, case when new.pod_id is null then 'silence' else kind end
   from person_restrictions join people as new on new.id = :to
   where person_id = :from and source = 'action'
   on conflict do nothing`,
  ...Object.values(MOVE_RECORDS_SQL).flat(),
  'update pruned_moved_photos set author_id = :to where author_id = :from',

  `delete from mentions as old using mentions as new
   where old.person_id = :from and new.person_id = :to
     and (new.post_id = old.post_id or new.comment_id = old.comment_id)`,
  `update mentions set person_id = :to where person_id = :from`,

  `delete from conversation_visibilities as old using conversation_visibilities as new
   where old.person_id = :from and new.person_id = :to and new.conversation_id = old.conversation_id`,
  `update conversation_visibilities set person_id = :to where person_id = :from`,

  // A person is not their own contact, does not block themselves and gets no notifications about themselves.
  `delete from contacts where person_id = :from and user_id in ${USER_OF_NEW_SQL}`,
  `insert into aspect_memberships (aspect_id, contact_id)
   select membership.aspect_id, new.id
   from aspect_memberships as membership
   join contacts as old on old.id = membership.contact_id and old.person_id = :from
   join contacts as new on new.user_id = old.user_id and new.person_id = :to
   on conflict do nothing`,
  `with duplicates as (
     delete from contacts as old using contacts as new
     where old.person_id = :from and new.person_id = :to and new.user_id = old.user_id
     returning new.id, coalesce(old.inactive_sharing, old.sharing) as sharing, coalesce(old.inactive_receiving, old.receiving) as receiving
   )
   update contacts set
     sharing = coalesce(inactive_sharing, contacts.sharing) or duplicates.sharing, inactive_sharing = null,
     receiving = coalesce(inactive_receiving, contacts.receiving) or duplicates.receiving, inactive_receiving = null
   from duplicates where contacts.id = duplicates.id and (
     coalesce(inactive_sharing, contacts.sharing) or coalesce(inactive_receiving, contacts.receiving)
     or duplicates.sharing or duplicates.receiving
   )`,
  `update contacts set person_id = :to where person_id = :from`,
  `delete from claimed_followers as old using claimed_followers as new
   where old.person_id = :from and new.person_id = :to and new.user_id = old.user_id`,
  `update claimed_followers set person_id = :to where person_id = :from and user_id not in ${USER_OF_NEW_SQL}`,
  `delete from blocks where person_id = :from and user_id in ${USER_OF_NEW_SQL}`,
  `delete from blocks as old using blocks as new
   where old.person_id = :from and new.person_id = :to and new.user_id = old.user_id`,
  `update blocks set person_id = :to where person_id = :from`,

  `delete from notifications where person_id = :from and user_id in ${USER_OF_NEW_SQL}`,
  `delete from notifications as old using notifications as new
   where old.person_id = :from and new.person_id = :to and new.user_id = old.user_id and new.type = old.type
     and new.day is not distinct from old.day`,
  `update notifications set person_id = :to where person_id = :from`,

  `delete from tombstones as old using tombstones as new
   where old.deleted_by_id = :from and new.deleted_by_id = :to and new.target_type = old.target_type
     and new.guid = old.guid`,
  `update tombstones set deleted_by_id = :to where deleted_by_id = :from`,

  // Copies by which streams find posts.
  `update post_visibilities set author_id = :to
   from posts
   where posts.author_id = :to and posts.id = post_visibilities.post_id and post_visibilities.author_id = :from`,

  // What others have shared with an account of this pod that becomes another one of it.
  `insert into post_visibilities (user_id, post_id, author_id, created_at)
   select new.id, post_id, author_id, post_visibilities.created_at
   ${readByOldSql('post_visibilities')} and author_id <> :to on conflict do nothing`,
  ...(['hidden_post_visibilities', 'photo_visibilities', 'hidden_photo_visibilities'] as const).map(
    (table) =>
      `insert into ${table} (user_id, ${READ_COLUMNS[table]}) select new.id, ${READ_COLUMNS[table]}
       ${readByOldSql(table)} on conflict do nothing`,
  ),
]

/** Copies that local people have: by them streams find what the person wrote, liked or takes part in. */
const refreshCopies: readonly string[] = [
  ...(['likes', 'comments'] as const).map((table) => postTimesSql(table, `${table}.author_id = :to`)),
  `insert into activity_entries (user_id, post_id, interacted_at)
   select users.id, posts.id, posts.interacted_at
   from (
     select id from posts where author_id = :to union select post_id from participations where author_id = :to
   ) as own_posts
   join posts on posts.id = own_posts.id
   join users on users.person_id = :to
   on conflict do nothing`,
]
