import {
  assertSchemaCompatibility,
  type BackendFactory,
  BULLMQ_MAJOR_VERSION,
  createRedisBackend,
  type IQueueBackend,
  type PgPool,
  PostgresConnection,
  PostgresQueueBackend,
  runMigrations,
  SchemaMigrationRequiredError,
  SchemaVersionMismatchError,
} from 'bullmq'
import { Redis } from 'ioredis'
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
  /** What the operator should change, in sentences. */
  warnings(): Promise<readonly string[]>
  close(): Promise<void>
}

type Report = (where: string, error: Error) => void

/**
 * Producers have a connection of their own: it queues nothing while Redis is away and waits a second at most, where
 * those of the workers wait for as long as it takes.
 */
export function openRedisStore(redisUrl: string, report: Report): QueueStore {
  const address = redisUrl.startsWith('unix:') ? redisUrl.replace(/^unix:(\/\/)?/, '') : redisUrl
  const connect = (who: string, options: object) => {
    // The default backs off to many seconds; a worker would sleep on long after Redis is back.
    const retryStrategy = (times: number) => Math.min(times * 100, 2_000)
    return new Redis(address, { connectTimeout: 2_000, retryStrategy, ...options }).on('error', (error: Error) =>
      report(who, error),
    )
  }
  const producer = connect('producer', { enableOfflineQueue: false, maxRetriesPerRequest: 0, commandTimeout: 1_000 })
  const firstContact = new Promise<void>((resolve) => {
    for (const event of ['ready', 'close']) producer.once(event, () => resolve())
  })
  let worker: Redis | undefined

  return {
    kind: 'redis',
    firstContact,
    backend: (name, options, kind) => {
      if (kind?.withBlockingConnection) worker ??= connect('worker', { maxRetriesPerRequest: null })
      const connection = kind?.withBlockingConnection && worker ? worker : producer
      return createRedisBackend(name, { ...options, connection }, kind)
    },
    isReady: () => producer.status === 'ready',
    warnings: async () => redisWarnings(await producer.info('persistence'), await producer.info('memory')),
    close: async () => {
      producer.disconnect()
      worker?.disconnect()
    },
  }
}

function redisWarnings(persistence: string, memory: string): readonly string[] {
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
  const warnings: string[] = []
  if (/^aof_enabled:0/m.test(persistence)) {
    warnings.push(
      'Redis keeps no append-only file: when it stops, messages that were accepted and not yet taken in are lost. Set "appendonly yes" (best with "appendfsync always") in its configuration.',
    )
  }
  if (policy !== undefined && policy !== 'noeviction') {
    warnings.push(
      `Redis may throw away waiting jobs when its memory is full: maxmemory-policy is ${policy}. Set it to noeviction.`,
    )
  }
  return warnings
}

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
    options: '-c search_path=bullmq -c statement_timeout=20000',
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
