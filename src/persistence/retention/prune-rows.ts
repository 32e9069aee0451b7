import type { Knex } from 'knex'
import { changeRows, queryRow, queryRows } from '../database/database.js'
import { DELIVERY_IS_EXPIRED_SQL } from '../outbound/delivery-conditions.js'
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

/** SQL condition of a delivery that the end of a block or of an absence makes due again (`reviveDeliveriesOfPods`). */
const IS_REVIVABLE_SQL = `(last_fault is not null and last_fault in ('pod_blocked', 'pod_asleep') and not ${DELIVERY_IS_EXPIRED_SQL})`

/**
 * Given-up work of this pod. Received messages have their own bounds, so that other pods displace none of it. Deliveries that may become
 * due again count, but are deleted last.
 */
const OWN_DEAD_LETTERS = [
  {
    ...{ table: 'outbox', time: 'failed_at', content: 'payload', isDeletedLast: false },
    where: `failed_at is not null and name not in ('receive-public', 'receive-private')`,
  },
  {
    ...{ table: 'deliveries', time: 'died_at', content: 'encrypted_envelope', isDeletedLast: false },
    where: `state = 'dead' and not ${IS_REVIVABLE_SQL}`,
  },
  {
    ...{ table: 'deliveries', time: 'died_at', content: 'encrypted_envelope', isDeletedLast: true },
    where: `state = 'dead' and ${IS_REVIVABLE_SQL}`,
  },
] as const

/** The place of a dead letter in the order of deletion. Many rows have the same time: a block gives up all deliveries at once. */
export interface DeadLetterPosition {
  /** Index in OWN_DEAD_LETTERS. */
  readonly source: number
  readonly time: Date
  /** Database IDs, as the driver returns those of an expression. */
  readonly id: string
}

/**
 * Returns the position of the first dead letter beyond the limits: it and all that come before it in the order of deletion are to be
 * deleted. The indexes by time return the newest rows of each source. octet_length reads the size of a long text from its TOAST pointer.
 */
const DEAD_BEYOND_LIMITS_SQL = `
  select source, time, id::text as id from (
    select source, deleted_last, time, id, row_number() over kept as rank, sum(bytes) over kept as size
    from (${OWN_DEAD_LETTERS.map(
      ({ table, time, content, isDeletedLast, where }, source) =>
        `(select ${source} as source, ${isDeletedLast} as deleted_last, ${time} as time, id,
            coalesce(octet_length(${content}), 0) as bytes
          from ${table} where ${where} order by ${time} desc, id desc limit :maxRows + 1)`,
    ).join(' union all ')}) as newest
    window kept as (order by deleted_last desc, time desc, source desc, id desc rows unbounded preceding)
  ) as ranked
  where rank > :maxRows or size > :maxBytes
  order by rank limit 1`

export type DeadLetterLimits = { readonly [Name in keyof typeof DEAD_LETTER_LIMITS]: number }

/** Undefined: there are no dead letters beyond the limits. */
export async function findDeadBeyondLimits(
  db: Knex,
  limits: DeadLetterLimits = DEAD_LETTER_LIMITS,
): Promise<DeadLetterPosition | undefined> {
  const [row] = await queryRows<DeadLetterPosition>(db, DEAD_BEYOND_LIMITS_SQL, { ...limits })
  return row
}

/**
 * Deletes at most `limit` dead letters of this pod's own work, the one at this position and those that come before it in the order of
 * deletion, and returns their number.
 */
export async function deleteDeadUpTo(db: Knex, upTo: DeadLetterPosition, limit: number): Promise<number> {
  for (const [source, { table, where }] of OWN_DEAD_LETTERS.entries()) {
    const { sql, bindings } = upToSql(source, upTo)
    const rowCount = await changeRows(
      db,
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where ${where} and ${sql} limit ? for update skip locked
       ))`,
      [...bindings, limit],
    )
    if (rowCount > 0) return rowCount
  }
  return 0
}

/** SQL condition on rows of a source: those up to the position, in the order of DEAD_BEYOND_LIMITS_SQL. */
function upToSql(
  source: number,
  upTo: DeadLetterPosition,
): { readonly sql: string; readonly bindings: readonly (string | Date)[] } {
  const { time, isDeletedLast } = sourceAt(source)
  const isLastReached = sourceAt(upTo.source).isDeletedLast
  if (isDeletedLast !== isLastReached) return { sql: String(isLastReached), bindings: [] }
  if (source === upTo.source) return { sql: `(${time}, id) <= (?, ?)`, bindings: [upTo.time, upTo.id] }
  return { sql: `${time} ${source < upTo.source ? '<=' : '<'} ?`, bindings: [upTo.time] }
}

function sourceAt(source: number): (typeof OWN_DEAD_LETTERS)[number] {
  const found = OWN_DEAD_LETTERS[source]
  if (found === undefined) throw new RangeError(`There is no source ${source} of dead letters.`)
  return found
}

function earlierOf(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return one ?? other
  return one < other ? one : other
}
