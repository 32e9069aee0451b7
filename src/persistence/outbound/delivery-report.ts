import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import type { OutboundRecord } from './outbound-record.js'

/** Delivery state of a message about a record. */
export interface DeliveryReport {
  readonly verb: string
  readonly writtenAt: Date
  readonly sentTo: number
  readonly arrived: number
  readonly missing: readonly MissingDelivery[]
  /** The pods that have it, in the order of arrival. */
  readonly arrivedAt: readonly DeliveredCopy[]
  /** The pods it was not stored for. */
  readonly skipped: readonly SkippedDelivery[]
}

interface DeliveredCopy {
  readonly host: string
  readonly port: number
  readonly at: string
}

interface SkippedDelivery {
  readonly host: string
  readonly port: number
  readonly reason: 'asleep' | 'blocked'
}

export interface MissingDelivery {
  readonly state: 'waiting' | 'dead'
  readonly host: string
  readonly port: number
  readonly person: string | null
  readonly attempts: number
  /** Earliest time of the next attempt; null: none. */
  readonly nextTryAt: string | null
  readonly fault: string | null
  readonly status: number | null
}

/** Finds the stored messages about a record, in the order of insertion. */
export async function findDeliveryReports(
  db: Knex,
  record: OutboundRecord,
  guid: string,
): Promise<readonly DeliveryReport[]> {
  return queryRows<DeliveryReport>(
    db,
    `select messages.verb, messages.created_at as "writtenAt", messages.sent_to as "sentTo",
       greatest(messages.sent_to - count(deliveries.id), 0) as arrived,
       coalesce(
         json_agg(
           json_build_object(
             'state', deliveries.state,
             'host', pods.host,
             'port', pods.port,
             'person', people.address,
             'attempts', deliveries.attempts,
             'nextTryAt', case when deliveries.state = 'waiting' then greatest(deliveries.due_at, pods.next_try_at) end,
             'fault', coalesce(deliveries.last_fault, case when pods.failures > 0 then pods.status end),
             'status', deliveries.last_status
           ) order by deliveries.state, pods.host, pods.port, people.address
         ) filter (where deliveries.id is not null),
         '[]'
       ) as missing,
       ${resultsSql(`'at', min(results.at)`, `results.outcome = 'arrived'`, 'min(results.at)')} as "arrivedAt",
       ${resultsSql(`'reason', min(results.outcome)`, `results.outcome <> 'arrived'`, 'pods.host')} as skipped
     from outbound_messages as messages
     left join deliveries on deliveries.message_id = messages.id
     left join pods on pods.id = deliveries.pod_id
     left join people on people.id = deliveries.person_id
     where messages.record = ? and messages.guid = ?
     group by messages.id
     order by messages.id`,
    [record, guid],
  )
}

/** The pods of some results of the message, each once. */
function resultsSql(property: string, condition: string, order: string): string {
  return `coalesce((
    select json_agg(result.pod order by result.position, result.pod ->> 'host')
    from (
      select json_build_object('host', pods.host, 'port', pods.port, ${property}) as pod, ${order} as position
      from message_results as results cross join lateral unnest(results.pod_ids) as pod_id join pods on pods.id = pod_id
      where results.message_id = messages.id and ${condition}
      group by pods.id
    ) as result
  ), '[]')`
}
