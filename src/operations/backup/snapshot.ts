import type pg from 'pg'
import { readTableRows } from '../../persistence/operations/copy-tables.js'
import { readClosedAccounts, readStoredPhotos } from '../../persistence/operations/snapshots/snapshot-content.js'
import { openSnapshotSessions } from '../../persistence/operations/snapshots/snapshot-sessions.js'
import { listSequences, listTables, type Sequence, type Table } from '../../persistence/operations/table-catalogue.js'
import type { Services } from '../../services/services.js'
import type { TableContent } from './manifest.js'
import type { Part } from './parts.js'
import type { LocalPhotos } from './pictures.js'
import { countRows, splitRows } from './rows.js'

/** Tables that a backup leaves out: sessions, figures, and data for the running pod only. */
const LEFT_OUT = new Set([
  'backup_runs',
  'figures',
  'idempotency_keys',
  'oidc_records',
  'prune_progress',
  'queue_store',
  'refused_uploads',
])

/** Rows that are left out. The uploads of these jobs are not in the backup. */
const CONDITIONS: Readonly<Record<string, string>> = { outbox: `name <> 'make-photo'` }

const SESSIONS = 2

/** All tables of one moment. */
export interface Snapshot {
  readonly tables: readonly Table[]
  /** Writes all tables: calls `write` for each piece, and several times at once. */
  copy(
    pieceBytes: number,
    write: (name: string, rows: AsyncIterable<Buffer>) => Promise<Part>,
  ): Promise<readonly TableContent[]>
  /** The photos whose files are on this pod, in order of their ids. Their names take about 50 bytes each. */
  photos(): Promise<LocalPhotos>
  /** Guids of closed accounts, one a line. */
  closedAccounts(): AsyncIterable<Buffer>
  /** Counters only grow: read after the rows, they are not below any id of a row. */
  sequences(): Promise<readonly Sequence[]>
  close(): Promise<void>
}

/** Opens a snapshot. While it is open, the database cannot remove dead rows of any table. */
export async function openSnapshot(db: Services['db']): Promise<Snapshot> {
  const { first, all, close } = await openSnapshotSessions(db, SESSIONS)
  try {
    const tables = (await listTables(first)).filter(({ name }) => !LEFT_OUT.has(name))
    return {
      tables,
      copy: (pieceBytes, write) => copyTables(all, tables, pieceBytes, write),
      photos: () => readPhotos(first),
      closedAccounts: () => readClosedAccounts(first),
      sequences: () => listSequences(first),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Each session takes the next table when it is done with one; the largest come first. */
async function copyTables(
  sessions: readonly pg.Client[],
  tables: readonly Table[],
  pieceBytes: number,
  write: (name: string, rows: AsyncIterable<Buffer>) => Promise<Part>,
): Promise<readonly TableContent[]> {
  const remainingTables = [...tables]
  const contents: TableContent[] = []
  const results = await Promise.allSettled(
    sessions.map(async (session) => {
      for (let table = remainingTables.shift(); table !== undefined; table = remainingTables.shift()) {
        try {
          contents.push(await copyTable(session, table, pieceBytes, write))
        } catch (error) {
          remainingTables.length = 0
          throw error
        }
      }
    }),
  )
  const rejection = results.find((result) => result.status === 'rejected')
  if (rejection !== undefined) throw rejection.reason
  return contents.sort((one, other) => (one.name < other.name ? -1 : 1))
}

async function copyTable(
  session: pg.Client,
  { name, columns }: Table,
  pieceBytes: number,
  write: (name: string, rows: AsyncIterable<Buffer>) => Promise<Part>,
): Promise<TableContent> {
  const rows = readTableRows(session, { name, columns }, CONDITIONS[name])
  const parts: Part[] = []
  for await (const piece of splitRows(rows, pieceBytes)) parts.push(await write(`${name}.${parts.length + 1}`, piece))
  return { name, columns, parts }
}

async function readPhotos(session: pg.Client): Promise<LocalPhotos> {
  const chunks: Buffer[] = []
  for await (const chunk of readStoredPhotos(session)) chunks.push(chunk)
  const text = Buffer.concat(chunks)
  return {
    count: countRows(text),
    *[Symbol.iterator]() {
      for (let from = 0, end = 0; from < text.length; from = end + 1) {
        end = text.indexOf(10, from)
        const [id = '', name = ''] = text.toString('utf8', from, end).split('\t')
        yield { id: Number(id), name }
      }
    },
  }
}
