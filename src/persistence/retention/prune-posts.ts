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
  /** Days for which read notifications are kept, and posts because of them; 0: forever. */
  readonly notificationDays: number
}

/** The posts of one step, the newest first: a reshare is removed before its root. */
interface PostRange {
  /** Posts with lower ids. */
  readonly before: number
  /** Posts that are read. */
  readonly rows: number
  /** Maximum number of removed posts. */
  readonly limit: number
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
export async function previewPosts(db: Knex, retention: PostRetention, range: PostRange): Promise<PostChunk> {
  const { lastId, ids } = await findOldPosts(db, retention, range)
  return chunkOf(await readReasons(db, retention, ids, { isPreview: true }), range, lastId)
}

/**
 * Deletes the old remote posts among the next posts by id, unless a local user has touched them. The rows are locked before
 * their reasons are read, so that no interaction is added in the meantime; posts that others have locked are left for the next run.
 */
export async function prunePosts(db: Knex, retention: PostRetention, range: PostRange): Promise<PostChunk> {
  const { lastId, ids } = await findOldPosts(db, retention, range)
  if (ids.length === 0) return { lastId, groups: [] }
  try {
    return await db.transaction(async (transaction) => {
      await transaction.raw(`set local lock_timeout = '2s'`)
      const lockedPosts = await queryRows<{ readonly id: number }>(
        transaction,
        'select id from posts where id = any(?) order by id for update skip locked',
        [[...ids]],
      )
      const lockedIds = lockedPosts.map(({ id }) => id)
      const posts = upToLimit(await readReasons(transaction, retention, lockedIds, { isPreview: false }), range.limit)
      const deletedIds = posts.filter(({ reason }) => reason === null).map(({ id }) => id)
      await transaction.raw(KEEP_PLACES_OF_PHOTOS_SQL, [deletedIds])
      const large = new Set(await findLargePosts(transaction, deletedIds))
      // As for a small reshare, the root keeps its counter.
      await transaction.raw('update posts set root_id = null where id = any(?)', [[...large]])
      await softDeletePosts(transaction, [...large])
      const small = deletedIds.filter((id) => !large.has(id))
      await transaction.raw('delete from posts where id = any(?)', [small])
      return chunkOf(posts, range, lastId)
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

/** The posts up to the last one that may be deleted. */
function upToLimit(posts: readonly OldPost[], limit: number): readonly OldPost[] {
  const deleted = posts.filter(({ reason }) => reason === null)
  const last = deleted[limit - 1]
  return last === undefined ? posts : posts.slice(0, posts.indexOf(last) + 1)
}

function chunkOf(posts: readonly OldPost[], { limit }: PostRange, lastId: number | null): PostChunk {
  return { lastId, groups: groupPosts(upToLimit(posts, limit)) }
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
  { before, rows }: PostRange,
): Promise<{ readonly lastId: number | null; readonly ids: readonly number[] }> {
  return queryRow<{ readonly lastId: number | null; readonly ids: readonly number[] }>(db, OLD_POSTS_SQL, {
    before,
    rows,
    days,
  })
}

async function readReasons(
  db: Knex,
  { days, withComments, includeUnfetchable, notificationDays }: PostRetention,
  ids: readonly number[],
  { isPreview }: { readonly isPreview: boolean },
): Promise<readonly OldPost[]> {
  if (ids.length === 0) return []
  const bindings = { ids, days, withComments, includeUnfetchable, notificationDays, isPreview }
  return queryRows<OldPost>(db, REASONS_SQL, bindings)
}

const isLocal = (person: string) => `exists (select from users where users.person_id = ${person})`

/** The condition that a post is remote, and old by the times in its row: of writing, arrival and the last comment. */
const isOldAndRemoteSql = (post: string) =>
  `greatest(${post}.created_at, ${post}.stored_at, ${post}.interacted_at) < now() - cast(:days as integer) * interval '1 day'
    and ${post}.author_id is not null and not ${isLocal(`${post}.author_id`)}`

/** A chunk of the primary key, and those of its posts that are remote and old. */
const OLD_POSTS_SQL = `
  with chunk as (
    select id, author_id, created_at, stored_at, interacted_at
    from posts where id < :before order by id desc limit :rows
  )
  select (select min(id) from chunk) as "lastId", array(select id from chunk where ${isOldAndRemoteSql('chunk')}) as ids`

const hasCaseSql = (type: 'post' | 'comment', guid: string) =>
  `exists (select from moderation_cases where target_type = '${type}' and target_guid = ${guid})`

/** The reason for which a record of a local person keeps the post above it. */
const REASON_BELOW: Readonly<Record<KindBelowPost, string | undefined>> = {
  photo: undefined, // its author is that of the post
  comment: 'commented',
  like: 'liked',
  poll_participation: 'voted',
  participation: 'participated',
}

function reasonsBelowSql(post: string): string {
  return KINDS_BELOW_POST.flatMap((kind) => {
    const reason = REASON_BELOW[kind]
    const ways = joinsToPost(kind).map(
      ({ from, post: postId }) =>
        `exists (select from ${from} where ${postId} = ${post}.id and ${isLocal(RECORD_TABLES[kind].author)})`,
    )
    return reason === undefined ? [] : [`when ${ways.join(' or ')} then '${reason}'`]
  }).join('\n    ')
}

/** Interactions that do not change the time in the row of the post. A reshare within the limit stays, and keeps its root. */
const INTERACTIONS = ['like', 'poll_participation', 'participation'] as const satisfies readonly KindBelowPost[]

function isInteractedWithSql(post: string): string {
  const ways = INTERACTIONS.flatMap((kind) =>
    joinsToPost(kind).map(
      ({ from, post: postId }) =>
        `exists (
      select from ${from} where ${postId} = ${post}.id
        and ${RECORD_TABLES[kind].table}.created_at >= now() - cast(:days as integer) * interval '1 day'
    )`,
    ),
  )
  return ways.join(' or ')
}

/**
 * The first reason for which a post stays, apart from its reshares. Takes the aliases of its tables. Each exists() reads an index of
 * the table by post, comment or person. A picture without a remote path is a file of this pod, also if its author has moved away
 * without photos: its row is deleted with the post, and its files with the row.
 */
const ownReasonsSql = (post: string, author: string, pod: string) => `
    when ${post}.public_before_hiding is not null or exists (
      select from comments join hidden_content on hidden_content.comment_id = comments.id where comments.post_id = ${post}.id
    ) then 'hidden_by_moderator'
    ${reasonsBelowSql(post)}
    when exists (select from activity_entries where post_id = ${post}.id) then 'participated'
    when exists (
      select from mentions where post_id = ${post}.id and ${isLocal('mentions.person_id')}
    ) or exists (
      select from comments join mentions on mentions.comment_id = comments.id
      where comments.post_id = ${post}.id and ${isLocal('mentions.person_id')}
    ) then 'mentions_local_person'
    when exists (select from contacts where person_id = ${post}.author_id and receiving) then 'followed_author'
    when exists (
      select from taggings join tag_followings using (tag_id) where taggings.post_id = ${post}.id
    ) then 'followed_tag'
    when ${hasCaseSql('post', `${post}.guid`)} or exists (
      select from comments where comments.post_id = ${post}.id and ${hasCaseSql('comment', 'comments.guid')}
    ) then 'reported'
    when exists (
      select from notifications
      where post_id = ${post}.id and (
        not read or cast(:notificationDays as integer) = 0
        or updated_at >= now() - cast(:notificationDays as integer) * interval '1 day'
      )
    ) then 'notified'
    when exists (select from hidden_posts where post_id = ${post}.id)
      or exists (select from muted_posts where post_id = ${post}.id) then 'hidden_or_muted'
    when exists (select from posts as roots where roots.id = ${post}.root_id and ${isLocal('roots.author_id')})
      then 'reshare_of_local_post'
    when exists (
      select from photos join moved_photo_files as moved on moved.photo_id = photos.id
      where photos.post_id = ${post}.id and moved.deleted_at is null
    ) then 'files_served'
    when exists (
      select from photos where photos.post_id = ${post}.id and photos.remote_path is null
    ) then 'only_copy_of_pictures'
    when not :includeUnfetchable and not ${post}.public then 'private'
    when not :includeUnfetchable and ${author}.closed_at is not null then 'author_closed'
    when not :includeUnfetchable and ${pod}.offline_since < now() - interval '14 days' then 'pod_gone'
    when not :withComments and exists (select from comments where post_id = ${post}.id) then 'comments'
    when ${isInteractedWithSql(post)} then 'interaction_within_limit'`

/**
 * Returns the first reason for which each post stays, the newest post first. A root stays while a stored post reshares it, except reshares
 * that are removed with it: those of the same ids and, in a preview, those that the removal would have reached before.
 */
const REASONS_SQL = `
  select posts.id, pg_column_size(posts.*) as bytes, posts.created_at as "createdAt", case
    ${ownReasonsSql('posts', 'authors', 'pods')}
    when exists (
      select from posts as reshares
      join people as resharers on resharers.id = reshares.author_id
      left join pods as reshare_pods on reshare_pods.id = resharers.pod_id
      where reshares.root_id = posts.id and not (
        reshares.id > posts.id and (:isPreview or reshares.id = any(:ids))
        and ${isOldAndRemoteSql('reshares')}
        and not exists (select from posts as others where others.root_id = reshares.id)
        and case ${ownReasonsSql('reshares', 'resharers', 'reshare_pods')} end is null
      )
    ) then 'reshared'
  end as reason
  from posts
  join people as authors on authors.id = posts.author_id
  left join pods on pods.id = authors.pod_id
  where posts.id = any(:ids)
  order by posts.id desc`

/** The old addresses of photos of authors who have moved away from this pod lead on without their rows. */
const KEEP_PLACES_OF_PHOTOS_SQL = `
  insert into pruned_moved_photos (name, author_id, remote_path, new_name)
  select moved.name, photos.author_id, photos.remote_path, photos.name
  from photos join moved_photo_files as moved on moved.photo_id = photos.id
  where photos.post_id = any(?) and photos.remote_path is not null
  order by moved.name
  on conflict (name) do update set
    author_id = excluded.author_id, remote_path = excluded.remote_path, new_name = excluded.new_name`
