import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/**
 * Opens a case for each person who begins many conversations. It names their number, never a text. An open case is left as it is. One that
 * was closed before `reopenBefore` is opened again, unless further reports are ignored. Returns the opened cases.
 */
export async function createSenderCases(
  transaction: Knex.Transaction,
  senders: readonly { readonly authorId: number; readonly count: number }[],
  { at, reopenBefore }: { readonly at: Date; readonly reopenBefore: Date },
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
       on conflict (target_type, target_guid) do update set
         state = 'open', closed_at = null, changed_at = excluded.changed_at, last_reported_at = excluded.last_reported_at
         where moderation_cases.closed_at < :reopenBefore and not moderation_cases.ignore_further
       returning id, author_guid, first_reported_at
     )
     insert into moderation_case_events (case_id, at, event, text)
     select opened.id, :at, events.event, case events.event
       when 'reported' then senders.count || ' new conversations in an hour with people who do not follow the author' end
     from opened
     join people on people.guid = opened.author_guid
     join senders on senders."authorId" = people.id
     join (values (1, 'reported'), (2, 'reopened')) as events(place, event)
       on events.event = 'reported' or opened.first_reported_at < :at
     order by opened.id, events.place
     returning case_id as "caseId"`,
    { senders: JSON.stringify(senders), at, reopenBefore },
  )
  return [...new Set(rows.map(({ caseId }) => caseId))]
}
