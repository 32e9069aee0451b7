import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** Properties of a server to which the database of a pod moves. */
export interface MoveTargetProperties {
  readonly version: number
  readonly name: string
  readonly encoding: string
  readonly trigrams: boolean
  readonly mayCreate: boolean
  /** The maximum that the server, the database and the user allow. */
  readonly connections: number
  /** Seconds by which the clock of the server is ahead of this machine; negative: behind. */
  readonly secondsAhead: number
}

/** Measures the clock of the server too. The caller has connected before, because the time of connecting would count as a difference. */
export async function readMoveTarget(db: Knex): Promise<MoveTargetProperties> {
  const beganAt = Date.now()
  const { now, ...server } = await queryRow<Omit<MoveTargetProperties, 'secondsAhead'> & { readonly now: number }>(
    db,
    MOVE_TARGET_SQL,
  )
  return { ...server, secondsAhead: now - (beganAt + Date.now()) / 2_000 }
}

const MOVE_TARGET_SQL = `
  select current_setting('server_version_num')::integer as version, current_setting('server_version') as name,
    current_setting('server_encoding') as encoding,
    exists (select from pg_available_extensions where name = 'pg_trgm') as trigrams,
    has_database_privilege(current_database(), 'CREATE') as "mayCreate",
    least(
      current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
      (select nullif(datconnlimit, -1) from pg_database where datname = current_database()),
      (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user)
    ) as connections,
    extract(epoch from clock_timestamp())::float as now`
