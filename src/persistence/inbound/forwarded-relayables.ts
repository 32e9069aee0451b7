import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'

/** A comment, like or vote for an account that has moved away. */
export interface ForwardedRelayable {
  /** The address of a known person. */
  readonly author: string
  readonly guid: string
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
): Promise<readonly ForwardedRelayable[]> {
  if (relayables.length === 0) return []
  return queryRows<ForwardedRelayable>(
    transaction,
    `with input as (
       select distinct people.id as author_id, input.guid, pod_id
       from unnest(?::text[], ?::text[]) as input(author, guid) join people on address = author
       where not exists (
         select from forwarded_relayables as known where known.author_id = people.id and known.guid = input.guid
       )
     ), placed as (
       select *, row_number() over (partition by pod_id order by author_id, guid) as place from input
     ), recent as (
       select pod_id, count(*) as rows from forwarded_relayables where forwarded_at > now() - interval '1 day' group by pod_id
     ), inserted as (
       insert into forwarded_relayables (author_id, guid, pod_id)
       select author_id, guid, placed.pod_id
       from placed left join recent on recent.pod_id is not distinct from placed.pod_id
       where place + coalesce(recent.rows, 0) <= ?
       order by author_id, guid
       on conflict do nothing
       returning author_id, guid
     )
     select address as author, inserted.guid from inserted join people on people.id = author_id`,
    [...rowsAsColumns(relayables, ['author', 'guid']), limitOfPod] as Knex.RawBinding[],
  )
}
