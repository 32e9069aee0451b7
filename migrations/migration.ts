import type { Knex } from 'knex'

export interface Migration {
  /** Not in a transaction: for an index on a large table. The migration must be able to run again. */
  readonly config?: { readonly transaction: false }
  up(db: Knex): Promise<void>
  down(db: Knex): Promise<void>
}

/** The time in whole milliseconds, because page links carry milliseconds. */
export const now = `date_trunc('milliseconds', now())`

/**
 * Makes an index while others write to its table, in a migration without transaction. An invalid index, which an interrupted run has
 * left, is made again. The new tables of a new database are made in one transaction, with plain indexes.
 */
export async function createIndexConcurrently(db: Knex, name: string, definition: string): Promise<void> {
  if (db.isTransaction) {
    await db.raw(`create index ?? ${definition}`, [name])
    return
  }
  const connection = await db.client.acquireConnection()
  const run = (statement: string) => db.raw(statement).connection(connection)
  const lockTimeout = (await run('show lock_timeout')).rows[0].lock_timeout
  try {
    const { rows } = await run(`
      select indisvalid as valid from pg_index where indexrelid = to_regclass('public.${name}')`)
    if (rows[0]?.valid === true) return
    // It waits for running transactions, and blocks no statement meanwhile.
    await run(`set lock_timeout = 0`)
    if (rows[0] !== undefined) await run(`drop index concurrently ${name}`)
    await run(`create index concurrently ${name} ${definition}`)
  } finally {
    await run(`set lock_timeout = '${lockTimeout}'`).catch(() => undefined) // the connection may be lost
    await db.client.releaseConnection(connection)
  }
}
