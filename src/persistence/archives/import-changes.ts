import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** Changes of an import before the move, with the data for their undo. */
export type ImportChange =
  | { readonly kind: 'aspect'; readonly id: number }
  | { readonly kind: 'tag'; readonly name: string }
  /** The user began to share with the person. */
  | { readonly kind: 'contact'; readonly personId: number }
  /** The person was put into aspects. */
  | { readonly kind: 'memberships'; readonly personId: number; readonly aspectIds: readonly number[] }
  | { readonly kind: 'claim'; readonly personId: number }
  | { readonly kind: 'block'; readonly personId: number }
  /** A block ended the contact. */
  | { readonly kind: 'ended_contact'; readonly personId: number; readonly aspectIds: readonly number[] }
  /** A local user sees that the importing user shares, or no longer does. */
  | { readonly kind: 'shared' | 'unshared'; readonly userId: number }

/** Records changes; a check has no import and changes nothing. */
export async function recordChanges(
  transaction: Knex.Transaction,
  importId: number | undefined,
  changes: readonly ImportChange[],
): Promise<void> {
  if (importId === undefined || changes.length === 0) return
  await transaction.raw(
    `insert into import_changes (import_id, change) select ?, value from json_array_elements(?::json) with ordinality order by ordinality`,
    [importId, JSON.stringify(changes)],
  )
}

interface ChangeRow {
  readonly id: number
  readonly change: ImportChange
}

/** The changes, the last one first. */
export async function* listChanges(db: Knex, importId: number, size: number): AsyncGenerator<readonly ImportChange[]> {
  let before: number | null = null
  for (;;) {
    const rows: readonly ChangeRow[] = await queryRows<ChangeRow>(
      db,
      'select id, change from import_changes where import_id = ? and id < coalesce(?::bigint, 9223372036854775807) order by id desc limit ?',
      [importId, before, size],
    )
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map(({ change }) => change)
    before = last.id
  }
}

/** An import that can no longer be cancelled needs no changes. */
export async function deleteChanges(transaction: Knex.Transaction, importId: number): Promise<void> {
  await transaction('importChanges').where({ importId }).delete()
}
