import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowByRowSql } from '../sql/row-by-row.js'
import type { RecordKey } from './delete-messages.js'
import { POD_IS_ASLEEP_SQL } from './delivery-conditions.js'
import { DELIVERY_PRIORITY } from './delivery-priority.js'
import { UNDELIVERED_LIMITS } from './limits.js'
import { remainingPodsSql } from './remaining-pods.js'

/**
 * Returns those of the retractions to blocked people that are sent. Left out are:
 * - retractions that exist: a repeat of the interaction gets no second answer,
 * - retractions of stored interactions: the row stays here, so the other pod must not delete its own; nor may it delete an interaction of
 *   another person whose guid was used again,
 * - those beyond the waiting relays and retractions that a pod may have, and all to pods that are asleep.
 *
 * Two transactions at the same time may exceed the limit by their batches.
 */
export async function planRetractionsToBlocked(
  transaction: Knex.Transaction,
  retractions: readonly (RecordKey & { readonly personId: number })[],
): Promise<readonly RecordKey[]> {
  if (retractions.length === 0) return []
  return queryPrepared<RecordKey>(transaction, 'plan-retractions-to-blocked', PLAN_SQL, [
    retractions.map(({ record }) => record),
    retractions.map(({ guid }) => guid),
    retractions.map(({ personId }) => personId),
  ])
}

/** SQL condition: no row of this kind has the guid. `offset 0`: the planner must not read the whole table into a hash table instead. */
function isNotStoredSql(record: string, table: string): string {
  return `not exists (select from ${table} where ${table}.guid = input.guid and input.record = '${record}' offset 0)`
}

const PLAN_SQL = `
  with wanted as materialized (
    select input.record, input.guid, pods.id as pod_id
    from unnest(${opaqueParam('$1', 'text[]')}, $2::text[], $3::bigint[]) as input(record, guid, person_id)
    ${rowByRowSql('people', 'people.id = input.person_id')}
    ${rowByRowSql('pods', 'pods.id = people.pod_id')}
    where not ${POD_IS_ASLEEP_SQL}
      and not exists (
        select from outbound_messages as written
        where written.guid = input.guid and written.record = input.record and written.verb = 'retract' offset 0
      )
      and ${isNotStoredSql('comment', 'comments')}
      and ${isNotStoredSql('like', 'likes')}
      and ${isNotStoredSql('poll_participation', 'poll_participations')}
  ), remaining as materialized (${remainingPodsSql(
    DELIVERY_PRIORITY.relay,
    UNDELIVERED_LIMITS.retractionsToBlocked,
    'select distinct pod_id from wanted',
  )}
  ), ranked as (
    select record, guid, remaining.count as remaining, row_number() over (partition by pod_id order by record, guid) as rank
    from wanted join remaining using (pod_id)
  )
  select record, guid from ranked where rank <= remaining`
