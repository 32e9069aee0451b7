import type { Knex } from 'knex'
import { IS_UNDECIDED_SQL, UNDECIDED_SIGN_UPS_SQL } from '../accounts/pending-sign-ups.js'
import { queryRow, queryRows } from '../database/database.js'
import { POD_IS_PAUSED_SQL } from '../outbound/delivery-conditions.js'

interface Counted {
  readonly count: number
}

/** Metrics that every process exports alike. */
export interface SharedMetrics {
  readonly processes: readonly (Counted & { readonly kind: string; readonly version: string })[]
  /** `left`: seconds until the pause ends; null: it has no end. */
  readonly pausedQueues: readonly { readonly queue: string; readonly left: number | null }[]
  readonly deadLetters: readonly (Counted & { readonly queue: string; readonly fault: string })[]
  readonly quarantined: readonly (Counted & { readonly fault: string })[]
  readonly casesOpen: readonly (Counted & { readonly kind: string })[]
  /** Seconds; null: no case is open. */
  readonly oldestCase: number | null
  readonly signUpsPending: number
  /** Seconds; null: no sign-up waits. */
  readonly oldestSignUp: number | null
  readonly moderationActions: readonly (Counted & { readonly kind: string })[]
  readonly filterHits: readonly (Counted & { readonly kind: string })[]
  /** `candidates`: rows older than the limit when the last removal ended; null: none has ended. */
  readonly pruned: readonly (Counted & { readonly category: string; readonly candidates: number | null })[]
  /** Seconds; null: no check has seen a certificate. */
  readonly certificateEnds: number | null
  /** Connections of all programs to the database server. */
  readonly connections: number
  readonly maxConnections: number
  /** Seconds; null: no replica. */
  readonly replicationLag: number | null
  readonly tables: readonly { readonly table: string; readonly bytes: number }[]
  /** Milliseconds since 1970, by the clock of the database. */
  readonly databaseClock: number
}

/** Numbers of PostgreSQL's type `numeric` are read as texts. */
type SharedRow = Omit<SharedMetrics, NumericColumn> & Readonly<Record<NumericColumn, string | null>>
type NumericColumn = 'oldestCase' | 'oldestSignUp' | 'certificateEnds' | 'replicationLag' | 'databaseClock'

const FAULTS = 30
const TABLES = 30

/** Reads the metrics with one statement. The rows of dead letters are counted without their payloads. */
export async function readSharedMetrics(db: Knex): Promise<SharedMetrics> {
  const { oldestCase, signUpsPending, oldestSignUp, certificateEnds, replicationLag, databaseClock, ...rest } =
    await queryRow<SharedRow>(
      db,
      `
    select
      ${jsonListSql(`select kind, version, count(*) from processes where seen_at > now() - interval '30 seconds' group by 1, 2`)} as processes,
      ${jsonListSql(PAUSED_QUEUES_SQL)} as "pausedQueues",
      ${jsonListSql(topFaultsSql(DEAD_LETTERS_SQL))} as "deadLetters",
      ${jsonListSql(topFaultsSql(`select '' as queue, fault, count(*) from quarantine group by 2`))} as quarantined,
      ${jsonListSql(`select kind, count(*) from moderation_cases where state in ('open', 'taken') group by 1`)} as "casesOpen",
      (select extract(epoch from now() - min(coalesce(
        (select max(at) from moderation_case_events where case_id = cases.id and event = 'reopened'), first_reported_at
      ))) from moderation_cases as cases where state in ('open', 'taken')) as "oldestCase",
      ${UNDECIDED_SIGN_UPS_SQL} as "signUpsPending",
      (select extract(epoch from now() - min(coalesce(confirmed_at, created_at))) from pending_sign_ups where ${IS_UNDECIDED_SQL}) as "oldestSignUp",
      (select extract(epoch from max(certificate_ends_at) - now()) from checks) as "certificateEnds",
      (select count(*)::integer from pg_stat_activity where backend_type = 'client backend') as connections,
      current_setting('max_connections')::integer as "maxConnections",
      ${jsonListSql(`select kind, count(*) from moderation_actions group by 1`)} as "moderationActions",
      ${jsonListSql('select kind, hits as count from filter_totals')} as "filterHits",
      ${jsonListSql('select category, removed_rows as count, candidates from prune_progress')} as pruned,
      (select extract(epoch from max(replay_lag)) from pg_stat_replication) as "replicationLag",
      ${jsonListSql(`select relname as table, pg_total_relation_size(relid) as bytes from pg_stat_user_tables
        where schemaname = 'public' order by 2 desc, 1 limit ${TABLES}`)} as tables,
      extract(epoch from clock_timestamp()) * 1000 as "databaseClock"`,
    )
  return {
    ...rest,
    oldestCase: numberOrNull(oldestCase),
    signUpsPending: Number(signUpsPending),
    oldestSignUp: numberOrNull(oldestSignUp),
    certificateEnds: numberOrNull(certificateEnds),
    replicationLag: numberOrNull(replicationLag),
    databaseClock: Number(databaseClock),
  }
}

