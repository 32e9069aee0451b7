import {
  assertSchemaCompatibility,
  type BackendFactory,
  BULLMQ_MAJOR_VERSION,
  type IQueueBackend,
  type PgPool,
  PostgresConnection,
  PostgresQueueBackend,
  runMigrations,
  SchemaMigrationRequiredError,
  SchemaVersionMismatchError,
} from 'bullmq'
import pg from 'pg'
import { StartError } from '../start-error.js'
import { QUEUES } from './queue-names.js'

/** What carries the queue. Beyond this file Redis and PostgreSQL are the same. */
export interface QueueStore {
  readonly kind: 'redis' | 'postgresql'
  /** Gives every queue and every worker its own end of the shared connections. */
  readonly backend: BackendFactory<IQueueBackend, 'shared'>
  /** Resolves when the first contact was made, or was not. */
  readonly firstContact: Promise<void>
  /** False: asking it now could only wait. */
  isReady(): boolean
  /** In front of the keys of a queue. */
  prefixOf(pod: string, queue: string): string
  /** Resolves when what is added is as safe as this store can make it. */
  safely(prefix: string, add: () => Promise<unknown>): Promise<void>
  /** False: what comes next should come later, because those who take something out need room as well. */
  hasRoom(): Promise<boolean>
  /** What the operator should change, in sentences. */
  warnings(): Promise<readonly string[]>
  close(): Promise<void>
}

/** Says what is wrong, and where. */
export type Report = (where: string, error: Error) => void

/** One pool per process for all queues; each worker keeps one connection of it to listen on. */
export function openPostgresStore(databaseUrl: string, report: Report): QueueStore {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: QUEUES.length + 8,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
    // Idle workers look several times in it: each would open a connection of its own, which costs more than what it asks.
    idleTimeoutMillis: 60_000,
    // By a statement: a pooler in between refuses what it does not know at the beginning of a connection.
    onConnect: (client) => client.query('set search_path = bullmq; set statement_timeout = 20000'),
  })
  pool.setMaxListeners(0) // every queue and every worker listens for its errors
  pool.on('error', (error) => report('pool', error))
  const shared = pool as unknown as PgPool // BullMQ describes the same pool with looser types of its own

  return {
    kind: 'postgresql',
    firstContact: Promise.resolve(),
    backend: (name, options, kind) =>
      new PostgresQueueBackend(
        new LastingConnection(shared),
        name,
        { ...options, connection: shared },
        true,
        kind?.withBlockingConnection ? name : undefined,
      ),
    isReady: () => true,
    prefixOf: (pod) => pod,
    async safely(_prefix, add) {
      await add()
    },
    hasRoom: async () => true,
    warnings: async () => [],
    close: () => pool.end(),
  }
}

/**
 * BullMQ remembers the outcome of its first contact for ever: one failure at the start, and every later call fails at
 * once, in a loop that never lets go of the event loop. The schema is checked when the queues are opened instead.
 */
class LastingConnection extends PostgresConnection {
  override async waitUntilReady(): Promise<void> {}
}

/** Throws a StartError when the tables of the queue are missing or newer than this program. */
export async function checkQueueSchema(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 2_000, query_timeout: 2_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await assertSchemaCompatibility(client)
  } catch (error) {
    if (
      error instanceof SchemaMigrationRequiredError ||
      (error instanceof Error && 'code' in error && error.code === '3F000')
    ) {
      throw new StartError('The database has no tables for the queue yet. Run "pod db migrate" first.')
    }
    if (error instanceof SchemaVersionMismatchError) {
      throw new StartError(
        `The tables of the queue were made by a newer version of this program than this one (BullMQ ${BULLMQ_MAJOR_VERSION}). Install the newer version.`,
      )
    }
    throw error
  } finally {
    await client.end().catch(() => {})
  }
}

/** Creates or updates the tables of the queue in their own schema; does nothing when they are current. */
export async function migrateQueue(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    await runMigrations(client)
  } finally {
    await client.end()
  }
}
