import {
  assertSchemaCompatibility,
  type BackendFactory,
  BULLMQ_MAJOR_VERSION,
  type IQueueBackend,
  type PgPool,
  runMigrations,
  SchemaMigrationRequiredError,
  SchemaVersionMismatchError,
} from 'bullmq'
import pg from 'pg'
import { StartError } from '../../errors/start-error.js'
import { hasCode } from '../../errors/thrown.js'
import { LastingConnection, Listener, QueueBackend, WorkerConnection } from '../bullmq/postgres-connections.js'

/** What carries the queue. Beyond this file Redis and PostgreSQL are the same. */
export interface QueueStore {
  readonly kind: 'redis' | 'postgresql'
  /** Gives every queue and every worker its own end of the shared connections. */
  readonly backend: BackendFactory<IQueueBackend, 'shared'>
  /**
   * Seconds after which a worker that waits for a job looks by itself. It is woken when there is one, and looks only to be known as alive,
   * and in case that it was not woken; each look costs the queue four questions.
   */
  readonly lookEvery: number
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

/**
 * A queue is empty at one moment and long at the next, and a plan that was made for the one reads the whole of the other for each
 * job. There is an index for whatever the queue asks, so it is used at any length. Where there is none, as in tables that live as
 * long as a statement, older servers take that for so expensive that they would compile the plan.
 */
const INDEXES_ONLY =
  'set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off; set plan_cache_mode = force_generic_plan; set jit = off'

/**
 * A job is done before its worker says so. When the server dies before that is on disk, the job is done again, as if the worker
 * had died; and what is on disk is all that was said until some moment, so no job is lost by it. To wait for the disk costs the
 * server as much as the rest of a small job.
 */
const SAID_BY_WORKERS = 'set synchronous_commit = off'

/** Connections that a process takes at most when the queue is in PostgreSQL: each for producers, a worker more for its workers. */
export const QUEUE_POOLS = { producers: 8, workers: 9 }

/** Producers wait until a job is on disk, and have connections of their own for it. */
export function openPostgresStore(databaseUrl: string, report: Report): QueueStore {
  const producers = openPool(databaseUrl, { max: QUEUE_POOLS.producers, report })
  let workers: pg.Pool | undefined
  let listener: Listener | undefined

  function openWorkers(): pg.Pool {
    workers ??= openPool(databaseUrl, { max: QUEUE_POOLS.workers, settings: SAID_BY_WORKERS, report })
    return workers
  }

  function listenWith(pool: PgPool): Listener {
    if (listener === undefined || listener.isClosing) {
      listener = new Listener(pool).on('error', (error: Error) => report('listener', error))
    }
    return listener
  }

  return {
    kind: 'postgresql',
    lookEvery: 45, // PostgreSQL tells all who listen, and a worker that has lost its connection looks at once
    firstContact: Promise.resolve(),
    backend: (name, options, kind) => {
      const isWorker = kind?.withBlockingConnection === true
      const pool = isWorker ? openWorkers() : producers
      const shared = asPgPool(pool)
      const connection = isWorker
        ? new WorkerConnection(shared, name, listenWith(shared))
        : new LastingConnection(shared)
      return new QueueBackend(pool, connection, name, { ...options, connection: shared })
    },
    isReady: () => true,
    prefixOf: (pod) => pod,
    async safely(_prefix, add) {
      await add()
    },
    hasRoom: async () => true,
    warnings: async () => [],
    close: async () => {
      await Promise.all([producers.end(), workers?.end()])
    },
  }
}

/** BullMQ describes the same pool with looser types of its own. */
function asPgPool(pool: pg.Pool): PgPool {
  return pool as unknown as PgPool
}

function openPool(
  databaseUrl: string,
  { max, settings, report }: { readonly max: number; readonly settings?: string; readonly report: Report },
): pg.Pool {
  const first = ['set search_path = bullmq', 'set statement_timeout = 20000', INDEXES_ONLY, settings]
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max,
    keepAlive: true,
    // What is between may forget a connection on which nothing is said, and whoever listens says nothing.
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
    // Idle workers look several times in it: each would open a connection of its own, which costs more than what it asks.
    idleTimeoutMillis: 60_000,
    // By a statement: a pooler in between refuses what it does not know at the beginning of a connection.
    onConnect: (client) => client.query(first.filter((each) => each !== undefined).join('; ')),
  })
  pool.setMaxListeners(0) // every queue and every worker listens for its errors
  pool.on('error', (error) => report('pool', error))
  return pool
}

/** Throws a StartError when the tables of the queue are missing or newer than this program. */
export async function checkQueueSchema(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 2_000, query_timeout: 2_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await assertSchemaCompatibility(client)
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError || hasCode(error, '3F000')) {
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

/**
 * To compress what a job carries is most of what it costs to add one, and saves nothing: base64 does not get smaller that way.
 * Altering a table waits until nobody reads it, so it is left alone once it is right.
 */
const LEAVE_UNCOMPRESSED = `
  do $$ begin
    if exists (
      select from pg_attribute where attrelid = 'bullmq.job'::regclass and attname = 'data' and attstorage <> 'e'
    ) then
      alter table bullmq.job alter column data set storage external;
    end if;
  end $$`

/** Creates or updates the tables of the queue in their own schema; does nothing when they are current. */
export async function migrateQueue(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    await runMigrations(client)
    await client.query(LEAVE_UNCOMPRESSED)
  } finally {
    await client.end()
  }
}
