import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

interface TableStatus {
  readonly name: string
  readonly bytes: number
  /** Estimated by the server. */
  readonly rows: number
  readonly deadRows: number
  readonly vacuumedAt: Date | null
}

export interface DatabaseStatus {
  readonly version: string
  readonly bytes: number
  readonly connections: number
  readonly maxConnections: number
  /** Seconds; null: no transaction runs. */
  readonly longestTransaction: number | null
  readonly waitingLocks: number
  /** Transactions since the oldest row was frozen; the server stops at two billion. */
  readonly transactionAge: number
  readonly replicas: number
  /** Seconds; null: no replica. */
  readonly replicaLag: number | null
  readonly tables: readonly TableStatus[]
  /** Statements, the slowest first. */
  readonly slowStatements: readonly SlowStatement[]
  /** `sample`: statements of more than half a second in the last hour, as running processes have measured them. */
  readonly slowStatementSource: 'pg_stat_statements' | 'sample'
}

interface SlowStatement {
  /** Text of the statement without values. */
  readonly text: string
  readonly count: number
  readonly maxMs: number
}

const TABLES = 30

/** Reads the statistics of the server: no table of the pod is scanned. */
export async function readDatabaseStatus(db: Knex): Promise<DatabaseStatus> {
  const [server, tables, slow] = await Promise.all([
    queryRow<ServerProperties>(db, DATABASE_STATUS_SQL),
    queryRows<TableStatus>(db, LARGEST_TABLES_SQL, [TABLES]),
    readSlowStatements(db),
  ])
  return { ...server, tables, ...slow }
}

type ServerProperties = Omit<DatabaseStatus, 'tables' | keyof SlowStatements>
type SlowStatements = Pick<DatabaseStatus, 'slowStatements' | 'slowStatementSource'>

/** The extension counts since its last reset, and for every client. It may be missing, not loaded, or not readable for this role. */
async function readSlowStatements(db: Knex): Promise<SlowStatements> {
  try {
    const statements = await queryRows<SlowStatement>(db, SLOW_STATEMENTS_SQL, [TEXT_CHARACTERS, SLOW_STATEMENTS])
    return { slowStatements: statements, slowStatementSource: 'pg_stat_statements' }
  } catch {
    const statements = await queryRows<SlowStatement>(db, RUNNING_STATEMENTS_SQL, [SLOW_STATEMENTS])
    return { slowStatements: statements, slowStatementSource: 'sample' }
  }
}

const SLOW_STATEMENTS = 20
const TEXT_CHARACTERS = 500

/** The extension replaces the values of queries, but not those of other statements, such as a password in `alter role`. */
const SLOW_STATEMENTS_SQL = `
  select left(regexp_replace(regexp_replace(query, '''[^'']*''', '''…''', 'g'), '\\s+', ' ', 'g'), ?) as text, calls::float as count, max_exec_time::float as "maxMs"
  from pg_stat_statements
  where dbid = (select oid from pg_database where datname = current_database())
  order by max_exec_time desc limit ?`

const RUNNING_STATEMENTS_SQL = `
  select slow->>'text' as text, sum((slow->>'count')::integer)::float as count, max((slow->>'maxMs')::integer)::float as "maxMs"
  from processes cross join jsonb_array_elements(facts->'slowStatements') as slow
  where seen_at > now() - interval '30 seconds'
  group by 1 order by 3 desc limit ?`

const DATABASE_STATUS_SQL = `
  select
    current_setting('server_version') as version,
    pg_database_size(current_database())::float as bytes,
    (select count(*) from pg_stat_activity where datname = current_database())::integer as connections,
    current_setting('max_connections')::integer as "maxConnections",
    (select extract(epoch from max(clock_timestamp() - xact_start)) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid())::float as "longestTransaction",
    (select count(*) from pg_locks where not granted)::integer as "waitingLocks",
    (select age(datfrozenxid) from pg_database where datname = current_database())::float as "transactionAge",
    (select count(*) from pg_stat_replication)::integer as replicas,
    (select extract(epoch from max(replay_lag)) from pg_stat_replication)::float as "replicaLag"`

const LARGEST_TABLES_SQL = `
  select schemaname || '.' || relname as name, pg_total_relation_size(relid)::float as bytes, n_live_tup::float as rows,
    n_dead_tup::float as "deadRows", greatest(last_vacuum, last_autovacuum) as "vacuumedAt"
  from pg_stat_user_tables
  order by bytes desc, name
  limit ?`
