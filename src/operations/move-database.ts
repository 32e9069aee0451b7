import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import type { Knex } from 'knex'
import type pg from 'pg'
import { codeOf, messageOf } from '../errors/thrown.js'
import { acceptedMessages, insertAcceptedMessages } from '../jobs/inbound/accepted-messages.js'
import { migrateQueue } from '../jobs/queues/queue-schema.js'
import { openDatabase, openUnlimitedSession } from '../persistence/database/database.js'
import { isLockTimeout, messageWithoutStatement } from '../persistence/database/errors.js'
import { WORKER_DATABASE_LIMITS } from '../persistence/database/limits.js'
import { migrate, migrateTo, migrationStatus } from '../persistence/database/migrate.js'
import { withSessionLock } from '../persistence/database/session-lock.js'
import { readTableRows, writeTableRows } from '../persistence/operations/copy-tables.js'
import { analyzeTables, loadTables, setSequences } from '../persistence/operations/load-tables.js'
import { type MoveTargetProperties, readMoveTarget } from '../persistence/operations/move-target.js'
import type { ReportProgress } from '../persistence/operations/progress.js'
import {
  dropUnfinished,
  inspectRestoreTarget,
  listConnectedProcesses,
  MOVE_SOURCE,
  markRestore,
  unmarkRestore,
} from '../persistence/operations/restore-target.js'
import { beginLockedSnapshot } from '../persistence/operations/snapshots/snapshot-sessions.js'
import { listSequences, listTables, type Table } from '../persistence/operations/table-catalogue.js'
import type { Services } from '../services/services.js'
import { BackupError } from './backup/backup-error.js'

