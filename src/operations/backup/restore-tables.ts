import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { type AcceptedMessage, insertAcceptedMessages } from '../../jobs/inbound/accepted-messages.js'
import { writeTableRows } from '../../persistence/operations/copy-tables.js'
import { loadTables, setSequences } from '../../persistence/operations/load-tables.js'
import { RESTORE_MARK } from '../../persistence/operations/restore-target.js'
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
  { parts, ...table }: TableContent,
  options: RestoreOptions,
  onBytes: (bytes: number) => void,
): Promise<void> {
  for (const part of parts) {
    await readPart({ ...options, onBytes }, part, async (content) => {
      const rows = writeTableRows(session, table)
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
