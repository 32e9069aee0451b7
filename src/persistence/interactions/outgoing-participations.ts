import type { Knex } from 'knex'
import { DELIVERY_PRIORITY } from '../outbound/delivery-priority.js'

/** A public post of a person of another pod. */
export interface PostOfPod {
  readonly guid: string
  readonly authorId: number
}

/** Takes an advisory lock: two simultaneous transactions would each insert a participation for the same author. */
export async function lockParticipations(transaction: Knex.Transaction): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('participations', 0))`)
}

/**
 * Returns the posts that get a participation now: the first post of each author without a waiting one; for a pod that has never
 * accepted any, one post in all. Waiting deliveries are found with the index `deliveries_line`.
 */
export async function findPostsToParticipateIn(
  transaction: Knex.Transaction,
  guids: readonly string[],
): Promise<readonly PostOfPod[]> {
  const { rows } = await transaction.raw(postsToParticipateIn, [[...guids]])
  return rows
}

const postsToParticipateIn = `
  with wanted as materialized (
    select posts.id, posts.guid, posts.author_id, pods.id as pod_id,
      case when pods.participation_at is null then 0 else posts.author_id end as line
    from unnest(?::text[]) as given(guid)
    join posts on posts.guid = given.guid
    join people on people.id = posts.author_id
    join pods on pods.id = people.pod_id
    where posts.public
  ), first as (
    select distinct on (pod_id, line) * from wanted order by pod_id, line, id
  )
  select guid, author_id as "authorId" from first
  where not exists (
    select from deliveries
    where deliveries.pod_id = first.pod_id and state = 'waiting' and priority = ${DELIVERY_PRIORITY.participation}
      and (line = 0 or person_id = line)
  )
  order by id`

/** Returns the next public post of each author of these posts; with a pod, the next posts of its other people too. */
export async function findNextPosts(
  db: Knex,
  guids: readonly string[],
  firstOfPod: number | null,
): Promise<readonly string[]> {
  const { rows } = await db.raw(nextPosts, [[...guids], firstOfPod])
  return rows.map(({ guid }: { guid: string }) => guid)
}

const AUTHORS_OF_NEW_POD = 100

const nextPosts = `
  with given as materialized (
    select posts.id, posts.author_id from unnest(?::text[]) as given(guid) join posts on posts.guid = given.guid
  ), authors as (
    select author_id, min(id) as after from given group by author_id
    union all
    (
      select people.id, (select min(id) from given) from people
      where people.pod_id = cast(? as bigint) and people.id not in (select author_id from given)
      limit ${AUTHORS_OF_NEW_POD}
    )
  )
  select next.guid from authors
  cross join lateral (
    select guid from posts
    -- The rows are compared so that no other index fits: by id alone it would read the posts of everybody else.
    where (posts.author_id, posts.id) > (authors.author_id, authors.after)
      and (posts.author_id, posts.id) <= (authors.author_id, 9223372036854775807)
      and posts.public
    order by posts.author_id, posts.id
    limit 1
  ) as next`
