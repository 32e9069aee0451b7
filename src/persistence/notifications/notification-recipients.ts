import { opaqueParam } from '../sql/opaque-param.js'

/** Rows that cause notifications, by their ids. */
export interface NotificationCauseRows {
  readonly posts: readonly number[]
  readonly comments: readonly number[]
  readonly likes: readonly number[]
  readonly reshares: readonly number[]
  readonly sharing: readonly { readonly userId: number; readonly personId: number }[]
  readonly newlyVisiblePosts: readonly { readonly userId: number; readonly postId: number }[]
}

/** Parts of a statement: CTEs, and a query for the occurrences (recipient, actor and target) that they return. */
interface RecipientCtes {
  /** Names of the kinds of causes. Each combination is a prepared statement of its own. */
  readonly names: readonly string[]
  readonly ctes: string
  readonly occurrences: string
}

/**
 * Builds the CTEs for the given causes and appends their parameters to `values`. Kinds without causes are left out, because planning
 * all of them costs more than the execution. `opaqueParam` keeps one generic plan for any number of rows.
 */
export function recipientCtesSql(causes: NotificationCauseRows, values: unknown[]): RecipientCtes {
  const { comments, likes, reshares, sharing } = causes
  const mentioningPosts = [...causes.posts.map((postId) => ({ userId: null, postId })), ...causes.newlyVisiblePosts]
  const list = (ids: readonly (number | null)[]) => opaqueParam(`$${values.push(ids)}`, 'bigint[]')
  const kinds = [
    comments.length > 0 && { name: 'comments', ...commentCtesSql(list(comments)) },
    mentioningPosts.length > 0 && {
      name: 'posts',
      ...mentionCtesSql(
        list(mentioningPosts.map(({ postId }) => postId)),
        list(mentioningPosts.map(({ userId }) => userId)),
      ),
    },
    likes.length > 0 && { name: 'likes', ...likeCtesSql(list(likes)) },
    reshares.length > 0 && { name: 'reshares', ...reshareCtesSql(list(reshares)) },
    sharing.length > 0 && {
      name: 'sharing',
      ...sharingCtesSql(list(sharing.map(({ userId }) => userId)), list(sharing.map(({ personId }) => personId))),
    },
  ].filter((kind) => kind !== false)
  return {
    names: kinds.map(({ name }) => name),
    ctes: kinds.map(({ ctes }) => ctes).join(', '),
    occurrences: kinds
      .flatMap(({ occurrenceCtes }) => occurrenceCtes.map((cte) => `select * from ${cte}`))
      .join(' union all '),
  }
}

/** CTEs of one kind. Occurrence CTEs return type, user, actor, post, comment, mention, person, and the position of the cause. */
interface CauseCtes {
  readonly ctes: string
  readonly occurrenceCtes: readonly string[]
}

/**
 * Notifies mentioned people of the mention only, and otherwise the author of the post and its participants. On a private post, a
 * mention counts for people who have commented on it or liked it: they can see it.
 */
function commentCtesSql(ids: string): CauseCtes {
  const ctes = `
  comment as (
    select comments.id, comments.post_id, comments.author_id, posts.author_id as post_author_id, posts.public, cause.position
    from unnest(${ids}) with ordinality as cause(id, position)
    join comments on comments.id = cause.id
    join posts on posts.id = comments.post_id
  ), mentioned_in_comment as (
    select
      'mentioned_in_comment' as type, users.id as user_id, comment.author_id as actor_id, comment.post_id,
      comment.id as comment_id, mentions.id as mention_id, null::bigint as person_id, comment.position
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
      users.id, comment.author_id, comment.post_id, null::bigint, null::bigint, null::bigint, comment.position
    from comment
    cross join lateral (
      select comment.post_author_id as person_id
      union
      select author_id from participations where post_id = comment.post_id
    ) as recipient
    join users on users.person_id = recipient.person_id
    where recipient.person_id <> comment.author_id
      and not exists (
        select from mentioned_in_comment as mentioned where mentioned.comment_id = comment.id and mentioned.user_id = users.id
      )
      and (
        recipient.person_id = comment.post_author_id
        or not exists (select from hidden_posts where user_id = users.id and post_id = comment.post_id)
      )
  )`
  return { ctes, occurrenceCtes: ['mentioned_in_comment', 'commented'] }
}

/** Notifies the people whom a post mentions. With a user id, only that user. */
function mentionCtesSql(ids: string, userIds: string): CauseCtes {
  const ctes = `
  mentioned as (
    select
      'mentioned', users.id, posts.author_id, posts.id, null::bigint, mentions.id, null::bigint, cause.position
    from unnest(${ids}, ${userIds}) with ordinality as cause(id, user_id, position)
    join posts on posts.id = cause.id
    join mentions on mentions.post_id = posts.id and mentions.person_id <> posts.author_id
    join users on users.person_id = mentions.person_id and users.id = coalesce(cause.user_id, users.id)
    where posts.public or exists (select from post_visibilities where user_id = users.id and post_id = posts.id)
  )`
  return { ctes, occurrenceCtes: ['mentioned'] }
}

function likeCtesSql(ids: string): CauseCtes {
  const ctes = `
  liked as (
    select
      case when likes.comment_id is null then 'liked' else 'liked_comment' end,
      users.id, likes.author_id, posts.id, likes.comment_id, null::bigint, null::bigint, cause.position
    from unnest(${ids}) with ordinality as cause(id, position)
    join likes on likes.id = cause.id and likes.positive
    left join comments on comments.id = likes.comment_id
    join posts on posts.id = coalesce(likes.post_id, comments.post_id)
    join users on users.person_id = coalesce(comments.author_id, posts.author_id)
    where users.person_id <> likes.author_id
  )`
  return { ctes, occurrenceCtes: ['liked'] }
}

function reshareCtesSql(ids: string): CauseCtes {
  const ctes = `
  reshared as (
    select
      'reshared', users.id, reshares.author_id, roots.id, null::bigint, null::bigint, null::bigint, cause.position
    from unnest(${ids}) with ordinality as cause(id, position)
    join posts as reshares on reshares.id = cause.id
    join posts as roots on roots.id = reshares.root_id
    join users on users.person_id = roots.author_id
    where users.person_id <> reshares.author_id
  )`
  return { ctes, occurrenceCtes: ['reshared'] }
}

function sharingCtesSql(userIds: string, personIds: string): CauseCtes {
  const ctes = `
  started_sharing as (
    select
      'started_sharing', users.id, cause.person_id, null::bigint, null::bigint, null::bigint, cause.person_id, cause.position
    from unnest(${userIds}, ${personIds}) with ordinality as cause(user_id, person_id, position)
    join users on users.id = cause.user_id
  )`
  return { ctes, occurrenceCtes: ['started_sharing'] }
}
