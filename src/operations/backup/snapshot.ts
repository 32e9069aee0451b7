import type pg from 'pg'
import { copyOut } from '../../persistence/database/copy.js'
import { openUnlimitedSession } from '../../persistence/database/database.js'
import {
  listSequences,
  listTables,
  quoteNames,
  type Sequence,
  type Table,
} from '../../persistence/operations/table-catalogue.js'
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

const CLOSED_ACCOUNTS_SQL = `
  select people.guid from users join people on people.id = users.person_id where users.closed_at is not null order by users.id`

/** Local photos, and those of accounts that have moved away whose files are still here; each photo once. */
const STORED_PHOTOS_SQL = `
  select id, name from photos where remote_path is null
  union all
  (select distinct on (photo_id) photo_id, moved_photo_files.name
   from moved_photo_files join photos on photos.id = photo_id and photos.remote_path is not null
   where deleted_at is null
   order by photo_id, moved_at desc)`

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
  const sessions: pg.Client[] = []
  const open = async (text: string) => {
    const session = await openUnlimitedSession(db, 'backup')
    sessions.push(session)
    await session.query('begin isolation level repeatable read, read only')
    if (text !== '') await session.query(text)
    return session
  }
  const close = async () => {
    await Promise.allSettled(sessions.map((session) => session.end()))
  }
  try {
    const first = await open('')
    const { rows } = await first.query<{ id: string }>('select pg_export_snapshot() as id')
    for (let more = 1; more < SESSIONS; more += 1) await open(`set transaction snapshot '${rows[0]?.id}'`)
    const tables = (await listTables(first)).filter(({ name }) => !LEFT_OUT.has(name))
    return {
      tables,
      copy: (pieceBytes, write) => copyTables(sessions, tables, pieceBytes, write),
      photos: () => readPhotos(first),
      closedAccounts: () => copyOut(first, `copy (${CLOSED_ACCOUNTS_SQL}) to stdout`),
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
  const condition = CONDITIONS[name] === undefined ? '' : ` where ${CONDITIONS[name]}`
  const rows = copyOut(session, `copy (select ${quoteNames(columns)} from ${quoteNames([name])}${condition}) to stdout`)
  const parts: Part[] = []
  for await (const piece of splitRows(rows, pieceBytes)) parts.push(await write(`${name}.${parts.length + 1}`, piece))
  return { name, columns, parts }
}

async function readPhotos(session: pg.Client): Promise<LocalPhotos> {
  const chunks: Buffer[] = []
  const list = copyOut(session, `copy (${STORED_PHOTOS_SQL} order by id) to stdout`)
  for await (const chunk of list) chunks.push(chunk)
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
