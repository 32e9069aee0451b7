import type pg from 'pg'
import type { ReportProgress } from './progress.js'
import { listKeysAndIndexes, listTables, listTablesWithTriggers, quoteNames, type Sequence } from './table-catalogue.js'

interface LoadOptions {
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

interface LoadedTables {
  /** Tables whose rows stay. */
  readonly kept?: readonly string[]
  /** Tables whose unique constraints stay, because the load relies on them. */
  readonly withUniques?: readonly string[]
}

/**
 * Empties all tables, or all but some, and loads them in the transaction of the session, without foreign keys, unique constraints and
 * indexes, which are made afterwards much faster: a guid is random, so its index would be changed all over for each row. Triggers do not
 * run; their effects are in the rows. Returns the names of the tables.
 */
export async function loadTables(
  session: pg.Client,
  { signal, report }: LoadOptions,
  load: () => Promise<void>,
  { kept = [], withUniques = [] }: LoadedTables = {},
): Promise<readonly string[]> {
  const tableNames = (await listTables(session)).map(({ name }) => name).filter((name) => !kept.includes(name))
  const { keys, uniques, indexes } = await listKeysAndIndexes(session, [...kept, ...withUniques])
  for (const { drop } of [...keys, ...uniques, ...indexes]) await session.query(drop)
  const tablesWithTriggers = (await listTablesWithTriggers(session)).filter((table) => tableNames.includes(table))
  for (const table of tablesWithTriggers) await session.query(`alter table ${quoteNames([table])} disable trigger user`)
  await session.query(`truncate ${quoteNames(tableNames)} restart identity`)

  await load()

  const definitions = [...uniques, ...indexes, ...keys]
  for (const [index, { create }] of definitions.entries()) {
    signal.throwIfAborted()
    report({ step: 'indexes and keys', done: index + 1, total: definitions.length })
    await session.query(create)
  }
  for (const table of tablesWithTriggers) await session.query(`alter table ${quoteNames([table])} enable trigger user`)
  return tableNames
}

/** Collects statistics of all tables, without which the first plans would read whole tables. */
export async function analyzeTables(session: Pick<pg.Client, 'query'>): Promise<void> {
  await session.query('analyze')
}

/** New rows get ids above those of the loaded rows and of rows that were deleted before. */
export async function setSequences(session: pg.Client, sequences: readonly Sequence[]): Promise<void> {
  for (const { table, column, last } of sequences) {
    const [name, id] = [quoteNames([table]), quoteNames([column])]
    await session.query(
      `select setval(pg_get_serial_sequence($1, $2), last) from (
         select greatest($3::bigint, max(${id})) as last from ${name}
       ) as used where last > 0`,
      [name, column, last],
    )
  }
}
