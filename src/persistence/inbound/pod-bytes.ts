import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** Adds bytes to the day of each host, and returns the hosts that have sent more than the limit today. */
export async function addPodBytes(
  db: Knex,
  bytes: ReadonlyMap<string, number>,
  limit: number,
): Promise<readonly string[]> {
  if (bytes.size === 0) return []
  const rows = await queryRows<{ readonly host: string }>(db, ADDED_BYTES_SQL, [
    [...bytes.keys()],
    [...bytes.values()],
    limit,
  ])
  return rows.map(({ host }) => host)
}

const ADDED_BYTES_SQL = `
  with counted as (
    insert into pod_bytes (host, day, bytes)
    select host, (now() at time zone 'utc')::date, bytes from unnest(?::text[], ?::bigint[]) as sent(host, bytes) order by host
    on conflict (host, day) do update set bytes = pod_bytes.bytes + excluded.bytes
    returning host, bytes
  )
  select host from counted where bytes > ?::bigint`
