import { Client } from 'pg'
import { makeDataFolder } from '../embedded-postgres/data-folder.js'
import {
  findRunningEmbeddedPostgres,
  ServerOwnedError,
  startEmbeddedPostgres,
} from '../embedded-postgres/embedded-postgres.js'
import type { Config } from '../src/config/config.js'
import { StartError } from '../src/errors/start-error.js'
import { migrateQueue } from '../src/jobs/queues/queue-schema.js'
import { openDatabase } from '../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../src/persistence/database/limits.js'
import { migrate, migrationStatus } from '../src/persistence/database/migrate.js'

export interface BorrowedDatabase {
  readonly url: string
  release(): Promise<void>
}

/** Advisory lock: shared by commands that use the server, exclusive to stop it. */
const USE_LOCK = 7_061_708
const ATTEMPTS = 20

/**
 * The database of a command: the configured one, the running embedded one, or an embedded one that is started for the command.
 * Concurrent commands do not stop each other's server.
 */
export async function borrowDatabase(config: Config): Promise<BorrowedDatabase> {
  if (config.databaseUrl !== undefined) return { url: config.databaseUrl, release: async () => undefined }
  await makeDataFolder(config.dataDir)
  for (let attempt = 1; ; attempt += 1) {
    try {
      const running = await findRunningEmbeddedPostgres(config.dataDir)
      return running === undefined ? await startServer(config.dataDir) : await joinRunningServer(running.url)
    } catch (error) {
      if (attempt === ATTEMPTS || !(await isTransient(error, config))) throw error
    }
  }
}

/**
 * Migrates a new embedded database; an existing one needs `pod db migrate`. The queue comes first: a concurrent command that finds tables
 * of the pod, which appear all at once, does not wait for more.
 */
export async function migrateIfNew(url: string): Promise<void> {
  const db = openDatabase({ ...WEB_DATABASE_LIMITS, url, applicationName: 'pod command' })
  try {
    const { applied } = await migrationStatus(db)
    if (applied.length > 0) return
    await migrateQueue(url)
    await migrate(db)
  } finally {
    await db.destroy()
  }
}

async function startServer(dataDir: string): Promise<BorrowedDatabase> {
  const server = await startEmbeddedPostgres(dataDir)
  return {
    url: server.url,
    async release() {
      const session = await connect(server.url).catch(() => undefined) // another process is stopping the server
      try {
        await session?.query('select pg_advisory_lock($1)', [USE_LOCK]) // exclusive: the last user has left
      } finally {
        await server.stop()
        await session?.end().catch(() => undefined)
      }
    },
  }
}

async function joinRunningServer(url: string): Promise<BorrowedDatabase> {
  const session = await connect(url)
  try {
    await session.query('select pg_advisory_lock_shared($1)', [USE_LOCK])
    // A stopping server releases locks before its sessions end, but accepts no new connection.
    await (await connect(url)).end()
  } catch (error) {
    await session.end().catch(() => undefined)
    throw error
  }
  return { url, release: () => session.end().catch(() => undefined) }
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: 'pod command', connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined) // the next statement reports the error
  await client.connect()
  return client
}

/** True if another process has started the server, or the server has ended, since it was looked up. */
async function isTransient(error: unknown, config: Config): Promise<boolean> {
  // The owner may have stopped the server after it refused this process: then no server runs, and this process can start one.
  if (error instanceof ServerOwnedError || !(error instanceof StartError)) return true
  return isRunning(config)
}

async function isRunning(config: Config): Promise<boolean> {
  return (await findRunningEmbeddedPostgres(config.dataDir).catch(() => undefined)) !== undefined
}
