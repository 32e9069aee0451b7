import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { isLockTimeout } from '../database/errors.js'
import { findLargePosts, softDeletePosts } from '../posts/delete-posts.js'
import { joinsToPost, KINDS_BELOW_POST, type KindBelowPost, RECORD_TABLES } from '../sql/record-tables.js'

export interface PostRetention {
  readonly days: number
  /** Whether posts with comments of remote people are removed, which cannot be fetched again from every pod. */
  readonly withComments: boolean
  /** Whether posts are removed that cannot be fetched again: private ones, and those of pods and authors that are gone. */
  readonly includeUnfetchable: boolean
}

/** Old remote posts of one chunk that stay for one reason, or null: that are deleted. */
interface PostGroup {
  readonly reason: string | null
  readonly rows: number
  readonly bytes: number
  readonly oldest: Date
}

export interface PostChunk {
  /** The last id that was read; null: there are no more posts. */
  readonly lastId: number | null
  readonly groups: readonly PostGroup[]
}

export async function findNewestPostId(db: Knex): Promise<number> {
  const { id } = await queryRow<{ readonly id: number }>(db, 'select coalesce(max(id), 0) as id from posts')
  return id
}

/** Reads the next posts by id, and groups the old remote ones by the reason for which they stay. Writes nothing. */
export async function previewPosts(
  db: Knex,
  retention: PostRetention,
  after: number,
  rows: number,
): Promise<PostChunk> {
  const { lastId, ids } = await findOldPosts(db, retention, after, rows)
  return { lastId, groups: groupPosts(await readReasons(db, retention, ids)) }
}

/**
 * Deletes the old remote posts among the next posts by id, unless a local user has touched them. The rows are locked before
 * their reasons are read, so that no interaction is added in the meantime; posts that others have locked are left for the next run.
 */
export async function prunePosts(db: Knex, retention: PostRetention, after: number, rows: number): Promise<PostChunk> {
  const { lastId, ids } = await findOldPosts(db, retention, after, rows)
  if (ids.length === 0) return { lastId, groups: [] }
  try {
    return await db.transaction(async (transaction) => {
      await transaction.raw(`set local lock_timeout = '2s'`)
      const lockedPosts = await queryRows<{ readonly id: number }>(
        transaction,
        'select id from posts where id = any(?) order by id for update skip locked',
        [[...ids]],
      )
      const posts = await readReasons(
        transaction,
        retention,
        lockedPosts.map(({ id }) => id),
      )
      const deletedIds = posts.filter(({ reason }) => reason === null).map(({ id }) => id)
      await transaction.raw(KEEP_PLACES_OF_PHOTOS_SQL, [deletedIds])
      const large = new Set(await findLargePosts(transaction, deletedIds))
      await softDeletePosts(transaction, [...large])
      const small = deletedIds.filter((id) => !large.has(id))
      await transaction.raw('delete from posts where id = any(?)', [small])
      return { lastId, groups: groupPosts(posts) }
    })
  } catch (error) {
    if (isLockTimeout(error)) return { lastId, groups: [] }
    throw error
  }
}

interface OldPost {
  readonly id: number
  readonly reason: string | null
  readonly bytes: number
  readonly createdAt: Date
}

function groupPosts(posts: readonly OldPost[]): readonly PostGroup[] {
  const groups = new Map<string | null, PostGroup>()
  for (const { reason, bytes, createdAt } of posts) {
    const { rows = 0, bytes: sum = 0, oldest = createdAt } = groups.get(reason) ?? {}
    groups.set(reason, {
      reason,
      rows: rows + 1,
      bytes: sum + bytes,
      oldest: oldest < createdAt ? oldest : createdAt,
    })
  }
  return [...groups.values()]
}

async function findOldPosts(
  db: Knex,
  { days }: PostRetention,
  after: number,
  rows: number,
): Promise<{ readonly lastId: number | null; readonly ids: readonly number[] }> {
  return queryRow<{ readonly lastId: number | null; readonly ids: readonly number[] }>(db, OLD_POSTS_SQL, {
    after,
    rows,
    days,
  })
}

async function readReasons(
  db: Knex,
  { withComments, includeUnfetchable }: PostRetention,
  ids: readonly number[],
): Promise<readonly OldPost[]> {
  if (ids.length === 0) return []
  return queryRows<OldPost>(db, REASONS_SQL, { ids, withComments, includeUnfetchable })
}

