import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { isRetractedSql } from '../models/tombstone.js'
import { UNDELIVERED_LIMITS } from '../outbound/limits.js'
import { hasRowSql } from '../sql/has-row.js'
import { rowByRowSql } from '../sql/row-by-row.js'

export interface ReceivedParticipation {
  readonly guid: string
  readonly author: string
  readonly postGuid: string
  readonly createdAt: Date
}

export interface ParticipationOutcome {
  readonly guid: string
  /** Null: too many pods that have never answered participate in the post already. */
  readonly id: number | null
}

/** Inserts one participation per person and post, with one statement. Returns new ones, and with a null id those over the limit. */
export async function insertParticipations(
  transaction: Knex.Transaction,
  participations: readonly ReceivedParticipation[],
): Promise<readonly ParticipationOutcome[]> {
  return queryRows<ParticipationOutcome>(transaction, NEW_PARTICIPATIONS_SQL, [JSON.stringify(participations)])
}

/** The row comparison fits only the unique index of post and author. The index of authors would read all their participations. */
const IS_SAME_PAIR_SQL = `
  participations where (post_id, author_id) >= (posts.id, people.id) and (post_id, author_id) <= (posts.id, people.id)`

/**
 * Inserts participations with a limit per post for pods that have never answered. An attacker can invent any number of pod names, and
 * each comment would cause a delivery to each of them.
 */
const NEW_PARTICIPATIONS_SQL = `
  with input as materialized (
    select input.guid, posts.id as post_id, people.id as author_id, input."createdAt" as created_at,
      pods.answered_at is null as unanswered,
      row_number() over (partition by posts.id, pods.answered_at is null order by people.id) as rank
    from json_to_recordset(?::json) as input(guid text, author text, "postGuid" text, "createdAt" timestamptz)
    ${rowByRowSql('people', 'people.address = input.author')}
    ${rowByRowSql('pods', 'pods.id = people.pod_id')}
    ${rowByRowSql('posts', `posts.guid = input."postGuid"`)}
    where people.closed_at is null and not ${isRetractedSql('participation', 'input.guid', ['people.id'])}
      and ${hasRowSql(IS_SAME_PAIR_SQL)} is not true
  ), remaining as materialized (
    select post_id, ${UNDELIVERED_LIMITS.participantsOfNeverAnsweredPods} - (
      select count(*) from (
        select from participations
        ${rowByRowSql('people', 'people.id = participations.author_id')}
        ${rowByRowSql('pods', 'pods.id = people.pod_id')}
        where participations.post_id = posts.post_id and pods.answered_at is null
        limit ${UNDELIVERED_LIMITS.participantsOfNeverAnsweredPods}
      ) as unanswered
    ) as count
    from (select distinct post_id from input where unanswered) as posts
  ), ranked as (
    select input.*, unanswered and rank > remaining.count as is_too_many
    from input
    left join remaining using (post_id)
  ), inserted as (
    insert into participations (guid, post_id, author_id, created_at)
    select guid, post_id, author_id, created_at from ranked where not is_too_many
    order by post_id, author_id
    on conflict do nothing
    returning id, guid
  )
  select id, guid from inserted
  union all
  select null, guid from ranked where is_too_many`
