import type { Knex } from 'knex'
import { changeRows, queryRow, queryRows } from '../database/database.js'
import { DEAD_LETTER_LIMITS } from './limits.js'

/** Rows with an age that no other row needs, by category. */
export type RowCategory = 'notifications' | 'dead' | 'tombstones'

interface ExpiringRows {
  readonly table: string
  /** The time that counts. */
  readonly time: string
  /** The condition on rows of any age. */
  readonly where: string
}

/** The conditions have indexes by time, except the one of notifications, which are read by id. */
const EXPIRING: Readonly<Record<RowCategory, readonly ExpiringRows[]>> = {
  notifications: [{ table: 'notifications', time: 'updated_at', where: 'read' }],
  dead: [
    { table: 'outbox', time: 'failed_at', where: 'failed_at is not null' },
    { table: 'deliveries', time: 'died_at', where: `state = 'dead'` },
  ],
  tombstones: [{ table: 'tombstones', time: 'created_at', where: 'not permanent' }],
}

export interface RowPreview {
  readonly rows: number
  readonly bytes: number
  readonly oldest: Date | null
}

/** Describes the rows that a removal of at most `limit` rows would delete. */
export async function previewRows(db: Knex, category: RowCategory, days: number, limit: number): Promise<RowPreview> {
  let sum: RowPreview = { rows: 0, bytes: 0, oldest: null }
  for (const { table, time, where } of EXPIRING[category]) {
    const { rows, bytes, oldest } = await queryRow<RowPreview>(
      db,
      `select count(*)::integer as rows, coalesce(sum(bytes), 0)::float as bytes, min(time) as oldest
       from (
         select pg_column_size(${table}.*) as bytes, ${time} as time
         from ${table} where ${where} and ${time} < now() - cast(? as integer) * interval '1 day'
         limit ?
       ) as expired`,
      [days, Number.isFinite(limit) ? limit - sum.rows : null],
    )
    sum = { rows: sum.rows + rows, bytes: sum.bytes + bytes, oldest: earlierOf(sum.oldest, oldest) }
  }
  return sum
}

/** Deletes at most `limit` rows, and returns their number. Rows that others have locked are left for the next run. */
export async function deleteRows(db: Knex, category: RowCategory, days: number, limit: number): Promise<number> {
  for (const { table, time, where } of EXPIRING[category]) {
    const rowCount = await changeRows(
      db,
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where ${where} and ${time} < now() - cast(? as integer) * interval '1 day'
         limit ? for update skip locked
       ))`,
      [days, limit],
    )
    if (rowCount > 0) return rowCount
  }
  return 0
}

/** Given-up work of this pod. Received messages have their own bounds, so that other pods displace none of it. */
const OWN_DEAD_LETTERS = [
  {
    ...{ table: 'outbox', time: 'failed_at', content: 'payload' },
    where: `failed_at is not null and name not in ('receive-public', 'receive-private')`,
  },
  { table: 'deliveries', time: 'died_at', content: 'encrypted_envelope', where: `state = 'dead'` },
] as const

/**
 * Returns the time of the newest dead letter beyond the limits: it and all older ones are to be deleted. The indexes by time return the
 * newest rows of both tables. octet_length reads the size of a long text from its TOAST pointer.
 */
const DEAD_BEYOND_LIMITS_SQL = `
  select time from (
    select time, row_number() over latest as rank, sum(bytes) over latest as size
    from (${OWN_DEAD_LETTERS.map(
      ({ table, time, content, where }) =>
        `(select ${time} as time, coalesce(octet_length(${content}), 0) as bytes
          from ${table} where ${where} order by ${time} desc limit :maxRows + 1)`,
    ).join(' union all ')}) as newest
    window latest as (order by time desc rows unbounded preceding)
  ) as ranked
  where rank > :maxRows or size > :maxBytes
  order by time desc limit 1`

export type DeadLetterLimits = { readonly [Name in keyof typeof DEAD_LETTER_LIMITS]: number }

/** Undefined: there are no dead letters beyond the limits. */
export async function findDeadBeyondLimits(
  db: Knex,
  limits: DeadLetterLimits = DEAD_LETTER_LIMITS,
): Promise<Date | undefined> {
  const [row] = await queryRows<{ readonly time: Date }>(db, DEAD_BEYOND_LIMITS_SQL, { ...limits })
  return row?.time
}

/** Deletes at most `limit` dead letters of this pod's own work that are as old as `upTo` or older, and returns their number. */
export async function deleteDeadUpTo(db: Knex, upTo: Date, limit: number): Promise<number> {
  for (const { table, time, where } of OWN_DEAD_LETTERS) {
    const rowCount = await changeRows(
      db,
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where ${where} and ${time} <= ? limit ? for update skip locked
       ))`,
      [upTo, limit],
    )
    if (rowCount > 0) return rowCount
  }
  return 0
}

function earlierOf(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return one ?? other
  return one < other ? one : other
}
