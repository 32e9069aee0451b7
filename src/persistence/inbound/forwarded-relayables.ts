import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'

/** A comment, like or vote for an account that has moved away. */
export interface ForwardedRelayable {
  /** The address of a known person. */
  readonly author: string
  readonly guid: string
}

/** The relayables that were not recorded before, and how many were left out because of the limit. */
interface RecordedForwards {
  readonly forwardable: readonly ForwardedRelayable[]
  readonly leftOut: number
}

/**
 * Records that relayables are forwarded, and returns those that were not recorded before. Beyond `limitOfPod` relayables in 24 hours by authors
 * of one pod, the others are left out. The guid counts for its author only, because anyone can sign any guid. Rows are inserted in one
 * order, so that two transactions cannot deadlock.
 */
export async function recordForwarded(
  transaction: Knex.Transaction,
  relayables: readonly ForwardedRelayable[],
  limitOfPod: number,
): Promise<RecordedForwards> {
  if (relayables.length === 0) return { forwardable: [], leftOut: 0 }
  return queryRow<RecordedForwards>(
    transaction,
    `with input as (
       select distinct people.id as author_id, input.guid, pod_id
       from unnest(?::text[], ?::text[]) as input(author, guid) join people on address = author
       where not exists (
         select from forwarded_relayables as known where known.author_id = people.id and known.guid = input.guid
       )
     ), recent as (
       select pods.pod_id, (
         select count(*) from forwarded_relayables as known
         where known.pod_id = pods.pod_id and known.forwarded_at > now() - interval '1 day'
       ) as rows
       from (select distinct pod_id from input) as pods
     ), placed as (
       select input.*, recent.rows + row_number() over (partition by input.pod_id order by author_id, guid) > ? as is_over
       from input join recent on recent.pod_id is not distinct from input.pod_id
     ), inserted as (
       insert into forwarded_relayables (author_id, guid, pod_id)
       select author_id, guid, pod_id from placed where not is_over
       order by author_id, guid
       on conflict do nothing
       returning author_id, guid
     )
     select (select count(*)::integer from placed where is_over) as "leftOut",
       coalesce((
         select json_agg(json_build_object('author', address, 'guid', inserted.guid))
         from inserted join people on people.id = author_id
       ), '[]') as forwardable`,
    [...rowsAsColumns(relayables, ['author', 'guid']), limitOfPod] as Knex.RawBinding[],
  )
}
