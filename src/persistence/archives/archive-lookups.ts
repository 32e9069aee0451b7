import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

export interface LookupLimits {
  readonly now: Date
  /** Lookups at one host in a day. */
  readonly max: number
  /** Milliseconds between two lookups at one host. */
  readonly intervalMs: number
}

/**
 * Counts a lookup at a host, for all imports and checks of this pod together. Returns when it may begin; undefined: the limit of the day is
 * reached. A start that is further away than all lookups of a day take was stored with another clock, and is ignored.
 */
export async function claimLookup(
  db: Knex,
  host: string,
  { now, max, intervalMs }: LookupLimits,
): Promise<Date | undefined> {
  const [row] = await queryRows<{ readonly at: Date }>(
    db,
    `insert into archive_lookups as known (host, day, count, next_at)
     values (:host, (:now::timestamptz at time zone 'utc')::date, 1, :now::timestamptz + make_interval(secs => :seconds))
     on conflict (host) do update set
       count = case when known.day = excluded.day then known.count + 1 else 1 end,
       day = excluded.day,
       next_at = case
         when known.next_at between :now and :now::timestamptz + :max::integer * make_interval(secs => :seconds) then known.next_at
         else :now
       end + make_interval(secs => :seconds)
     where known.day <> excluded.day or known.count < :max
     returning next_at - make_interval(secs => :seconds) as at`,
    { host, now, max, seconds: intervalMs / 1_000 },
  )
  return row?.at
}

/** Deletes the counts of earlier days. */
export async function deleteOldLookups(db: Knex, now: Date): Promise<void> {
  await db.raw(`delete from archive_lookups where day < (?::timestamptz at time zone 'utc')::date`, [now])
}
