import type { Knex } from 'knex'
import { changeRows, queryRow } from '../database/database.js'

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
    sum = { rows: sum.rows + rows, bytes: sum.bytes + bytes, oldest: earlier(sum.oldest, oldest) }
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

function earlier(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return one ?? other
  return one < other ? one : other
}
