import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../database/database.js'
import { isRestrictedForSql } from '../people/restricted-people.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { moveActivitySql } from './activity.js'
import { type NotificationCauseRows, recipientCtesSql } from './notification-recipients.js'

/**
 * Inserts the notifications of any number of causes with one statement. An unread notification about the same target is extended
 * instead. Returns the ids of new and extended ones. With `shouldMoveActivity`, commented posts move forward in activity streams.
 */
export async function insertCausedNotifications(
  transaction: Knex.Transaction,
  { shouldMoveActivity = false, ...causes }: NotificationCauseRows & { readonly shouldMoveActivity?: boolean },
  now: Date,
): Promise<readonly number[]> {
  const values: unknown[] = [now]
  const { names, ctes, occurrences } = recipientCtesSql(causes, values)
  if (names.length === 0) return []
  const isMoving = shouldMoveActivity && causes.comments.length > 0
  const text = causedNotificationsSql(ctes, occurrences, isMoving)
  const name = `caused-notifications ${names.join(' ')}${isMoving ? ' moving' : ''}`
  const insertedRows = await queryPrepared<{ id: number }>(transaction, name, text, values)
  return insertedRows.map(({ id }) => id)
}

/** Inserts a notification for each user and mutual contact with a birthday on this day, once a day; returns their ids. */
export async function insertBirthdayNotifications(
  transaction: Knex.Transaction,
  day: string,
  now: Date,
): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly notification_id: number }>(transaction, BIRTHDAY_NOTIFICATIONS_SQL, {
    day,
    now,
  })
  return rows.map((row) => row.notification_id)
}

const NOW_SQL = opaqueParam('$1', 'timestamptz')

/**
 * Inserts notifications and their actors. Blocks, restricted people, muted posts, posts hidden by moderators and closed accounts
 * suppress them. Mentions conflict on their unique index. The rest merges into unread rows, inserted in key order so that two
 * transactions cannot deadlock.
 */
function causedNotificationsSql(ctes: string, occurrences: string, shouldMoveActivity: boolean): string {
  return `
  with ${ctes}, allowed as (
    select
      occurrence.*,
      coalesce(occurrence.mention_id, occurrence.comment_id, occurrence.post_id, occurrence.person_id) as target_id
    from (${occurrences})
      as occurrence (type, user_id, actor_id, post_id, comment_id, mention_id, person_id, position)
    join users on users.id = occurrence.user_id and users.closed_at is null
    where not exists (
        select from blocks where blocks.user_id = occurrence.user_id and blocks.person_id = occurrence.actor_id
      )
      and not exists (
        select from muted_posts
        where muted_posts.user_id = occurrence.user_id and muted_posts.post_id = occurrence.post_id
      )
      and not exists (
        select from people where people.id = occurrence.actor_id and ${isRestrictedForSql('occurrence.user_id', 'people')}
      )
      -- Hidden posts cause no notifications.
      and not exists (
        select from posts where posts.id = occurrence.post_id and posts.public_before_hiding is not null
      )
  ), targets as (
    select
      replace(gen_random_uuid()::text, '-', '') as guid, user_id, type, target_id, post_id, comment_id, mention_id, person_id
    from allowed
    group by user_id, type, target_id, post_id, comment_id, mention_id, person_id
  ), inserted_mentions as (
    insert into notifications (guid, user_id, type, post_id, comment_id, mention_id, created_at, updated_at)
    select guid, user_id, type, post_id, comment_id, mention_id, ${NOW_SQL}, ${NOW_SQL}
    from targets where mention_id is not null
    order by target_id
    on conflict do nothing
    returning id, user_id, type, target_id
  ), merged as (
    insert into notifications (guid, user_id, type, post_id, comment_id, person_id, created_at, updated_at)
    select guid, user_id, type, post_id, comment_id, person_id, ${NOW_SQL}, ${NOW_SQL}
    from targets where mention_id is null
    order by user_id, type, target_id
    on conflict (user_id, type, target_id) where not read and not superseded and type <> 'contacts_birthday'
    do update set updated_at = greatest(notifications.updated_at, excluded.updated_at)
    returning id, user_id, type, target_id
  ), stored as (
    select * from inserted_mentions union all select * from merged
  ), actors as (
    insert into notification_actors (notification_id, person_id)
    select stored.id, allowed.actor_id
    from stored join allowed using (user_id, type, target_id)
    group by stored.id, allowed.actor_id
    order by stored.id, min(allowed.position)
    -- A moderator has hidden what the actor did before.
    on conflict (notification_id, person_id) do update set hidden = false where notification_actors.hidden
  )${shouldMoveActivity ? `, moved_activity as (${moveActivitySql('select post_id from comment')})` : ''}
  select id from stored`
}

/** Compares month and day only: a birthday on 29 February is notified in leap years. */
const BIRTHDAY_NOTIFICATIONS_SQL = `
  with birthdays as (
    select users.id as user_id, profiles.person_id
    from profiles
    join people on people.id = profiles.person_id and people.closed_at is null
    join contacts on contacts.person_id = profiles.person_id and contacts.sharing and contacts.receiving
    join users on users.id = contacts.user_id and users.closed_at is null
    where profiles.birthday is not null and substr(profiles.birthday, 6) = substr(:day, 6)
      and not exists (select from blocks where blocks.user_id = users.id and blocks.person_id = profiles.person_id)
  ), stored as (
    insert into notifications (guid, user_id, type, person_id, day, created_at, updated_at)
    select
      replace(cast(gen_random_uuid() as text), '-', ''), user_id, 'contacts_birthday', person_id, cast(:day as date),
      :now, :now
    from birthdays
    order by user_id, person_id
    on conflict do nothing
    returning id, person_id
  )
  insert into notification_actors (notification_id, person_id)
  select id, person_id from stored order by id
  returning notification_id`
