import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** Opens a case for each person who begins many conversations. It names their number, never a text. An open case is left as it is. Returns the new ones. */
export async function createSenderCases(
  transaction: Knex.Transaction,
  senders: readonly { readonly authorId: number; readonly count: number }[],
  at: Date,
): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly caseId: number }>(
    transaction,
    `with senders as (
       select * from json_to_recordset(cast(:senders as json)) as input("authorId" bigint, count integer)
     ), opened as (
       insert into moderation_cases (
         kind, target_type, target_guid, author_id, author_guid, author_address, public, target_created_at,
         first_reported_at, last_reported_at, changed_at
       )
       select 'cluster', 'person', people.guid, people.id, people.guid, people.address, true, people.created_at, :at, :at, :at
       from senders join people on people.id = senders."authorId"
       on conflict (target_type, target_guid) do nothing
       returning id, author_id
     )
     insert into moderation_case_events (case_id, at, event, text)
     select opened.id, :at, 'reported', senders.count || ' new conversations in an hour with people who do not follow the author'
     from opened join senders on senders."authorId" = opened.author_id
     returning case_id as "caseId"`,
    { senders: JSON.stringify(senders), at },
  )
  return rows.map(({ caseId }) => caseId)
}
