import { pipeline } from 'node:stream/promises'
import type { Knex } from 'knex'
import type pg from 'pg'
import { type AcceptedMessage, insertAcceptedMessages } from '../../jobs/inbound/accepted-messages.js'
import { copyIn } from '../../persistence/database/copy.js'
import { loadTables, setSequences } from '../../persistence/operations/load-tables.js'
import { RESTORE_MARK } from '../../persistence/operations/restore-target.js'
import { quoteNames } from '../../persistence/operations/table-catalogue.js'
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
  await loadTables(
    session,
    options,
    async () => {
      for (const table of manifest.tables) {
        await restoreTable(session, table, options, (bytes) => {
          done += bytes
          options.report({ step: 'tables', done, total })
        })
      }
      await setSequences(session, manifest.sequences)
    },
    { kept: [RESTORE_MARK] },
  )
  return restoreMessages(session, manifest, options)
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
      const rows = copyIn(session, `copy ${quoteNames([name])} (${quoteNames(columns)}) from stdin with (freeze)`)
      await pipeline(content, rows)
      if (rows.rowCount !== part.rows) {
        throw new BackupError(`${part.path}: ${rows.rowCount} rows were loaded, not ${part.rows}.`)
      }
    })
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

/** Links in mails, and sign-ins that wait for a second step: some were used or withdrawn after the backup. */
export async function endAccountTokens(db: Knex): Promise<void> {
  for (const table of ['account_tokens', 'second_steps']) await db(table).delete()
}

/** Ends the access of all applications; their users sign in again. */
export async function endTokens(session: pg.Client): Promise<void> {
  await session.query('delete from authorizations')
}
