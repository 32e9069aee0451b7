import type { Readable } from 'node:stream'
import type pg from 'pg'
import { copyIn, copyOut } from '../database/copy.js'
import { quoteNames, type Table } from './table-catalogue.js'

type CopiedTable = Pick<Table, 'name' | 'columns'>

/**
 * Reads rows of a table in the text format of COPY; with a condition, only those that it selects. Rows of a table that was just loaded
 * come in the order in which they were written.
 */
export function readTableRows(session: pg.Client, { name, columns }: CopiedTable, condition?: string): Readable {
  const where = condition === undefined ? '' : ` where ${condition}`
  return copyOut(session, `copy (select ${quoteNames(columns)} from ${quoteNames([name])}${where}) to stdout`)
}

/**
 * Takes rows for a table in the text format of COPY. The transaction must have emptied the table: then its rows can be frozen, and vacuum
 * never writes them again. `rowCount` is known at the end.
 */
export function writeTableRows(session: pg.Client, { name, columns }: CopiedTable): ReturnType<typeof copyIn> {
  return copyIn(session, `copy ${quoteNames([name])} (${quoteNames(columns)}) from stdin with (freeze)`)
}
