import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { type AcceptedMessage, insertAcceptedMessages } from '../../jobs/inbound/accepted-messages.js'
import { copyIn } from '../../persistence/database/copy.js'
import { listKeysAndIndexes, listTables, quoted } from '../../persistence/operations/table-catalogue.js'
import { BackupError } from './backup-error.js'
import type { Manifest, TableContent } from './manifest.js'
import { readPart } from './parts.js'
import type { RestoreOptions } from './restore-backup.js'
import { splitLines } from './rows.js'

const MESSAGE_BATCH_SIZE = 50

/** Loads all rows in the transaction of the session. Returns the number of accepted messages. */
export async function restoreTables(session: pg.Client, manifest: Manifest, options: RestoreOptions): Promise<number> {
  let done = 0
  const total = manifest.tables.flatMap(({ parts }) => parts).reduce((sum, { bytes }) => sum + bytes, 0)
  await loadTables(session, options, async () => {
    for (const table of manifest.tables) {
      await restoreTable(session, table, options, (bytes) => {
        done += bytes
        options.report({ step: 'tables', done, total })
      })
    }
    await setSequences(session, manifest.sequences)
  })
  return restoreMessages(session, manifest, options)
}

/**
 * Empties all tables, or all but some, and loads them in the transaction of the session, without foreign keys and indexes, which are
 * made afterwards much faster, and without triggers, whose effects are in the rows.
 */
export async function loadTables(
  session: pg.Client,
  { signal, report }: Pick<RestoreOptions, 'signal' | 'report'>,
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

async function restoreTable(
  session: pg.Client,
  { name, columns, parts }: TableContent,
  options: RestoreOptions,
  onBytes: (bytes: number) => void,
): Promise<void> {
  for (const part of parts) {
    await readPart({ ...options, onBytes }, part, async (content) => {
      // The table was emptied in this transaction, so that its rows can be frozen and are never written again by vacuum.
      const rows = copyIn(session, `copy ${quoted([name])} (${quoted(columns)}) from stdin with (freeze)`)
      await pipeline(content, rows)
      if (rows.rowCount !== part.rows) {
        throw new BackupError(`${part.path}: ${rows.rowCount} rows were loaded, not ${part.rows}.`)
      }
    })
  }
}

/** New rows get ids above those of the backup and of rows that were deleted before it. */
export async function setSequences(session: pg.Client, sequences: Manifest['sequences']): Promise<void> {
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

async function restoreMessages(session: pg.Client, manifest: Manifest, options: RestoreOptions): Promise<number> {
  let count = 0
  await readPart(options, manifest.inbound, async (content) => {
    let group: AcceptedMessage[] = []
    for await (const line of splitLines(content)) {
      group.push(JSON.parse(line))
      count += 1
      if (group.length < MESSAGE_BATCH_SIZE) continue
      await insertAcceptedMessages(session, group)
      group = []
    }
    await insertAcceptedMessages(session, group)
  })
  return count
}

/** Ends the access of all applications; their users sign in again. */
export async function endTokens(session: pg.Client): Promise<void> {
  await session.query('delete from authorizations')
}
