import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { deleteCreations } from '../outbound/delete-messages.js'
import type { OutboundRecord } from '../outbound/outbound-record.js'
import { joinsToPost, KINDS_BELOW_POST, RECORD_TABLES } from '../sql/record-tables.js'

/** Rows under one post that are still deleted in the transaction of a retraction, and rows that one later transaction deletes. */
export const ROW_BATCH_SIZE = 1_000

/**
 * A deleted post or photo. A reshare is a reason for its author to participate in the root: `participatedPostId` is that root, and
 * `participantId` the author.
 */
interface DeletedRow {
  readonly record: 'post' | 'photo'
  readonly id: number
  readonly guid: string
  readonly participatedPostId: number | null
  readonly participantId: number | null
}

/**
 * Finds posts whose comments, likes, votes or participations are so numerous that deleting them would block other transactions. Each index is
 * read up to the limit only.
 */
export async function findLargePosts(
  transaction: Knex.Transaction,
  ids: readonly number[],
): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly id: number }>(transaction, LARGE_POSTS_SQL, [[...ids]])
  return rows.map(({ id }) => id)
}

/**
 * Hides posts: a soft-deleted post is not public, has no author and a new guid, so that no query shows it
 * and no message finds it. `purgeDeletedPosts` deletes it with everything below it.
 */
export async function softDeletePosts(
  transaction: Knex.Transaction,
  ids: readonly number[],
): Promise<readonly DeletedRow[]> {
  if (ids.length === 0) return []
  const rows = await queryRows<DeletedRow>(transaction, SOFT_DELETED_POSTS_SQL, [[...ids]])
  await transaction.raw(`update posts set root_id = null where root_id = any(?)`, [[...ids]])
  return rows
}

/** Deletes soft-deleted posts and everything below them, in transactions of bounded size. Returns the number of posts. */
export async function purgeDeletedPosts(db: Knex): Promise<number> {
  for (let purgedPosts = 0; ; ) {
    const ids: number[] = await db('posts').whereNull('authorId').orderBy('id').limit(ROW_BATCH_SIZE).pluck('id')
    if (ids.length === 0) return purgedPosts
    await purgeComments(db, ids)
    for (const [record, statement] of deleteBelow) await deleteInChunks(db, record, statement, ids)
    await db('posts').whereIn('id', ids).del()
    purgedPosts += ids.length
  }
}

/** Deletes the likes of a chunk of comments first: a comment may have any number, and they would be deleted in its transaction. */
async function purgeComments(db: Knex, postIds: readonly number[]): Promise<void> {
  for (;;) {
    const ids: number[] = await db('comments').whereIn('postId', postIds).limit(ROW_BATCH_SIZE).pluck('id')
    if (ids.length === 0) return
    await deleteInChunks(db, 'like', DELETED_LIKES_OF_COMMENTS_SQL, ids)
    await deleteInChunks(db, 'comment', DELETED_COMMENTS_SQL, ids)
  }
}

/** Runs a statement that deletes a limited number of rows until none are left. Undelivered messages that create these rows are deleted. */
async function deleteInChunks(
  db: Knex,
  record: OutboundRecord,
  statement: string,
  of: number | number[],
): Promise<void> {
  let deletedRows = ROW_BATCH_SIZE
  while (deletedRows === ROW_BATCH_SIZE) {
    deletedRows = await db.transaction(async (transaction) => {
      const rows = await queryRows<{ readonly guid: string }>(transaction, statement, [of, ROW_BATCH_SIZE])
      await deleteCreations(
        transaction,
        rows.map(({ guid }) => ({ record, guid })),
      )
      return rows.length
    })
  }
}

const DELETED_COMMENTS_SQL = `delete from comments where id = any(array(select unnest(?::bigint[]) limit ?)) returning guid`

const DELETED_LIKES_OF_COMMENTS_SQL = `
  delete from likes where id = any(array(select id from likes where comment_id = any(?) limit ?)) returning guid`

/**
 * Statements by the record name of deliveries. Photos are deleted with the soft deletion, comments and their likes before these. The
 * second way to likes leads through comments.
 */
const deleteBelow = KINDS_BELOW_POST.filter((kind) => kind !== 'photo' && kind !== 'comment').flatMap((kind) =>
  joinsToPost(kind)
    .slice(0, 1)
    .map(({ from, post }) => {
      const { table } = RECORD_TABLES[kind]
      const chunkSql = `select ${table}.id from ${from} where ${post} = any(?) limit ?`
      return [kind, `delete from ${table} where id = any(array(${chunkSql})) returning guid`] as const
    }),
)

/** The condition that a table has more rows than the limit. */
function hasManySql(from: string): string {
  return `(select count(*) from (select from ${from} limit ${ROW_BATCH_SIZE + 1}) as first_rows) > ${ROW_BATCH_SIZE}`
}

/** Photos do not count: a message has at most a hundred. */
const joinsToMany = KINDS_BELOW_POST.filter((kind) => kind !== 'photo').flatMap(joinsToPost)

const LARGE_POSTS_SQL = `
  select posts.id from posts
  where posts.id = any(?) and (${joinsToMany.map(({ from, post }) => hasManySql(`${from} where ${post} = posts.id`)).join(' or ')})`

const SOFT_DELETED_POSTS_SQL = `
  with locked as (
    select id, guid, author_id, root_id from posts where id = any(?) order by id for update
  ), hidden as (
    update posts set
      guid = 'deleted-post-' || lpad(posts.id::text, 12, '0'), author_id = null, public = false, type = 'StatusMessage',
      root_id = null, text = ''
    from locked where posts.id = locked.id
  ), deleted_polls as (
    update polls set guid = 'deleted-poll-' || lpad(polls.id::text, 12, '0') from locked where polls.post_id = locked.id
  ), deleted_photos as (
    delete from photos using locked where photos.post_id = locked.id
  ), deleted_notifications as (
    delete from notifications using locked where notifications.post_id = locked.id
  ), reported as (
    update reports set post_id = null from locked where reports.post_id = locked.id
  ), deleted_visibilities as (
    delete from post_visibilities using locked where post_visibilities.post_id = locked.id
  ), deleted_taggings as (
    delete from taggings using locked where taggings.post_id = locked.id
  ), reshared_roots as (
    select id from posts
    where id in (select root_id from locked) and id not in (select id from locked)
    order by id for no key update
  ), counted as (
    update posts set reshares_count = greatest(0, reshares_count - lost.count)
    from (select root_id, count(*) from locked join reshared_roots on reshared_roots.id = root_id group by root_id) as lost
    where posts.id = lost.root_id
  )
  select 'post' as record, locked.id, guid, reshared_roots.id as "participatedPostId", author_id as "participantId"
  from locked left join reshared_roots on reshared_roots.id = root_id
  union all
  select 'photo', photos.id, photos.guid, null, null from photos join locked on locked.id = photos.post_id`
