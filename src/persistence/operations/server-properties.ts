import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** Properties of the PostgreSQL server and of the current database. */
export interface ServerProperties {
  readonly version: string
  /** `server_version_num`, such as 180001. */
  readonly versionNumber: number
  readonly encoding: string
  readonly collation: string
  readonly connections: number
  /** Connections that are not reserved for superusers. */
  readonly maxConnections: number
  readonly fsync: string
  readonly synchronousCommit: string
}

export async function readServerProperties(db: Knex): Promise<ServerProperties> {
  return queryRow<ServerProperties>(db, SERVER_PROPERTIES_SQL)
}

const SERVER_PROPERTIES_SQL = `
  select
    current_setting('server_version') as "version",
    current_setting('server_version_num')::int as "versionNumber",
    pg_encoding_to_char(encoding) as "encoding",
    datcollate as "collation",
    (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as "connections",
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as "maxConnections",
    current_setting('fsync') as "fsync",
    current_setting('synchronous_commit') as "synchronousCommit"
  from pg_database where datname = current_database()`

/** The version of the server as a text, such as `18.1`. */
export async function readServerVersion(db: Knex): Promise<string> {
  const { version } = await queryRow<{ readonly version: string }>(
    db,
    `select current_setting('server_version') as version`,
  )
  return version
}

/** Whether the system has another version of the collation than the one with which the database was created. PostgreSQL 15 or newer. */
export async function hasCollationChanged(db: Knex): Promise<boolean> {
  const { hasChanged } = await queryRow<{ readonly hasChanged: boolean }>(db, COLLATION_CHANGED_SQL)
  return hasChanged
}

const COLLATION_CHANGED_SQL = `
  select datcollversion is distinct from pg_database_collation_actual_version(oid) as "hasChanged"
  from pg_database where datname = current_database()`

/** The size of the current database as a text, such as `12 GB`. */
export async function readDatabaseSize(db: Knex): Promise<string> {
  const { size } = await queryRow<{ readonly size: string }>(
    db,
    'select pg_size_pretty(pg_database_size(current_database())) as size',
  )
  return size
}

/** The bytes of the largest index of the pod's tables. */
export async function readLargestIndexBytes(db: Knex): Promise<number> {
  const { bytes } = await queryRow<{ readonly bytes: number }>(
    db,
    `select coalesce(max(pg_relation_size(oid)), 0)::float as bytes from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'i'`,
  )
  return bytes
}
