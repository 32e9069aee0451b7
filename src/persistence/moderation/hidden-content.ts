import type { Knex } from 'knex'
import { changeRows, queryRow, queryRows } from '../database/database.js'
import { Post } from '../models/post.js'

/** Ids of posts and comments. */
export interface ContentIds {
  readonly postIds: readonly number[]
  readonly commentIds: readonly number[]
}

/** Whether a guid is that of a post or of a comment, even after its deletion by an action. */
export async function findContentType(db: Knex, guid: string): Promise<'post' | 'comment' | undefined> {
  const [content] = await queryRows<{ readonly type: 'post' | 'comment' }>(
    db,
    `select 'post' as type from posts where guid = :guid
     union all
     select 'comment' from comments where guid = :guid
     union all
     select target_type from moderation_actions where target_guid = :guid and target_type in ('post', 'comment')
     limit 1`,
    { guid },
  )
  return content?.type
}

/** Hides posts and comments by an action. Returns how many of them this action hides now. */
export async function hideContentRows(
  transaction: Knex.Transaction,
  actionId: number,
  { postIds, commentIds }: ContentIds,
): Promise<number> {
  if (postIds.length === 0 && commentIds.length === 0) return 0
  const rowCount = await changeRows(transaction, NEW_REASONS_SQL, {
    actionId,
    postIds: [...postIds],
    commentIds: [...commentIds],
  })
  await hidePosts(transaction, postIds)
  await hideComments(transaction, commentIds)
  return rowCount
}

/**
 * Ends the hiding by an action, of at most `limit` rows. Returns how many. Content that another action or the block of its author hides
 * stays hidden.
 */
export async function showContentOfAction(
  transaction: Knex.Transaction,
  actionId: number,
  limit: number = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const rows = await queryRows<{ readonly postId: number | null; readonly commentId: number | null }>(
    transaction,
    `delete from hidden_content
     where ctid = any(array(select ctid from hidden_content where action_id = ? limit ?))
     returning post_id as "postId", comment_id as "commentId"`,
    [actionId, limit],
  )
  await unhideContentRows(transaction, {
    postIds: rows.flatMap(({ postId }) => postId ?? []),
    commentIds: rows.flatMap(({ commentId }) => commentId ?? []),
  })
  return rows.length
}

/** Counts what an action hides. */
export async function countContentOfAction(db: Knex, actionId: number): Promise<number> {
  const { count } = await queryRow<{ readonly count: number }>(
    db,
    'select count(*)::integer as count from hidden_content where action_id = ?',
    [actionId],
  )
  return count
}

/** Hides posts: from now on their author alone reads them. */
export async function hidePosts(transaction: Knex.Transaction, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  await Post.lock(transaction, ...ids)
  for (const statement of hidePostsStatements) await transaction.raw(statement, { ids: [...ids] })
}

/** Hides comments and corrects the counters of their posts. */
export async function hideComments(transaction: Knex.Transaction, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  await transaction.raw(LOCKED_POSTS_OF_COMMENTS_SQL, { ids: [...ids] })
  await transaction.raw(HIDDEN_COMMENTS_SQL, { ids: [...ids] })
  await transaction.raw(moveNotificationsSql(ABOUT_COMMENTS_SQL), { ids: [...ids] })
  await transaction.raw(HIDDEN_ACTORS_OF_COMMENTS_SQL, { ids: [...ids] })
}

/** Shows content again for which no reason to hide it is left. */
export async function unhideContentRows(
  transaction: Knex.Transaction,
  { postIds, commentIds }: ContentIds,
): Promise<void> {
  if (postIds.length > 0) {
    await Post.lock(transaction, ...postIds)
    for (const statement of showPostsStatements) await transaction.raw(statement, { ids: [...postIds] })
  }
  if (commentIds.length > 0) {
    await transaction.raw(LOCKED_POSTS_OF_COMMENTS_SQL, { ids: [...commentIds] })
    await transaction.raw(SHOWN_COMMENTS_SQL, { ids: [...commentIds] })
    await transaction.raw(restoreNotificationsSql(hiddenAboutContentSql('comment_id', 'comments.hidden')), {
      ids: [...commentIds],
    })
    await transaction.raw(restoreNotificationsSql(OF_COMMENTS_OF_POST_SQL), { ids: [...commentIds] })
    await transaction.raw(SHOWN_ACTORS_OF_COMMENTS_SQL, { ids: [...commentIds] })
  }
}

const NEW_REASONS_SQL = `
  insert into hidden_content (action_id, post_id, comment_id)
  select cast(:actionId as bigint), posts.id, null from posts where id = any(:postIds)
  union all
  select cast(:actionId as bigint), null, comments.id from comments where id = any(:commentIds)
  on conflict do nothing`

