import type { Knex } from 'knex'
import { findLargePosts, softDeletePosts } from './delete-posts.js'

/** Something that is gone, under the name that it had on its way to other pods. */
export interface Destroyed {
  readonly record: DestructibleKind | 'message'
  readonly id: number
  readonly guid: string
}

/** Held: the post whose participation of this author it was a reason for. */
interface GoneRow extends Destroyed {
  readonly held: number | null
  readonly author: number | null
}

/**
 * Destroys any number of one kind with all that is under them, corrects what counted them, and tells what is gone; what was not
 * there is not told. Reshares of a post stay, with nothing to show. Of a post with very much under it, that part is deleted later.
 */
export async function destroyEntities(
  transaction: Knex.Transaction,
  kind: DestructibleKind,
  ids: readonly number[],
): Promise<readonly Destroyed[]> {
  if (ids.length === 0) return []
  const large = kind === 'post' ? await findLargePosts(transaction, ids) : []
  const rows = [
    ...(await softDeletePosts(transaction, large)),
    ...(await destroyAtOnce(transaction, kind, large.length === 0 ? ids : ids.filter((id) => !large.includes(id)))),
  ]
  const holds = rows.flatMap(({ held, author }) => (held === null || author === null ? [] : [{ post: held, author }]))
  if (holds.length > 0) {
    await transaction.raw(letGo, [holds.map(({ post }) => post), holds.map(({ author }) => author)])
  }
  return rows.map(({ record, id, guid }) => ({ record, id, guid }))
}

async function destroyAtOnce(
  transaction: Knex.Transaction,
  kind: DestructibleKind,
  ids: readonly number[],
): Promise<readonly GoneRow[]> {
  if (ids.length === 0) return []
  const { rows } = await transaction.raw(destroyed[kind], [[...ids]])
  return rows
}

/**
 * Posts that have nothing to show without these photos. They are held first: of two photos that go at the same moment, the
 * second finds that the first is gone.
 */
export async function findPostsEmptyWithoutPhotos(
  transaction: Knex.Transaction,
  photoIds: readonly number[],
): Promise<readonly { readonly id: number; readonly guid: string; readonly public: boolean }[]> {
  if (photoIds.length === 0) return []
  await transaction.raw(holdPostsOf, [[...photoIds]])
  const { rows } = await transaction.raw(emptyWithout, [[...photoIds]])
  return rows
}

export type DestructibleKind = keyof typeof destroyed

