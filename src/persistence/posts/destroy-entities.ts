import type { Knex } from 'knex'
import type { RecordKind, RetractableKind } from '../../protocol/entities/registry.js'
import { queryRows } from '../database/database.js'
import { joinsToPost, KINDS_BELOW_POST, RECORD_TABLES } from '../sql/record-tables.js'
import { findLargePosts, softDeletePosts } from './delete-posts.js'
import { SENT_PUBLICLY_SQL } from './visibility.js'

/** A deleted row, by the record name of its deliveries. */
export interface DestroyedEntity {
  readonly record: RecordKind
  readonly id: number
  readonly guid: string
}

/** A row that was a reason for its author, `participantId`, to participate in the post `participatedPostId`. Null: it was not. */
interface DestroyedRow extends DestroyedEntity {
  readonly participatedPostId: number | null
  readonly participantId: number | null
}

/**
 * Destroys rows of one kind with everything below them, corrects counters, and returns the deleted rows. Reshares of a post stay, without
 * a root. A post with very many rows below it is soft-deleted; `purgeDeletedPosts` deletes these rows later.
 */
export async function destroyEntities(
  transaction: Knex.Transaction,
  kind: RetractableKind,
  ids: readonly number[],
): Promise<readonly DestroyedEntity[]> {
  if (ids.length === 0) return []
  const large = kind === 'post' ? await findLargePosts(transaction, ids) : []
  const rows = [
    ...(await softDeletePosts(transaction, large)),
    ...(await destroyImmediately(
      transaction,
      kind,
      large.length === 0 ? ids : ids.filter((id) => !large.includes(id)),
    )),
  ]
  const reasons = rows.flatMap(({ participatedPostId: postId, participantId }) =>
    postId === null || participantId === null ? [] : [{ postId, participantId }],
  )
  if (reasons.length > 0) {
    const values = [reasons.map(({ postId }) => postId), reasons.map(({ participantId }) => participantId)]
    await transaction.raw(LOWERED_PARTICIPATIONS_SQL, values)
  }
  return rows.map(({ record, id, guid }) => ({ record, id, guid }))
}

async function destroyImmediately(
  transaction: Knex.Transaction,
  kind: RetractableKind,
  ids: readonly number[],
): Promise<readonly DestroyedRow[]> {
  if (ids.length === 0) return []
  return queryRows<DestroyedRow>(transaction, DESTROY_SQL[kind], [[...ids]])
}

/**
 * Finds the posts without text that have no other photos than these. Locks the posts first: of two photos deleted at the same time, the
 * second transaction sees that the first photo is gone.
 */
export async function findPostsEmptyWithoutPhotos(
  transaction: Knex.Transaction,
  photoIds: readonly number[],
): Promise<readonly { readonly id: number; readonly guid: string; readonly public: boolean }[]> {
  if (photoIds.length === 0) return []
  await transaction.raw(LOCKED_POSTS_OF_PHOTOS_SQL, [[...photoIds]])
  return queryRows<{ readonly id: number; readonly guid: string; readonly public: boolean }>(
    transaction,
    EMPTY_POSTS_SQL,
    [[...photoIds]],
  )
}

/** The rows that foreign keys delete with the locked posts. */
const belowLocked = KINDS_BELOW_POST.flatMap((kind) =>
  joinsToPost(kind).map(({ from, post }) => {
    const { table } = RECORD_TABLES[kind]
    return `
    union all
    select '${kind}', ${table}.id, ${table}.guid, null, null from ${from} join locked on locked.id = ${post}`
  }),
)

/**
 * Each statement locks parents before children, both in id order, against deadlocks. Rows that foreign keys delete along are returned too:
 * all parts of a statement read the rows as they were before it.
 */