const IDS_SQL = 'any(cast(:ids as bigint[]))'

/**
 * Notifications about a comment, and those about all comments of one author under a post if none of these is still visible. Ids in an
 * array: each half reads its index of `notifications`, where a condition with `or` reads the whole table.
 */
const ABOUT_COMMENTS_SQL = `
  notifications.id = any(array(
    select id from notifications where comment_id = ${IDS_SQL}
    union
    select notifications.id from notifications
    where notifications.type in ('commented_on_post', 'also_commented')
      and notifications.post_id = any(array(select post_id from comments where id = ${IDS_SQL}))
      and not exists (
        select from notification_actors as actors
        join comments on comments.author_id = actors.person_id and comments.post_id = notifications.post_id and not comments.hidden
        where actors.notification_id = notifications.id
      )
  ))`

/** Deletes notifications and keeps what an undo needs. The order of the actors is that of their arrival. */
function moveNotificationsSql(condition: string): string {
  return `
    with moved as (
      select id, user_id, post_id, comment_id, to_jsonb(notifications) as notification,
        array(select person_id from notification_actors where notification_id = notifications.id order by notification_actors.id) as actor_ids
      from notifications where ${condition}
    ), kept as (
      insert into hidden_notifications (id, user_id, post_id, comment_id, notification, actor_ids) select * from moved
      on conflict do nothing
    )
    delete from notifications where id in (select id from moved)`
}

/** Hidden notifications about given content that is visible again. */
function hiddenAboutContentSql(column: 'post_id' | 'comment_id', isHidden: string): string {
  const table = column === 'post_id' ? 'posts' : 'comments'
  return `using ${table} where ${table}.id = hidden_notifications.${column} and ${table}.id = ${IDS_SQL} and not (${isHidden})`
}

/** Hidden notifications about all comments under a post, of which one is visible again. */
const OF_COMMENTS_OF_POST_SQL = `
  using posts
  where hidden_notifications.comment_id is null and posts.id = hidden_notifications.post_id and posts.public_before_hiding is null
    and posts.id in (select post_id from comments where id = ${IDS_SQL})
    and exists (
      select from comments
      where comments.post_id = posts.id and not comments.hidden and comments.author_id = any(hidden_notifications.actor_ids)
    )`

/** All columns: a row kept by an older version has no value for a newer column, which gets its default only if it is left out here. */
export const NOTIFICATION_COLUMNS = [
  'id',
  'guid',
  'user_id',
  'type',
  'post_id',
  'comment_id',
  'mention_id',
  'person_id',
  'day',
  'read',
  'superseded',
  'created_at',
  'updated_at',
] as const

/** Brings notifications back, unless a newer unread one is about the same. `source` chooses the rows. */
function restoreNotificationsSql(source: string): string {
  return `
    with moved as (
      delete from hidden_notifications ${source}
      returning hidden_notifications.notification, hidden_notifications.actor_ids
    ), restored as (
      insert into notifications (${NOTIFICATION_COLUMNS.join(', ')}) overriding system value
      select ${NOTIFICATION_COLUMNS.map((name) => `(row).${name}`).join(', ')}
      from (select jsonb_populate_record(cast(null as notifications), notification) as row from moved) as rows
      on conflict do nothing
      returning id
    )
    insert into notification_actors (notification_id, person_id, hidden)
    select restored.id, actor.person_id, ${IS_ACTOR_HIDDEN_SQL}
    from moved
    join restored on restored.id = cast(moved.notification->>'id' as bigint)
    cross join unnest(moved.actor_ids) with ordinality as actor (person_id, position)
    where exists (select from people where people.id = actor.person_id)
    order by restored.id, actor.position`
}

/** All actions of the actor of a restored notification are hidden: all own comments on the post, or the reshare of it. */
const IS_ACTOR_HIDDEN_SQL = `case
      when moved.notification->>'type' in ('commented_on_post', 'also_commented') then
        exists (select from comments where author_id = actor.person_id and post_id = cast(moved.notification->>'post_id' as bigint))
        and not exists (
          select from comments
          where author_id = actor.person_id and post_id = cast(moved.notification->>'post_id' as bigint) and not hidden
        )
      when moved.notification->>'type' = 'reshared' then exists (
        select from posts as reshares
        where reshares.root_id = cast(moved.notification->>'post_id' as bigint) and reshares.author_id = actor.person_id
          and reshares.public_before_hiding is not null
      )
      else false end`

/** People without a visible comment on a post are not named in the notifications about its comments. */
const HIDDEN_ACTORS_OF_COMMENTS_SQL = `
  update notification_actors as actors set hidden = true
  from (select distinct author_id, post_id from comments where id = ${IDS_SQL}) as input
  join notifications on notifications.post_id = input.post_id and notifications.type in ('commented_on_post', 'also_commented')
  where actors.notification_id = notifications.id and actors.person_id = input.author_id and not actors.hidden
    and not exists (
      select from comments where comments.author_id = input.author_id and comments.post_id = input.post_id and not comments.hidden
    )`