/** Parents are locked before children and each in id order; what goes by itself with a row is read from before it went. */
const destroyed = {
  post: `
    with locked as (
      select id, guid, author_id, root_id from posts where id = any(?) order by id for update
    ), gone as (
      delete from posts using locked where posts.id = locked.id
    ), roots as (
      select id from posts
      where id in (select root_id from locked) and id not in (select id from locked)
      order by id for no key update
    ), counted as (
      update posts set reshares_count = greatest(0, reshares_count - less.count)
      from (select root_id, count(*) from locked join roots on roots.id = root_id group by root_id) as less
      where posts.id = less.root_id
    )
    select 'post' as record, locked.id, guid, roots.id as held, author_id as author
    from locked left join roots on roots.id = root_id
    union all
    select 'photo', photos.id, photos.guid, null, null from photos join locked on locked.id = photos.post_id
    union all
    select 'participation', participations.id, participations.guid, null, null
    from participations join locked on locked.id = participations.post_id
    union all
    select 'poll_participation', votes.id, votes.guid, null, null
    from poll_participations as votes join polls on polls.id = votes.poll_id join locked on locked.id = polls.post_id
    union all
    select 'comment', comments.id, comments.guid, null, null
    from comments join locked on locked.id = comments.post_id
    union all
    select 'like', likes.id, likes.guid, null, null from likes join locked on locked.id = likes.post_id
    union all
    select 'like', likes.id, likes.guid, null, null
    from likes join comments on comments.id = likes.comment_id join locked on locked.id = comments.post_id`,

  photo: `
    with locked as (
      select id, guid from photos where id = any(?) order by id for update
    ), gone as (
      delete from photos using locked where photos.id = locked.id
    )
    select 'photo' as record, id, guid, null::bigint as held, null::bigint as author from locked`,

  comment: `
    with chosen as (
      select unnest(?::bigint[]) as id
    ), parents as (
      select id from posts where id in (select post_id from comments join chosen using (id))
      order by id for no key update
    ), locked as (
      select id, guid, author_id, post_id from comments
      where id in (select id from chosen) and post_id in (select id from parents)
      order by id for update
    ), gone as (
      delete from comments using locked where comments.id = locked.id
    ), counted as (
      update posts set comments_count = greatest(0, comments_count - less.count)
      from (select post_id, count(*) from locked group by post_id) as less
      where posts.id = less.post_id
    )
    select 'comment' as record, id, guid, post_id as held, author_id as author from locked
    union all
    select 'like', likes.id, likes.guid, locked.post_id, likes.author_id
    from likes join locked on locked.id = likes.comment_id`,

  // A dislike was never counted.
  like: `
    with locked as (
      select id, guid, author_id, post_id, comment_id, positive from likes where id = any(?) order by id for update
    ), gone as (
      delete from likes using locked where likes.id = locked.id
    ), parents as (
      select id from posts where id in (select post_id from locked where positive) order by id for no key update
    ), counted as (
      update posts set likes_count = greatest(0, likes_count - less.count)
      from (select post_id, count(*) from locked join parents on parents.id = post_id where positive group by post_id) as less
      where posts.id = less.post_id
    ), liked as (
      select id from comments where id in (select comment_id from locked where positive) order by id for no key update
    ), counted_comments as (
      update comments set likes_count = greatest(0, likes_count - less.count)
      from (select comment_id, count(*) from locked join liked on liked.id = comment_id where positive group by comment_id) as less
      where comments.id = less.comment_id
    )
    select 'like' as record, locked.id, locked.guid, coalesce(locked.post_id, comments.post_id) as held,
      locked.author_id as author
    from locked left join comments on comments.id = locked.comment_id`,

  poll_participation: `
    with locked as (
      select votes.id, votes.guid, author_id, poll_answer_id, post_id
      from poll_participations as votes join polls on polls.id = poll_id
      where votes.id = any(?) order by votes.id for update of votes
    ), gone as (
      delete from poll_participations using locked where poll_participations.id = locked.id
    ), answers as (
      select id from poll_answers where id in (select poll_answer_id from locked) order by id for no key update
    ), counted as (
      update poll_answers set vote_count = greatest(0, vote_count - less.count)
      from (select answers.id, count(*) from locked join answers on answers.id = poll_answer_id group by answers.id) as less
      where poll_answers.id = less.id
    )
    select 'poll_participation' as record, id, guid, post_id as held, author_id as author from locked`,

  participation: `
    with locked as (
      select id, guid from participations where id = any(?) order by id for update
    ), gone as (
      delete from participations using locked where participations.id = locked.id
    )
    select 'participation' as record, id, guid, null::bigint as held, null::bigint as author from locked`,

  poll: `
    with locked as (
      select id, guid, post_id from polls where id = any(?) order by id for update
    ), gone as (
      delete from polls using locked where polls.id = locked.id
    )
    select 'poll' as record, id, guid, null::bigint as held, null::bigint as author from locked
    union all
    select 'poll_participation', votes.id, votes.guid, locked.post_id, votes.author_id
    from poll_participations as votes join locked on locked.id = votes.poll_id`,

  conversation: `
    with locked as (
      select id, guid from conversations where id = any(?) order by id for update
    ), gone as (
      delete from conversations using locked where conversations.id = locked.id
    )
    select 'conversation' as record, id, guid, null::bigint as held, null::bigint as author from locked
    union all
    select 'message', messages.id, messages.guid, null, null
    from messages join locked on locked.id = messages.conversation_id`,
} as const

/**
 * Only what people do here holds a participation: those of other pods ask for theirs, and take it back, themselves. Nor does what
 * authors do under their own posts.
 */
const letGo = `
  with released as (
    select post_id, author_id, count(*)::integer as holds
    from unnest(?::bigint[], ?::bigint[]) as held (post_id, author_id)
    group by post_id, author_id
  ), locked as (
    select participations.id, participations.count - released.holds as remaining
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

const holdPostsOf = `
  select id from posts where id in (select post_id from photos where id = any(?)) order by id for update`

const emptyWithout = `
  with chosen as (
    select unnest(?::bigint[]) as id
  )
  select posts.id, posts.guid, posts.public
  from posts
  where posts.id in (select post_id from photos join chosen using (id))
    and posts.type = 'StatusMessage'
    and posts.text !~ '[^[:space:]]'
    and not exists (
      select from photos as others
      where others.post_id = posts.id and not exists (select from chosen where chosen.id = others.id)
    )`
