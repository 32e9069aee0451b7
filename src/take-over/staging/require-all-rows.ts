import type pg from 'pg'
import type { Source } from '../source/source.js'
import { SOURCE_TABLES } from '../source/source-tables.js'
import { TakeOverError } from '../take-over-error.js'
import { countStagedRows } from './staging-tables.js'

/** Throws if a table of the old pod, which is stopped, has another number of rows than its copy. */
export async function requireAllRows(source: Source, session: pg.Client): Promise<void> {
  for (const table of SOURCE_TABLES) {
    const { rows, isEstimate } = await source.countRows(table.name)
    const copied = await countStagedRows(session, table)
    if (isEstimate || rows === copied) continue
    throw new TakeOverError(
      `The table ${table.name} of the old database has ${rows} rows, and ${copied} are copied: stop everything that writes to the old database, and repeat the step.`,
    )
  }
}