const SHOWN_ACTORS_OF_COMMENTS_SQL = `
  update notification_actors as actors set hidden = false
  from (select distinct author_id, post_id from comments where id = ${IDS_SQL} and not hidden) as input
  join notifications on notifications.post_id = input.post_id and notifications.type in ('commented_on_post', 'also_commented')
  where actors.notification_id = notifications.id and actors.person_id = input.author_id and actors.hidden`

/** The author of a hidden reshare is not named in the notification about it. */
const CHANGE_ACTORS_OF_RESHARES_SQL = `
  update notification_actors as actors set hidden = reshares.public_before_hiding is not null
  from posts as reshares join notifications on notifications.post_id = reshares.root_id and notifications.type = 'reshared'
  where reshares.id = ${IDS_SQL} and actors.notification_id = notifications.id and actors.person_id = reshares.author_id
    and actors.hidden <> (reshares.public_before_hiding is not null)`

const hidePostsStatements = [
  `update posts set public_before_hiding = public, public = false where id = ${IDS_SQL} and public_before_hiding is null`,
  `with moved as (
     delete from post_visibilities where post_id = ${IDS_SQL} returning user_id, post_id
   )
   insert into hidden_post_visibilities (user_id, post_id) select user_id, post_id from moved on conflict do nothing`,
  `with moved as (
     delete from photo_visibilities where photo_id in (select id from photos where post_id = ${IDS_SQL})
     returning user_id, photo_id
   )
   insert into hidden_photo_visibilities (user_id, photo_id) select user_id, photo_id from moved on conflict do nothing`,
  `update photos set public_before_hiding = public, public = false
   where post_id = ${IDS_SQL} and public_before_hiding is null`,
  moveNotificationsSql(`notifications.post_id = ${IDS_SQL}`),
  CHANGE_ACTORS_OF_RESHARES_SQL,
]

/** No action hides the post, and its author is not blocked. */
const HAS_NO_REASON_FOR_POST_SQL = `not exists (select from hidden_content where hidden_content.post_id = posts.id)
  and not exists (select from people where people.id = posts.author_id and people.restriction = 'block')`

const showPostsStatements = [
  `update posts set public = public_before_hiding, public_before_hiding = null
   where id = ${IDS_SQL} and public_before_hiding is not null and author_id is not null and ${HAS_NO_REASON_FOR_POST_SQL}`,
  `with moved as (
     delete from hidden_post_visibilities using posts
     where posts.id = post_id and posts.id = ${IDS_SQL} and posts.public_before_hiding is null
     returning hidden_post_visibilities.user_id, posts.id, posts.author_id, posts.created_at
   )
   insert into post_visibilities (user_id, post_id, author_id, created_at) select * from moved on conflict do nothing`,
  `update photos set public = coalesce(photos.public_before_hiding, posts.public), public_before_hiding = null
   from posts where posts.id = photos.post_id and posts.id = ${IDS_SQL} and posts.public_before_hiding is null`,
  `with moved as (
     delete from hidden_photo_visibilities using photos
     where photos.id = photo_id and photos.post_id = ${IDS_SQL} and photos.public_before_hiding is null
     returning hidden_photo_visibilities.user_id, photos.id
   )
   insert into photo_visibilities (user_id, photo_id) select * from moved on conflict do nothing`,
  restoreNotificationsSql(hiddenAboutContentSql('post_id', 'posts.public_before_hiding is not null')),
  CHANGE_ACTORS_OF_RESHARES_SQL,
]

/** Posts are locked before their comments, as in all other changes of comments. */
const LOCKED_POSTS_OF_COMMENTS_SQL = `
  select id from posts where id in (select post_id from comments where id = ${IDS_SQL}) order by id for no key update`

const HIDDEN_COMMENTS_SQL = `
  with hidden as (
    update comments set hidden = true where id = ${IDS_SQL} and not hidden returning post_id
  )
  update posts set comments_count = greatest(0, comments_count - lost.count)
  from (select post_id, count(*) from hidden group by post_id) as lost
  where posts.id = lost.post_id`

const SHOWN_COMMENTS_SQL = `
  with shown as (
    update comments set hidden = false
    where id = ${IDS_SQL} and hidden
      and not exists (select from hidden_content where hidden_content.comment_id = comments.id)
      and not exists (select from people where people.id = comments.author_id and people.restriction = 'block')
    returning post_id
  )
  update posts set comments_count = comments_count + gained.count
  from (select post_id, count(*) from shown group by post_id) as gained
  where posts.id = gained.post_id`