const isLocal = (person: string) => `exists (select from users where users.person_id = ${person})`

/** A chunk of the primary key, and those of its posts that are remote and old by every time. */
const OLD_POSTS_SQL = `
  with chunk as (
    select id, author_id, greatest(created_at, stored_at, interacted_at) as touched_at
    from posts where id > :after order by id limit :rows
  )
  select (select max(id) from chunk) as "lastId", array(
    select id from chunk
    where touched_at < now() - cast(:days as integer) * interval '1 day' and author_id is not null and not ${isLocal('author_id')}
  ) as ids`

/** The reason for which a record of a local person keeps the post above it. */
const REASON_BELOW: Readonly<Record<KindBelowPost, string | undefined>> = {
  photo: undefined, // its author is that of the post
  comment: 'commented',
  like: 'liked',
  poll_participation: 'voted',
  participation: 'participated',
}

const reasonsBelow = KINDS_BELOW_POST.flatMap((kind) => {
  const reason = REASON_BELOW[kind]
  const ways = joinsToPost(kind).map(
    ({ from, post }) =>
      `exists (select from ${from} where ${post} = posts.id and ${isLocal(RECORD_TABLES[kind].author)})`,
  )
  return reason === undefined ? [] : [`when ${ways.join(' or ')} then '${reason}'`]
})

/** Returns the first reason for which each post stays. Each exists() reads an index of the table by post, comment or person. */
const REASONS_SQL = `
  select posts.id, pg_column_size(posts.*) as bytes, posts.created_at as "createdAt", case
    when posts.public_before_hiding is not null or exists (
      select from comments join hidden_content on hidden_content.comment_id = comments.id where comments.post_id = posts.id
    ) then 'hidden_by_moderator'
    ${reasonsBelow.join('\n    ')}
    when exists (select from activity_entries where post_id = posts.id) then 'participated'
    when exists (
      select from mentions where post_id = posts.id and ${isLocal('mentions.person_id')}
    ) or exists (
      select from comments join mentions on mentions.comment_id = comments.id
      where comments.post_id = posts.id and ${isLocal('mentions.person_id')}
    ) then 'mentions_local_person'
    when exists (select from contacts where person_id = posts.author_id and receiving) then 'followed_author'
    when exists (
      select from taggings join tag_followings using (tag_id) where taggings.post_id = posts.id
    ) then 'followed_tag'
    when exists (select from reports where post_id = posts.id) or exists (
      select from comments join reports on reports.comment_id = comments.id where comments.post_id = posts.id
    ) then 'reported'
    when exists (select from notifications where post_id = posts.id) then 'notified'
    when exists (select from hidden_posts where post_id = posts.id)
      or exists (select from muted_posts where post_id = posts.id) then 'hidden_or_muted'
    when exists (select from posts as reshares where reshares.root_id = posts.id) then 'reshared'
    when exists (select from posts as roots where roots.id = posts.root_id and ${isLocal('roots.author_id')})
      then 'reshare_of_local_post'
    when exists (
      select from photos join moved_photo_files as moved on moved.photo_id = photos.id
      where photos.post_id = posts.id and moved.deleted_at is null
    ) then 'files_served'
    when not :includeUnfetchable and not posts.public then 'private'
    when not :includeUnfetchable and authors.closed_at is not null then 'author_closed'
    when not :includeUnfetchable and pods.offline_since < now() - interval '14 days' then 'pod_gone'
    when not :withComments and exists (select from comments where post_id = posts.id) then 'comments'
  end as reason
  from posts
  join people as authors on authors.id = posts.author_id
  left join pods on pods.id = authors.pod_id
  where posts.id = any(:ids)
  order by posts.id`

/** The old addresses of photos of authors who have moved away from this pod lead on without their rows. */
const KEEP_PLACES_OF_PHOTOS_SQL = `
  insert into pruned_moved_photos (name, author_id, remote_path, new_name)
  select moved.name, photos.author_id, photos.remote_path, photos.name
  from photos join moved_photo_files as moved on moved.photo_id = photos.id
  where photos.post_id = any(?) and photos.remote_path is not null
  order by moved.name
  on conflict (name) do update set
    author_id = excluded.author_id, remote_path = excluded.remote_path, new_name = excluded.new_name`
