import type { Knex } from 'knex'

interface TableFacts {
  readonly name: string
  readonly bytes: number
  /** Estimated by the server. */
  readonly rows: number
  readonly deadRows: number
  readonly vacuumedAt: Date | null
}

export interface DatabaseFacts {
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
  readonly tables: readonly TableFacts[]
}

const TABLES = 30

/** Reads the statistics of the server: no table of the pod is scanned. */
export async function readDatabaseFacts(db: Knex): Promise<DatabaseFacts> {
  const [{ rows: single }, { rows: tables }] = await Promise.all([
    db.raw(selectDatabaseFacts),
    db.raw(largestTables, [TABLES]),
  ])
  return { ...single[0], tables }
}

const selectDatabaseFacts = `
  select
    current_setting('server_version') as version,
    pg_database_size(current_database())::float as bytes,
    (select count(*) from pg_stat_activity where datname = current_database())::integer as connections,
    current_setting('max_connections')::integer as "maxConnections",
    (select extract(epoch from max(now() - xact_start)) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid())::float as "longestTransaction",
    (select count(*) from pg_locks where not granted)::integer as "waitingLocks",
    (select age(datfrozenxid) from pg_database where datname = current_database())::float as "transactionAge",
    (select count(*) from pg_stat_replication)::integer as replicas,
    (select extract(epoch from max(replay_lag)) from pg_stat_replication)::float as "replicaLag"`

const largestTables = `
  select schemaname || '.' || relname as name, pg_total_relation_size(relid)::float as bytes, n_live_tup::float as rows,
    n_dead_tup::float as "deadRows", greatest(last_vacuum, last_autovacuum) as "vacuumedAt"
  from pg_stat_user_tables
  order by bytes desc, name
  limit ?`
