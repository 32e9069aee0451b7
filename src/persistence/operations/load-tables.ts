import type pg from 'pg'
import type { ReportProgress } from './progress.js'
import { listKeysAndIndexes, listTables, quoted, type Sequence } from './table-catalogue.js'

interface LoadOptions {
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

/**
 * Empties all tables, or all but some, and loads them in the transaction of the session, without foreign keys and indexes, which are
 * made afterwards much faster, and without triggers, whose effects are in the rows.
 */
export async function loadTables(
  session: pg.Client,
  { signal, report }: LoadOptions,
  load: () => Promise<void>,
  kept: readonly string[] = [],
): Promise<void> {
  const tableNames = (await listTables(session)).map(({ name }) => name).filter((name) => !kept.includes(name))
  const { keys, indexes } = await listKeysAndIndexes(session)
  for (const { drop } of [...keys, ...indexes]) await session.query(drop)
  for (const table of tableNames) await session.query(`alter table ${quoted([table])} disable trigger user`)
  await session.query(`truncate ${quoted(tableNames)} restart identity`)

  await load()

  const definitions = [...indexes, ...keys]
  for (const [index, { create }] of definitions.entries()) {
    signal.throwIfAborted()
    report({ step: 'indexes and keys', done: index + 1, total: definitions.length })
    await session.query(create)
  }
  for (const table of tableNames) await session.query(`alter table ${quoted([table])} enable trigger user`)
}

/** New rows get ids above those of the loaded rows and of rows that were deleted before. */
export async function setSequences(session: pg.Client, sequences: readonly Sequence[]): Promise<void> {
  for (const { table, column, last } of sequences) {
    const [name, id] = [quoted([table]), quoted([column])]
    await session.query(
      `select setval(pg_get_serial_sequence($1, $2), last) from (
         select greatest($3::bigint, max(${id})) as last from ${name}
       ) as used where last > 0`,
      [name, column, last],
    )
  }
}
