import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { DELIVERY_PRIORITY } from '../outbound/delivery-priority.js'
import { UNDELIVERED_LIMITS } from '../outbound/limits.js'
import { remainingPodsSql } from '../outbound/remaining-pods.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowByRow } from '../sql/row-by-row.js'

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
 * Returns the posts that get a participation now. A pod that has never accepted any gets one in all. Any other pod gets a limited
 * number, and at least one for each author: after its arrival the following posts of the author are found. Posts whose participation
 * is written get none, even after its delivery: the outbox row of a post may wait while an earlier arrival causes its participation.
 * Waiting deliveries are found with the index `deliveries_line`.
 */
export async function findPostsToParticipateIn(
  transaction: Knex.Transaction,
  participations: readonly NewParticipation[],
): Promise<readonly PostOfPod[]> {
  return queryPrepared<PostOfPod>(transaction, 'posts-to-participate-in', POSTS_TO_PARTICIPATE_IN_SQL, [
    participations.map(({ postGuid }) => postGuid),
    participations.map(({ guid }) => guid),
  ])
}

/** The guid of a participation, and of its post. */
interface NewParticipation {
  readonly postGuid: string
  readonly guid: string
}

const POSTS_TO_PARTICIPATE_IN_SQL = `
  with wanted as materialized (
    select posts.id, posts.guid, posts.author_id, pods.id as pod_id, pods.participation_at is null as is_first
    from unnest(${opaqueParam('$1', 'text[]')}, $2::text[]) as given(guid, participation)
    ${rowByRow('posts', 'posts.guid = given.guid and posts.public')}
    ${rowByRow('people', 'people.id = posts.author_id')}
    ${rowByRow('pods', 'pods.id = people.pod_id')}
    where not exists (
      select from outbound_messages as written
      where written.record = 'participation' and written.guid = given.participation and written.verb = 'create'
    )
  ), remaining as materialized (${remainingPodsSql(
    DELIVERY_PRIORITY.participation,
    UNDELIVERED_LIMITS.participationsWaiting,
    'select distinct pod_id from wanted',
  )}
  ), placed as (
    select wanted.*, remaining.count as remaining,
      row_number() over (partition by wanted.pod_id order by id) as place_of_pod,
      row_number() over (partition by wanted.pod_id, author_id order by id) as place_of_author
    from wanted join remaining using (pod_id)
  )
  select guid, author_id as "authorId" from placed
  where case
    when is_first then place_of_pod = 1 and remaining = ${UNDELIVERED_LIMITS.participationsWaiting}
    else place_of_pod <= remaining or (
      place_of_author = 1 and not exists (
        select from deliveries
        where deliveries.pod_id = placed.pod_id and state = 'waiting' and priority = ${DELIVERY_PRIORITY.participation}
          and person_id = placed.author_id
      )
    )
  end
  order by id`

/** Participations delivered to a pod in one run. The run ended because none was left, or because its time was over. */
export interface DeliveredParticipations {
  readonly podId: number
  readonly postGuids: readonly string[]
  /** The pod had accepted none before: only one was sent, and the posts of its other authors were left out. */
  readonly isFirstOfPod: boolean
}

/** Returns the following public posts of the authors; for a pod that had accepted none before, those of its other people too. */
export async function findNextPosts(
  db: Knex,
  { podId, postGuids, isFirstOfPod }: DeliveredParticipations,
): Promise<readonly string[]> {
  const rows = await queryPrepared<{ guid: string }>(db, 'next-posts', NEXT_POSTS_SQL, [
    postGuids,
    isFirstOfPod ? podId : null,
  ])
  return rows.map(({ guid }) => guid)
}

const AUTHORS_OF_NEW_POD = 100
const POSTS_OF_AUTHOR = 50

const NEXT_POSTS_SQL = `
  with given as materialized (
    select posts.id, posts.author_id
    from unnest(${opaqueParam('$1', 'text[]')}) as given(guid)
    ${rowByRow('posts', 'posts.guid = given.guid')}
  ), authors as (
    select author_id, max(id) as after from given group by author_id
    union all
    (
      select people.id, (select min(id) from given) from people
      where people.pod_id = ${opaqueParam('$2', 'bigint')} and people.id not in (select author_id from given)
      limit ${AUTHORS_OF_NEW_POD}
    )
  )
  select next.guid from authors
  cross join lateral (
    select guid from posts
    -- The rows are compared so that no other index fits: by id alone it would read the posts of all other people.
    where (posts.author_id, posts.id) > (authors.author_id, authors.after)
      and (posts.author_id, posts.id) <= (authors.author_id, 9223372036854775807)
      and posts.public
    order by posts.author_id, posts.id
    limit ${POSTS_OF_AUTHOR}
  ) as next`