const DESTROY_SQL: Readonly<Record<RetractableKind, string>> = {
  post: `
    with locked as (
      select id, guid, author_id, root_id from posts where id = any(?) order by id for update
    ), deleted as (
      delete from posts using locked where posts.id = locked.id
    ), roots as (
      select id from posts
      where id in (select root_id from locked) and id not in (select id from locked)
      order by id for no key update
    ), counted as (
      update posts set reshares_count = greatest(0, reshares_count - lost.count)
      from (select root_id, count(*) from locked join roots on roots.id = root_id group by root_id) as lost
      where posts.id = lost.root_id
    )
    select 'post' as record, locked.id, guid, roots.id as "participatedPostId", author_id as "participantId"
    from locked left join roots on roots.id = root_id
    ${belowLocked.join('')}`,

  photo: `
    with locked as (
      select id, guid from photos where id = any(?) order by id for update
    ), deleted as (
      delete from photos using locked where photos.id = locked.id
    )
    select 'photo' as record, id, guid, null::bigint as "participatedPostId", null::bigint as "participantId" from locked`,

  comment: `
    with input as (
      select unnest(?::bigint[]) as id
    ), parents as (
      select id from posts where id in (select post_id from comments join input using (id))
      order by id for no key update
    ), locked as (
      select id, guid, author_id, post_id, hidden from comments
      where id in (select id from input) and post_id in (select id from parents)
      order by id for update
    ), deleted as (
      delete from comments using locked where comments.id = locked.id
    ), counted as (
      update posts set comments_count = greatest(0, comments_count - lost.count)
      from (select post_id, count(*) from locked where not hidden group by post_id) as lost
      where posts.id = lost.post_id
    )
    select 'comment' as record, id, guid, post_id as "participatedPostId", author_id as "participantId" from locked
    union all
    select 'like', likes.id, likes.guid, locked.post_id, likes.author_id
    from likes join locked on locked.id = likes.comment_id`,

  // Dislikes and likes of blocked people are not counted.
  like: `
    with locked as (
      select id, guid, author_id, post_id, comment_id, positive and not hidden as counted from likes where id = any(?) order by id for update
    ), deleted as (
      delete from likes using locked where likes.id = locked.id
    ), parents as (
      select id from posts where id in (select post_id from locked where counted) order by id for no key update
    ), counted as (
      update posts set likes_count = greatest(0, likes_count - lost.count)
      from (select post_id, count(*) from locked join parents on parents.id = post_id where counted group by post_id) as lost
      where posts.id = lost.post_id
    ), liked as (
      select id from comments where id in (select comment_id from locked where counted) order by id for no key update
    ), counted_comments as (
      update comments set likes_count = greatest(0, likes_count - lost.count)
      from (select comment_id, count(*) from locked join liked on liked.id = comment_id where counted group by comment_id) as lost
      where comments.id = lost.comment_id
    )
    select 'like' as record, locked.id, locked.guid, coalesce(locked.post_id, comments.post_id) as "participatedPostId",
      locked.author_id as "participantId"
    from locked left join comments on comments.id = locked.comment_id`,

  poll_participation: `
    with locked as (
      select votes.id, votes.guid, author_id, poll_answer_id, post_id
      from poll_participations as votes join polls on polls.id = poll_id
      where votes.id = any(?) order by votes.id for update of votes
    ), deleted as (
      delete from poll_participations using locked where poll_participations.id = locked.id
    ), answers as (
      select id from poll_answers where id in (select poll_answer_id from locked) order by id for no key update
    ), counted as (
      update poll_answers set vote_count = greatest(0, vote_count - lost.count)
      from (select answers.id, count(*) from locked join answers on answers.id = poll_answer_id group by answers.id) as lost
      where poll_answers.id = lost.id
    )
    select 'poll_participation' as record, id, guid, post_id as "participatedPostId", author_id as "participantId" from locked`,

  participation: `
    with locked as (
      select id, guid from participations where id = any(?) order by id for update
    ), deleted as (
      delete from participations using locked where participations.id = locked.id
    )
    select 'participation' as record, id, guid, null::bigint as "participatedPostId", null::bigint as "participantId" from locked`,

  poll: `
    with locked as (
      select id, guid, post_id from polls where id = any(?) order by id for update
    ), deleted as (
      delete from polls using locked where polls.id = locked.id
    )
    select 'poll' as record, id, guid, null::bigint as "participatedPostId", null::bigint as "participantId" from locked
    union all
    select 'poll_participation', votes.id, votes.guid, locked.post_id, votes.author_id
    from poll_participations as votes join locked on locked.id = votes.poll_id`,

  conversation: `
    with locked as (
      select id, guid from conversations where id = any(?) order by id for update
    ), deleted as (
      delete from conversations using locked where conversations.id = locked.id
    )
    select 'conversation' as record, id, guid, null::bigint as "participatedPostId", null::bigint as "participantId" from locked
    union all
    select 'message', messages.id, messages.guid, null, null
    from messages join locked on locked.id = messages.conversation_id`,
}

/**
 * Lowers the participations of local people by the deleted rows that were reasons for them, and deletes those without a reason left. Pods
 * of remote people send and retract their participations themselves. Authors do not participate in their own posts.
 */
const LOWERED_PARTICIPATIONS_SQL = `
  with released as (
    select post_id, author_id, count(*)::integer as reasons
    from unnest(?::bigint[], ?::bigint[]) as released_reasons (post_id, author_id)
    group by post_id, author_id
  ), locked as (
    select participations.id, participations.count - released.reasons as remaining
    from released
    join participations using (post_id, author_id)
    join people on people.id = participations.author_id and people.pod_id is null
    join posts on posts.id = post_id and posts.author_id <> participations.author_id
    order by participations.id for update of participations
  ), lowered as (
    update participations set count = locked.remaining
    from locked where participations.id = locked.id and locked.remaining > 0
  )
  delete from participations using locked where participations.id = locked.id and locked.remaining <= 0`

const LOCKED_POSTS_OF_PHOTOS_SQL = `
  select id from posts where id in (select post_id from photos where id = any(?)) order by id for update`

const EMPTY_POSTS_SQL = `
  with input as (
    select unnest(?::bigint[]) as id
  )
  select posts.id, posts.guid, ${SENT_PUBLICLY_SQL} as public
  from posts
  where posts.id in (select post_id from photos join input using (id))
    and posts.type = 'StatusMessage'
    and posts.text !~ '[^[:space:]]'
    and not exists (
      select from photos as others
      where others.post_id = posts.id and not exists (select from input where input.id = others.id)
    )`
