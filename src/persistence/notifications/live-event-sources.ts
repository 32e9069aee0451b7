import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'

export type LiveEventKind = 'notification' | 'message' | 'post' | 'moderation_case'

/**
 * A new row for live event streams: for one user, for all users with the post in their main stream, or for moderators. Ids ascend with
 * time.
 */
export interface LiveEventSource {
  readonly id: number
  readonly kind: LiveEventKind
  readonly subjectId: number
  readonly userId: number | null
}

/** Maximum number of live events per read, because their subjects must fit into memory. */
export const LIVE_EVENT_BATCH_SIZE = 100

/** New rows by their ids. */
export interface LiveEventRows {
  readonly notifications?: readonly number[]
  readonly messages?: readonly number[]
  /** Posts that are live events for all users who have them in their main stream. */
  readonly posts?: readonly number[]
  /** Posts that became visible to one user. */
  readonly shown?: readonly { readonly userId: number; readonly postId: number }[]
  /** New or changed cases, for moderators and admins. */
  readonly cases?: readonly number[]
}

/** A notification that PostgreSQL sends to those who listen on the channel. */
interface ChannelSignal {
  readonly channel: string
  readonly payload: string
}

/**
 * Inserts the sources of live events of outbox rows of `announce` jobs, deletes the rows and sends the signal, with one statement. Rows that are
 * gone have had their live events. Old posts, and posts that can be in no local stream, get no live event. An advisory lock lets one
 * transaction at a time insert, so that ids become visible in ascending order and readers miss none.
 */
export async function insertLiveEventSources(
  db: Knex,
  outboxIds: readonly number[],
  { channel, payload }: ChannelSignal,
): Promise<void> {
  const ids = outboxIds.toSorted((one, other) => one - other)
  await queryPrepared(db, 'live-event-outbox-rows', LIVE_EVENT_OUTBOX_ROWS_SQL, [ids, channel, payload])
}

/** Finds the newest id, and the id after which no live event is missing. Both are 0 if there never was one. */
export async function findLiveEventRange(db: Knex): Promise<{ readonly from: number; readonly newest: number }> {
  const [kept = { from: 0, newest: 0 }] = await queryPrepared<{ from: number; newest: number }>(
    db,
    'live-event-range',
    LIVE_EVENT_RANGE_SQL,
    [],
  )
  return kept
}

/** Lists live events of all users after an id, oldest first. */
export function listLiveEventsAfter(db: Knex, id: number): Promise<readonly LiveEventSource[]> {
  return queryPrepared<LiveEventSource>(db, 'live-events-after', LIVE_EVENTS_AFTER_SQL, [id])
}

/** Lists live events for one user and for all users between two ids, oldest first. */
export function listLiveEventsOfUser(
  db: Knex,
  { userId, after, upTo }: { readonly userId: number; readonly after: number; readonly upTo: number },
): Promise<readonly LiveEventSource[]> {
  return queryPrepared<LiveEventSource>(db, 'live-events-of-user', LIVE_EVENTS_OF_USER_SQL, [userId, after, upTo])
}

/** Old posts are received through reshares and links. They appear far down in a stream, so they get no live event. */
const MAX_POST_AGE_SQL = `interval '2 days'`

/** All ids below a key of the data of the taken rows. */
const takenIds = (key: string) =>
  `(select array_agg(item.id::bigint) from outbox_rows, jsonb_array_elements_text(outbox_rows.data -> '${key}') as item(id))`

/**
 * The rows are deleted before the lock is taken, as by a job: two transactions would otherwise wait for each other. The ids are made after
 * it. A message causes a live event for all participants, its author included, except to those who block the author.
 */
const LIVE_EVENT_OUTBOX_ROWS_SQL = `
  with outbox_rows as (
    delete from outbox using unnest(${opaqueParam('$1', 'bigint[]')}) as processed(id)
    where outbox.id = processed.id
    returning outbox.data
  ), announcement_lock as materialized (
    select pg_advisory_xact_lock(hashtextextended('announcements', 0))
    from (select count(*) from outbox_rows) as counted
    where counted.count > 0
  ), live_events as (
    select 'notification' as kind, notifications.id as subject_id, notifications.user_id
    from notifications where notifications.id = any(${takenIds('notifications')}::bigint[])
    union all
    select 'message', messages.id, users.id
    from messages
    join conversation_visibilities as visible on visible.conversation_id = messages.conversation_id
    join users on users.person_id = visible.person_id and users.closed_at is null
    where messages.id = any(${takenIds('messages')}::bigint[]) and not exists (
      select from blocks where blocks.user_id = users.id and blocks.person_id = messages.author_id
    )
    union all
    select 'post', posts.id, null
    from posts
    where posts.id = any(${takenIds('posts')}::bigint[]) and posts.created_at > now() - ${MAX_POST_AGE_SQL} and (
      exists (select from users where users.person_id = posts.author_id)
      or exists (select from contacts where contacts.person_id = posts.author_id and contacts.receiving)
      or exists (select from mentions join users on users.person_id = mentions.person_id where mentions.post_id = posts.id)
      or exists (
        select from taggings join tag_followings on tag_followings.tag_id = taggings.tag_id
        where taggings.post_id = posts.id
      )
    )
    union all
    select 'post', shown.post_id, shown.user_id from (
      select (item.pair ->> 'postId')::bigint, (item.pair ->> 'userId')::bigint
      from outbox_rows, jsonb_array_elements(outbox_rows.data -> 'shown') as item(pair)
    ) as shown(post_id, user_id)
    union all
    select distinct 'moderation_case', cases.id, null::bigint from unnest(${takenIds('cases')}::bigint[]) as cases(id)
  ), inserted as (
    insert into announcements (kind, subject_id, user_id)
    select kind, subject_id, user_id from announcement_lock, live_events order by kind, subject_id, user_id
    returning id
  )
  select pg_notify($2, $3) from (select from inserted limit 1) as any_inserted`

const LIVE_EVENT_RANGE_SQL = `
  select coalesce(min(id) - 1, 0) as from, coalesce(max(id), 0) as newest from announcements`

const COLUMNS_SQL = `id, kind, subject_id as "subjectId", user_id as "userId"`

const LIVE_EVENTS_AFTER_SQL = `select ${COLUMNS_SQL} from announcements where id > $1 order by id limit ${LIVE_EVENT_BATCH_SIZE}`

/** Two index scans: a single one over all users would read live events of other users too. */
const LIVE_EVENTS_OF_USER_SQL = `
  select * from (
    (select ${COLUMNS_SQL} from announcements where user_id = $1 and id > $2 and id <= $3 order by id limit ${LIVE_EVENT_BATCH_SIZE})
    union all
    (select ${COLUMNS_SQL} from announcements where user_id is null and id > $2 and id <= $3 order by id limit ${LIVE_EVENT_BATCH_SIZE})
  ) as either
  order by id limit ${LIVE_EVENT_BATCH_SIZE}`
