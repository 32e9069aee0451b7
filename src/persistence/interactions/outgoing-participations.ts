import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { DELIVERY_PRIORITY } from '../outbound/delivery-priority.js'
import { UNDELIVERED_LIMITS } from '../outbound/limits.js'
import { remainingPodsSql } from '../outbound/remaining-pods.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowByRowSql } from '../sql/row-by-row.js'

/** A public post of a person of another pod. */
export interface PostOfPod {
  readonly guid: string
  readonly authorId: number
  readonly podId: number
}

/** Posts that get a participation now, and posts that get theirs later. */
export interface ParticipationPlan {
  readonly next: readonly PostOfPod[]
  readonly postponed: readonly PostOfPod[]
}

/** Takes an advisory lock: two simultaneous transactions would each insert a participation for the same author. */
export async function lockParticipations(transaction: Knex.Transaction): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('participations', 0))`)
}

/**
 * Divides the posts into those that get a participation now and others, which are stored as postponed:
 * - A pod that has never accepted a participation gets one in all.
 * - Any other pod gets a limited number, and at least one for each author.
 * - A post whose participation is written gets none, even after its delivery: the outbox row of the post may wait meanwhile.
 *
 * Waiting deliveries are found with the index `deliveries_line`.
 */
export async function planParticipations(
  transaction: Knex.Transaction,
  participations: readonly NewParticipation[],
): Promise<ParticipationPlan> {
  const posts = await queryPrepared<PostOfPod & { isNext: boolean }>(
    transaction,
    'plan-participations',
    PLAN_PARTICIPATIONS_SQL,
    [participations.map(({ postGuid }) => postGuid), participations.map(({ guid }) => guid)],
  )
  return { next: posts.filter(({ isNext }) => isNext), postponed: posts.filter(({ isNext }) => !isNext) }
}

/** The guid of a participation, and of its post. */
interface NewParticipation {
  readonly postGuid: string
  readonly guid: string
}

const PLAN_PARTICIPATIONS_SQL = `
  with wanted as materialized (
    select posts.id, posts.guid, posts.author_id, pods.id as pod_id, pods.participation_at is null as is_first
    from unnest(${opaqueParam('$1', 'text[]')}, $2::text[]) as input(guid, participation)
    ${rowByRowSql('posts', 'posts.guid = input.guid and posts.public')}
    ${rowByRowSql('people', 'people.id = posts.author_id')}
    ${rowByRowSql('pods', 'pods.id = people.pod_id')}
    where not exists (
      select from outbound_messages as written
      where written.record = 'participation' and written.guid = input.participation and written.verb = 'create'
    )
  ), remaining as materialized (${remainingPodsSql(
    DELIVERY_PRIORITY.participation,
    UNDELIVERED_LIMITS.participationsWaiting,
    'select distinct pod_id from wanted',
  )}
  ), ranked as (
    select wanted.*, remaining.count as remaining,
      row_number() over (partition by wanted.pod_id order by id) as rank_in_pod,
      row_number() over (partition by wanted.pod_id, author_id order by id) as rank_of_author
    from wanted join remaining using (pod_id)
  ), decided as (
    select ranked.*,
      case
        when is_first then rank_in_pod = 1 and remaining = ${UNDELIVERED_LIMITS.participationsWaiting}
        else rank_in_pod <= remaining or (
          rank_of_author = 1 and not exists (
            select from deliveries
            where deliveries.pod_id = ranked.pod_id and state = 'waiting' and priority = ${DELIVERY_PRIORITY.participation}
              and person_id = ranked.author_id
          )
        )
      end as is_next
    from ranked
  ), postponed as (
    insert into postponed_participations (post_id, pod_id)
    select id, pod_id from decided where not is_next
    on conflict do nothing
  )
  select guid, author_id as "authorId", pod_id as "podId", is_next as "isNext" from decided order by id`

/** Returns those of the pods for which no participation waits. */
export async function findPodsWithoutWaitingParticipations(
  db: Knex,
  podIds: readonly number[],
): Promise<readonly number[]> {
  const rows = await queryPrepared<{ id: number }>(db, 'pods-without-waiting-participations', IDLE_PODS_SQL, [podIds])
  return rows.map(({ id }) => id)
}

const IDLE_PODS_SQL = `
  select id from unnest($1::bigint[]) as input(id)
  where not exists (
    select from deliveries
    where pod_id = input.id and state = 'waiting' and priority = ${DELIVERY_PRIORITY.participation}
  )`

/** Whether posts of the pod wait until it has accepted other participations. */
export async function hasPostponedPosts(db: Knex, podId: number): Promise<boolean> {
  const rows = await queryPrepared(db, 'postponed-posts-exist', POSTPONED_POSTS_EXIST_SQL, [podId])
  return rows.length > 0
}

const POSTPONED_POSTS_EXIST_SQL = 'select 1 from postponed_participations where pod_id = $1 limit 1'

/** Deletes the postponed posts of the pod that are next, in the order of their arrival, and returns their guids. */
export async function deletePostponedPosts(transaction: Knex.Transaction, podId: number): Promise<readonly string[]> {
  const rows = await queryPrepared<{ guid: string }>(
    transaction,
    'delete-postponed-posts',
    DELETE_POSTPONED_POSTS_SQL,
    [podId, UNDELIVERED_LIMITS.participationsWaiting],
  )
  return rows.map(({ guid }) => guid)
}

const DELETE_POSTPONED_POSTS_SQL = `
  with next_posts as materialized (
    select post_id from postponed_participations where pod_id = $1 order by post_id limit $2
  ), deleted_rows as (
    delete from postponed_participations using next_posts
    where postponed_participations.post_id = next_posts.post_id
    returning postponed_participations.post_id
  )
  select posts.guid from deleted_rows ${rowByRowSql('posts', 'posts.id = deleted_rows.post_id')}`
