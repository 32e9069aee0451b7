import type { Knex } from 'knex'
import { queryPrepared } from './database.js'

/**
 * Records the WAL position up to which these users know the database, because they have just written or were notified. Their lists are
 * read from a replica only if it has replayed this position.
 */
export async function recordWrites(db: Knex, userIds: readonly number[]): Promise<void> {
  if (userIds.length === 0) return
  await queryPrepared(db, 'record-last-writes', NEW_POSITIONS_SQL, [userIds])
}

/** Read after the row is locked, so that the later of two positions stays. Everything committed so far lies before it. */
const CURRENT_POSITION_SQL = `pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`

const NEW_POSITIONS_SQL = `
  insert into last_writes (user_id, position, noted_at)
  select id, ${CURRENT_POSITION_SQL}, now() from users where id = any($1::bigint[]) order by id
  on conflict (user_id) do update set position = ${CURRENT_POSITION_SQL}, noted_at = now()`
