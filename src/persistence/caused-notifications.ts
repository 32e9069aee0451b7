import type { Knex } from 'knex'
import { named } from './database.js'
import { stir } from './involvements.js'

/** What has just happened, by the ids of its rows. */
export interface CausingRows {
  readonly posts: readonly number[]
  readonly comments: readonly number[]
  readonly likes: readonly number[]
  readonly reshares: readonly number[]
  readonly sharing: readonly { readonly userId: number; readonly personId: number }[]
  readonly delivered: readonly { readonly userId: number; readonly postId: number }[]
}

/**
 * Tells everybody concerned of any number of these with one statement: what is unread about the same thing is added to, the
 * rest is new. Returns the ids of both. In the activity of those involved, what is commented on moves forward.
 */
export async function insertCausedNotifications(
  transaction: Knex.Transaction,
  causes: CausingRows,
  now: Date,
): Promise<readonly number[]> {
  const { posts, comments, likes, reshares, sharing, delivered } = causes
  const written = await named<{ id: number }>(transaction, 'caused-notifications', causedNotifications, [
    posts,
    comments,
    likes,
    reshares,
    sharing.map(({ userId }) => userId),
    sharing.map(({ personId }) => personId),
    delivered.map(({ userId }) => userId),
    delivered.map(({ postId }) => postId),
    now,
  ])
  return written.map(({ id }) => id)
}

/** One for each user and mutual contact whose birthday is that day and was not told of yet; returns their ids. */
export async function insertBirthdayNotifications(
  transaction: Knex.Transaction,
  day: string,
  now: Date,
): Promise<readonly number[]> {
  const { rows } = await transaction.raw(birthdayNotifications, { day, now })
  return rows.map((row: { notification_id: number }) => row.notification_id)
}

/**
 * A comment tells whoever it mentions only of the mention. Under a private post, a mention counts for those who have shown
 * that they can see it.
 */
const whoIsTold = `
  comment as (
    select comments.id, comments.post_id, comments.author_id, posts.author_id as post_author_id, posts.public, cause.place
    from unnest($2::bigint[]) with ordinality as cause(id, place)
    join comments on comments.id = cause.id
    join posts on posts.id = comments.post_id
  ), mentioned_in_comment as (
    select
      'mentioned_in_comment' as type, users.id as user_id, comment.author_id as actor_id, comment.post_id,
      comment.id as comment_id, mentions.id as mention_id, null::bigint as person_id, comment.place
    from comment
    join mentions on mentions.comment_id = comment.id and mentions.person_id <> comment.author_id
    join users on users.person_id = mentions.person_id
    where comment.public
      or mentions.person_id = comment.post_author_id
      or exists (select from comments where author_id = mentions.person_id and post_id = comment.post_id)
      or exists (select from likes where author_id = mentions.person_id and post_id = comment.post_id and positive)
  ), commented as (
    select
      case when users.person_id = comment.post_author_id then 'commented_on_post' else 'also_commented' end,
      users.id, comment.author_id, comment.post_id, null::bigint, null::bigint, null::bigint, comment.place
    from comment
    cross join lateral (
      select comment.post_author_id as person_id
      union
      select author_id from participations where post_id = comment.post_id
    ) as listener
    join users on users.person_id = listener.person_id
    where listener.person_id <> comment.author_id
      and not exists (
        select from mentioned_in_comment as said where said.comment_id = comment.id and said.user_id = users.id
      )
      and (
        listener.person_id = comment.post_author_id
        or not exists (select from hidden_posts where user_id = users.id and post_id = comment.post_id)
      )
  ), mentioned as (
    select
      'mentioned', users.id, posts.author_id, posts.id, null::bigint, mentions.id, null::bigint, cause.place
    from (
      select post.id, null::bigint as user_id, post.place from unnest($1::bigint[]) with ordinality as post(id, place)
      union all
      select delivered.post_id, delivered.user_id, delivered.place
      from unnest($7::bigint[], $8::bigint[]) with ordinality as delivered(user_id, post_id, place)
    ) as cause
    join posts on posts.id = cause.id
    join mentions on mentions.post_id = posts.id and mentions.person_id <> posts.author_id
    join users on users.person_id = mentions.person_id and users.id = coalesce(cause.user_id, users.id)
    where posts.public or exists (select from post_visibilities where user_id = users.id and post_id = posts.id)
  ), liked as (
    select
      case when likes.comment_id is null then 'liked' else 'liked_comment' end,
      users.id, likes.author_id, posts.id, likes.comment_id, null::bigint, null::bigint, cause.place
    from unnest($3::bigint[]) with ordinality as cause(id, place)
    join likes on likes.id = cause.id and likes.positive
    left join comments on comments.id = likes.comment_id
    join posts on posts.id = coalesce(likes.post_id, comments.post_id)
    join users on users.person_id = coalesce(comments.author_id, posts.author_id)
    where users.person_id <> likes.author_id
  ), reshared as (
    select
      'reshared', users.id, reshares.author_id, roots.id, null::bigint, null::bigint, null::bigint, cause.place
    from unnest($4::bigint[]) with ordinality as cause(id, place)
    join posts as reshares on reshares.id = cause.id
    join posts as roots on roots.id = reshares.root_id
    join users on users.person_id = roots.author_id
    where users.person_id <> reshares.author_id
  ), started_sharing as (
    select
      'started_sharing', users.id, cause.person_id, null::bigint, null::bigint, null::bigint, cause.person_id, cause.place
    from unnest($5::bigint[], $6::bigint[]) with ordinality as cause(user_id, person_id, place)
    join users on users.id = cause.user_id
  )`