const PAUSED_QUEUES_SQL = `
  select queue, extract(epoch from until - now())::float as left
  from queue_controls where state = 'paused' and (until is null or until > now())`

const DEAD_LETTERS_SQL = `
  select queue, coalesce(data ->> 'fault', 'unknown') as fault, count(*) from outbox where failed_at is not null group by 1, 2
  union all
  select 'outbound', coalesce(last_fault, 'unknown'), count(*) from deliveries where state = 'dead' group by 2`

/** The most frequent faults by name; all others are `other`. */
function topFaultsSql(counted: string): string {
  return `
    select queue, case when rank <= ${FAULTS} then fault else 'other' end as fault, sum(count) as count
    from (select *, dense_rank() over (order by total desc, fault) as rank
      from (select *, sum(count) over (partition by fault) as total from (${counted}) as faults) as totals) as ranked
    group by 1, 2`
}

function jsonListSql(query: string): string {
  return `(select coalesce(json_agg(item), '[]') from (${query}) as item)`
}

function numberOrNull(value: unknown): number | null {
  return value === null ? null : Number(value)
}

/** Numbers of waiting work for another pod. */
export interface PeerMetrics {
  /** Null: all pods that are not among the first. */
  readonly peer: string | null
  readonly waiting: number
  /** Seconds; null: nothing waits. */
  readonly oldest: number | null
  readonly failures: number
  /** Messages and deliveries of the last hour. */
  readonly received: number
  readonly delivered: number
  /** Seconds since the oldest due delivery without an attempt, for a pod that accepts messages, was written; null: there is none. */
  readonly oldestAvailable: number | null
}

/** The pods with the most waiting deliveries, failures and received messages, and the sum of all others. */
export async function readMetricsOfOtherPods(db: Knex, peers: number): Promise<readonly PeerMetrics[]> {
  return queryRows<PeerMetrics>(
    db,
    `with counted as (
       select pod_id, count(*) as waiting, min(created_at) as since,
         min(created_at) filter (where attempts = 0 and due_at <= now()) as untried_since
       from deliveries where state = 'waiting' group by pod_id
     ), exchanged as (
       select pod_id, sum(received) as received, sum(delivered) as delivered
       from pod_slots where slot > now() - interval '1 hour' group by pod_id
     ), ranked as (
       select pods.host || case when pods.port = 443 then '' else ':' || pods.port end as name,
         coalesce(counted.waiting, 0) as waiting, counted.since, counted.untried_since, pods.failures,
         coalesce(exchanged.received, 0) as received, coalesce(exchanged.delivered, 0) as delivered,
         pods.failures = 0 and pods.offline_since is null and pods.blocked_at is null and not ${POD_IS_PAUSED_SQL} as is_available,
         row_number() over (
           order by coalesce(counted.waiting, 0) + pods.failures + coalesce(exchanged.received, 0) desc, pods.id
         ) as rank
       from pods
       left join counted on counted.pod_id = pods.id
       left join exchanged on exchanged.pod_id = pods.id
       where counted.waiting > 0 or pods.failures > 0 or exchanged.pod_id is not null
     )
     select case when rank <= :peers then name end as peer, sum(waiting)::float as waiting,
       extract(epoch from now() - min(since))::float as oldest, sum(failures)::float as failures,
       sum(received)::float as received, sum(delivered)::float as delivered,
       extract(epoch from now() - min(untried_since) filter (where is_available))::float as "oldestAvailable"
     from ranked group by 1`,
    { peers },
  )
}
