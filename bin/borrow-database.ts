import { Client } from 'pg'
import { makeDataFolder } from '../embedded-postgres/data-folder.js'
import { findRunningEmbeddedPostgres, startEmbeddedPostgres } from '../embedded-postgres/embedded-postgres.js'
import type { Config } from '../src/config/config.js'
import { StartError } from '../src/errors/start-error.js'
import { migrateQueue } from '../src/jobs/queues/queue-schema.js'
import { migrate, migrationStatus, openDatabase, WEB_LIMITS } from '../src/persistence/database/database.js'

export interface BorrowedDatabase {
  readonly url: string
  release(): Promise<void>
}

/** Guests share it, whoever wants to stop the server needs it alone. */
const GUEST_LOCK = 7_061_708
const ATTEMPTS = 20

/**
 * The database of a command: the one that is configured, the embedded one that runs already, or the embedded one for as long
 * as the command takes. Commands that run side by side do not stop it under each other.
 */
export async function borrowDatabase(config: Config): Promise<BorrowedDatabase> {
  if (config.databaseUrl !== undefined) return { url: config.databaseUrl, release: async () => undefined }
  await makeDataFolder(config.dataDir)
  for (let attempt = 1; ; attempt += 1) {
    try {
      const running = await findRunningEmbeddedPostgres(config.dataDir)
      return running === undefined ? await beHost(config.dataDir) : await beGuest(running.url)
    } catch (error) {
      // The server ended, or somebody else started it, between two steps of ours.
      if (attempt === ATTEMPTS || (error instanceof StartError && !(await isRunning(config)))) throw error
    }
  }
}

/** Tables and queue of an embedded database that has never been used; every other one says which command it needs. */
export async function migrateIfNew(url: string): Promise<void> {
  const db = openDatabase({ ...WEB_LIMITS, url, applicationName: 'pod command' })
  try {
    const { applied } = await migrationStatus(db)
    if (applied.length > 0) return
    await migrate(db)
    await migrateQueue(url)
  } finally {
    await db.destroy()
  }
}

async function beHost(dataDir: string): Promise<BorrowedDatabase> {
  const server = await startEmbeddedPostgres(dataDir)
  return {
    url: server.url,
    async release() {
      const door = await connect(server.url).catch(() => undefined) // somebody else is ending it already
      try {
        await door?.query('select pg_advisory_lock($1)', [GUEST_LOCK]) // the last guest has left, and nobody else comes in
      } finally {
        await server.stop()
        await door?.end().catch(() => undefined)
      }
    },
  }
}

async function beGuest(url: string): Promise<BorrowedDatabase> {
  const seat = await connect(url)
  try {
    await seat.query('select pg_advisory_lock_shared($1)', [GUEST_LOCK])
    // A server that ends lets go of locks before its last session has heard of it, but lets nobody new in.
    await (await connect(url)).end()
  } catch (error) {
    await seat.end().catch(() => undefined)
    throw error
  }
  return { url, release: () => seat.end().catch(() => undefined) }
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: 'pod command', connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined) // the statement that needs the connection says so
  await client.connect()
  return client
}

async function isRunning(config: Config): Promise<boolean> {
  return (await findRunningEmbeddedPostgres(config.dataDir).catch(() => undefined)) !== undefined
}
