import type { Knex } from 'knex'
import { formatAddressHost } from '../../protocol/address.js'
import type { RecordKind } from '../../protocol/entities/registry.js'
import { queryRows } from '../database/database.js'
import { RECORD_KINDS, RECORD_TABLES } from '../sql/record-tables.js'

/** A row that has a trace, or belongs to one that has. */
export interface TraceStep {
  readonly at: Date
  readonly event:
    | 'rejected'
    | 'waiting'
    | 'queued'
    | 'given_up'
    | 'stored'
    | 'notified'
    | 'sent'
    | 'delivered'
    | 'delivery_waiting'
    | 'delivery_given_up'
    | 'audited'
  /** The type and guid of the entity; of work that is queued its queue and job. */
  readonly type: string | null
  readonly guid: string | null
  /** Number of notifications, of recipients of a sent message, or of pods where it has arrived. */
  readonly count: number | null
  /** The other pod of a delivery; null if a message has arrived at several. */
  readonly pod: string | null
  /** A fault, or what a message waits for. */
  readonly detail: string | null
}

/** The newest rows of each table are searched, which takes about a second. */
const ROWS_SEARCHED = 500_000

/**
 * Finds what belongs to a trace, in the order of the pipeline. The tables have no index on the trace, whose entries would cost more for
 * each message than this search, which only operators start.
 */
export async function findTraceSteps(db: Knex, trace: string): Promise<readonly TraceStep[]> {
  const rows = await queryRows<Omit<TraceStep, 'pod'> & { readonly host: string | null; port: number }>(db, STEPS_SQL, {
    trace,
  })
  return rows.map(({ host, port, ...step }) => {
    return { ...step, pod: host === null ? null : formatAddressHost({ host, port }) }
  })
}

const TRACE = 'cast(:trace as uuid)'

/** Notifications are merged, so that those of an entity are found by its author and its post. */
const NOTIFIED_SQL = `
  select min(notifications.updated_at), count(*)::integer
  from notification_actors join notifications on notifications.id = notification_actors.notification_id`

function storedOf(kind: RecordKind): readonly string[] {
  const { table, tracedAt } = RECORD_TABLES[kind]
  return tracedAt === undefined
    ? []
    : [
        `select 4, ${tracedAt}, 'stored', '${kind}', guid, null::integer, null, null::text, null::integer from ${rowsOfTraceSql(table)}`,
      ]
}

/** The rows of the trace among the newest ones, read by the primary key. */
function rowsOfTraceSql(table: string): string {
  return `(select * from (select * from ${table} order by id desc limit ${ROWS_SEARCHED}) as newest where trace_id = ${TRACE}) as ${table}`
}

const STEPS_SQL = `
  with steps(step, at, event, type, guid, count, detail, host, port) as (
    select 1, received_at, 'rejected', entity, guid, times::integer, fault, null::text, null::integer
    from quarantine where trace_id = ${TRACE}
    union all
    select 2, accepted_at, 'waiting', name, null, null, waits_for, null, null from waiting where trace_id = ${TRACE}
    union all
    select 3, coalesce(failed_at, created_at), case when failed_at is null then 'queued' else 'given_up' end,
      queue || '/' || name, data ->> 'guid', null, data ->> 'fault', null, null
    from outbox where trace_id = ${TRACE}
    union all
    ${RECORD_KINDS.flatMap(storedOf).join(' union all ')}
    union all
    select 5, found.at, 'notified', found.type, found.guid, found.count, null, null, null
    from (
      select 'post' as type, posts.guid, notified.* from ${rowsOfTraceSql('posts')} cross join lateral (
        ${NOTIFIED_SQL} where notification_actors.person_id = posts.author_id and notifications.post_id in (posts.id, posts.root_id)
          and notifications.updated_at >= posts.stored_at
      ) as notified(at, count)
      union all
      select 'comment', comments.guid, notified.* from ${rowsOfTraceSql('comments')} cross join lateral (
        ${NOTIFIED_SQL} where notification_actors.person_id = comments.author_id and notifications.post_id = comments.post_id
          and notifications.updated_at >= comments.created_at
      ) as notified(at, count)
      union all
      select 'like', likes.guid, notified.* from ${rowsOfTraceSql('likes')} cross join lateral (
        ${NOTIFIED_SQL} where notification_actors.person_id = likes.author_id
          and (notifications.post_id = likes.post_id or notifications.comment_id = likes.comment_id)
          and notifications.updated_at >= likes.created_at
      ) as notified(at, count)
    ) as found where found.count > 0
    union all
    select 6, created_at, 'sent', record, guid, sent_to, verb, null, null from ${rowsOfTraceSql('outbound_messages')}
    union all
    select 7, max(results.at), 'delivered', outbound_messages.record, outbound_messages.guid, count(pods.id)::integer, null,
      case count(pods.id) when 1 then min(pods.host) end, min(pods.port)
    from ${rowsOfTraceSql('outbound_messages')}
    join message_results as results on results.message_id = outbound_messages.id and results.outcome = 'arrived'
    cross join lateral unnest(results.pod_ids) as pod_id join pods on pods.id = pod_id
    group by outbound_messages.id, outbound_messages.record, outbound_messages.guid
    union all
    select 8, coalesce(deliveries.died_at, deliveries.created_at),
      case deliveries.state when 'dead' then 'delivery_given_up' else 'delivery_waiting' end,
      outbound_messages.record, outbound_messages.guid, deliveries.attempts::integer, deliveries.last_fault, pods.host, pods.port
    from ${rowsOfTraceSql('outbound_messages')}
    join deliveries on deliveries.message_id = outbound_messages.id
    join pods on pods.id = deliveries.pod_id
    union all
    select 9, at, 'audited', target ->> 'type', target ->> 'guid', null, action, null, null
    from audit_entries where trace_id = :trace
  )
  select at, event, type, guid, count, detail, host, port from steps order by step, at, guid limit 1000`