/**
 * Quiet are blocks, mute marks and closed accounts. Rows that others may be adding to are taken in one order, so that two
 * transactions never wait for each other.
 */
const causedNotifications = `
  with ${whoIsTold}, told as (
    select
      occurrence.*,
      coalesce(occurrence.mention_id, occurrence.comment_id, occurrence.post_id, occurrence.person_id) as target_id
    from (
      select * from mentioned_in_comment union all select * from commented union all select * from mentioned
      union all select * from liked union all select * from reshared union all select * from started_sharing
    ) as occurrence
    join users on users.id = occurrence.user_id and users.closed_at is null
    where not exists (
        select from blocks where blocks.user_id = occurrence.user_id and blocks.person_id = occurrence.actor_id
      )
      and not exists (
        select from muted_posts
        where muted_posts.user_id = occurrence.user_id and muted_posts.post_id = occurrence.post_id
      )
  ), subject as (
    select
      replace(gen_random_uuid()::text, '-', '') as guid, user_id, type, target_id, post_id, comment_id, mention_id, person_id
    from told
    group by user_id, type, target_id, post_id, comment_id, mention_id, person_id
  ), once as (
    insert into notifications (guid, user_id, type, post_id, comment_id, mention_id, created_at, updated_at)
    select guid, user_id, type, post_id, comment_id, mention_id, $9, $9
    from subject where mention_id is not null
    order by target_id
    on conflict do nothing
    returning id, user_id, type, target_id
  ), merged as (
    insert into notifications (guid, user_id, type, post_id, comment_id, person_id, created_at, updated_at)
    select guid, user_id, type, post_id, comment_id, person_id, $9, $9
    from subject where mention_id is null
    order by user_id, type, target_id
    on conflict (user_id, type, target_id) where not read and not superseded and type <> 'contacts_birthday'
    do update set updated_at = greatest(notifications.updated_at, excluded.updated_at)
    returning id, user_id, type, target_id
  ), written as (
    select * from once union all select * from merged
  ), actors as (
    insert into notification_actors (notification_id, person_id)
    select written.id, told.actor_id
    from written join told using (user_id, type, target_id)
    group by written.id, told.actor_id
    order by written.id, min(told.place)
    on conflict do nothing
  ), stirred as (${stir('select post_id from comment')})
  select id from written`

/** The year does not matter, so the 29th of February comes every four years. */
const birthdayNotifications = `
  with congratulated as (
    select users.id as user_id, profiles.person_id
    from profiles
    join people on people.id = profiles.person_id and people.closed_at is null
    join contacts on contacts.person_id = profiles.person_id and contacts.sharing and contacts.receiving
    join users on users.id = contacts.user_id and users.closed_at is null
    where profiles.birthday is not null and substr(profiles.birthday, 6) = substr(:day, 6)
      and not exists (select from blocks where blocks.user_id = users.id and blocks.person_id = profiles.person_id)
  ), written as (
    insert into notifications (guid, user_id, type, person_id, day, created_at, updated_at)
    select
      replace(cast(gen_random_uuid() as text), '-', ''), user_id, 'contacts_birthday', person_id, cast(:day as date),
      :now, :now
    from congratulated
    order by user_id, person_id
    on conflict do nothing
    returning id, person_id
  )
  insert into notification_actors (notification_id, person_id)
  select id, person_id from written order by id
  returning notification_id`