export interface MoveOptions {
  /** Empties the target of a move that was interrupted. */
  readonly isRepeated: boolean
  /** Called when the new database is complete, before anything may write to the old one again. */
  readonly onMoved?: () => Promise<void>
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

export interface MovedDatabase {
  readonly tables: number
  readonly rows: number
  /** Accepted messages of a queue in the old database. */
  readonly messages: number
}

const MIN_VERSION = 140_000
/** Web process, worker, their queue, and a command. */
const CONNECTIONS = 60
/** Times of rows come from the database, and those of messages from the processes. */
const CLOCK_DIFFERENCE_SECONDS = 30

/**
 * Copies the database of a stopped pod into an empty one, and compares rows and checksums. The old database is not changed. An
 * interrupted move leaves a mark in the target, with which no pod starts. Until it ends, no pod starts on the old database, and
 * nothing writes to its tables.
 */
export async function moveDatabase(
  services: Pick<Services, 'db' | 'jobs'>,
  targetUrl: string,
  options: MoveOptions,
): Promise<MovedDatabase> {
  const refuse = () => new BackupError('Another command is moving this database: wait until it has ended.')
  return withSessionLock(services.db, 'move of the database', { signal: options.signal, refuse }, (signal) =>
    moveLocked(services, targetUrl, { ...options, signal }),
  )
}

async function moveLocked(
  services: Pick<Services, 'db' | 'jobs'>,
  targetUrl: string,
  options: MoveOptions,
): Promise<MovedDatabase> {
  const target = openDatabase({ ...WORKER_DATABASE_LIMITS, url: targetUrl, applicationName: 'pod move' })
  try {
    await requireStopped(services.db)
    const { applied, unknown } = await migrationStatus(services.db)
    if (unknown.length > 0) {
      throw new BackupError(
        'A newer version has changed the tables of the database: move it with that version or a later one.',
      )
    }
    await requireUsable(target, options)
    const source = await openUnlimitedSession(services.db, 'move')
    try {
      await lockTables(source)
      await markRestore(target, MOVE_SOURCE)
      await migrateTo(target, applied)
      const moveReport = await copyAll(services.jobs, source, target, options)
      await finish(target, targetUrl)
      await options.onMoved?.()
      return moveReport
    } finally {
      await source.end().catch(() => undefined)
    }
  } finally {
    await target.destroy()
  }
}

/** Begins a snapshot of the old database, and holds up everything that would write to its tables. */
async function lockTables(source: pg.Client): Promise<void> {
  const names = (await listTables(source)).map(({ name }) => name)
  try {
    await beginLockedSnapshot(source, names)
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    throw new BackupError('Another process writes to the database: end all commands of the pod first.')
  }
}

async function finish(target: Knex, targetUrl: string): Promise<void> {
  await migrate(target)
  await migrateQueue(targetUrl)
  const session = await openUnlimitedSession(target, 'analyze')
  try {
    await analyzeTables(session)
    await unmarkRestore(session)
  } finally {
    await session.end()
  }
}

async function copyAll(
  jobs: Services['jobs'],
  source: pg.Client,
  target: Knex,
  { signal, report }: MoveOptions,
): Promise<MovedDatabase> {
  const session = await openUnlimitedSession(target, 'move')
  try {
    await session.query('begin')
    const tables = await listTables(source)
    const checksums = new Map<string, string>()
    const total = tables.reduce((sum, { bytes }) => sum + bytes, 0)
    let done = 0
    let rows = 0
    await loadTables(session, { signal, report }, async () => {
      for (const table of tables) {
        signal.throwIfAborted()
        const hash = createHash('sha256')
        const input = writeTableRows(session, table)
        await pipeline(
          readTableRows(source, table),
          async function* counted(chunks: AsyncIterable<Buffer>) {
            for await (const chunk of chunks) {
              hash.update(chunk)
              done += chunk.length
              report({ step: 'tables', done, total: Math.max(total, done) })
              yield chunk
            }
          },
          input,
          { signal },
        )
        rows += input.rowCount
        checksums.set(table.name, hash.digest('hex'))
      }
      await setSequences(session, await listSequences(source))
    })
    const messages = await moveMessages(jobs, session)
    await session.query('commit')
    await compare(session, tables, checksums, { signal, report })
    return { tables: tables.length, rows, messages }
  } finally {
    await session.end().catch(() => undefined)
  }
}

/** Accepted messages become outbox rows. Those of Redis stay there. */
async function moveMessages(jobs: Services['jobs'], session: pg.Client): Promise<number> {
  if (jobs.store === 'redis') return 0
  let count = 0
  for await (const message of acceptedMessages(jobs)) {
    await insertAcceptedMessages(session, [message])
    count += 1
  }
  return count
}

async function compare(
  session: pg.Client,
  tables: readonly Table[],
  checksums: ReadonlyMap<string, string>,
  { signal, report }: Pick<MoveOptions, 'signal' | 'report'>,
): Promise<void> {
  for (const [index, table] of tables.entries()) {
    signal.throwIfAborted()
    // Accepted messages were added to the outbox.
    if (table.name === 'outbox') continue
    const hash = createHash('sha256')
    for await (const chunk of readTableRows(session, table)) hash.update(chunk)
    if (hash.digest('hex') !== checksums.get(table.name)) {
      throw new BackupError(
        `The table ${table.name} is not the same in the new database: repeat the move with --again.`,
      )
    }
    report({ step: 'compared tables', done: index + 1, total: tables.length })
  }
}

async function requireStopped(db: Knex): Promise<void> {
  const processes = await listConnectedProcesses(db)
  if (processes.length > 0) {
    throw new BackupError(`The database is in use by ${processes.join(' and ')}: stop the pod first.`)
  }
}

/** Why a server cannot have the database of a pod; undefined: it can. */
export function findServerFault({ version, name, encoding, ...server }: MoveTargetProperties): string | undefined {
  const { trigrams, mayCreate, connections, secondsAhead } = server
  if (version < MIN_VERSION) return `PostgreSQL 14 or newer is needed; the new database has ${name}.`
  if (encoding !== 'UTF8') return `The new database must have the encoding UTF8, not ${encoding}.`
  if (!trigrams) return 'The new database server lacks the extension pg_trgm: install it there.'
  if (!mayCreate) return 'The user of the new database may not create tables: make the user its owner.'
  if (connections < CONNECTIONS) {
    return `The new database allows ${connections} connections, and a pod needs ${CONNECTIONS}: raise max_connections of the server, or the limit of the user or database.`
  }
  if (Math.abs(secondsAhead) > CLOCK_DIFFERENCE_SECONDS) {
    const difference = `${Math.abs(Math.round(secondsAhead))} seconds ${secondsAhead > 0 ? 'ahead of' : 'behind'}`
    return `The clock of the new database server is ${difference} that of this machine: set both clocks.`
  }
  return undefined
}

/** Checks everything before anything is written. */
async function requireUsable(target: Knex, { isRepeated }: MoveOptions): Promise<void> {
  await connect(target)
  const fault = findServerFault(await readMoveTarget(target))
  if (fault !== undefined) throw new BackupError(fault)
  const state = await inspectRestoreTarget(target)
  if (state === 'full') throw new BackupError('The new database has tables: it must be empty.')
  if (state === 'unfinished') {
    if (!isRepeated) throw new BackupError('The new database holds an unfinished move: --again empties it.')
    await dropUnfinished(target)
  }
}

async function connect(target: Knex): Promise<void> {
  try {
    await target.raw('select 1')
  } catch (error) {
    // A host with several addresses fails with an error that has only a code.
    const why = messageWithoutStatement(messageOf(error)) || codeOf(error)
    throw new BackupError(`The new database cannot be opened (${why}): check the address after --to.`)
  }
}
