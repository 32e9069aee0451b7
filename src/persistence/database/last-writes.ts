import type { Knex } from 'knex'
import { queryPrepared } from './database.js'

/** Notes that these users have just written something, or were told of something: whatever is in the database now is no news to them. */
export async function recordWrites(db: Knex, userIds: readonly number[]): Promise<void> {
  if (userIds.length === 0) return
  await queryPrepared(db, 'note-last-writes', noted, [userIds])
}

/** Looked at once the row is ours, so that the later of two notes stays; whatever was committed before lies behind it. */
const WRITTEN = `pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`

const noted = `
  insert into last_writes (user_id, position, noted_at)
  select id, ${WRITTEN}, now() from users where id = any($1::bigint[]) order by id
  on conflict (user_id) do update set position = ${WRITTEN}, noted_at = now()`
