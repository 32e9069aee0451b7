import { setTimeout as pause } from 'node:timers/promises'
import createKnex, { type Knex } from 'knex'
import { knexSnakeCaseMappers } from 'objection'
import pg from 'pg'
import { migrations } from '../../../migrations/index.js'
import type { Migration } from '../../../migrations/migration.js'
import { isLockTimeout } from './errors.js'

/** Limits of the database use of a process. Times are in milliseconds. */
export interface DatabaseLimits {
  /** The largest number of connections. */
  readonly pool: number
  /** The longest wait for a free connection. */
  readonly acquireTimeout: number
  /** The server cancels a statement after this time. */
  readonly statementTimeout: number
  /** The process abandons a statement after this time: the server may be frozen or unreachable. */
  readonly queryTimeout: number
  /**
   * The planner always prefers an index to a scan of the table. Queue tables grow from none to fifty thousand rows within seconds, and a
   * plan made for the empty table would scan all rows for each job. Not set: the planner chooses.
   */
  readonly indexesOnly?: true
}

/** With a frozen server, clients get an error within six seconds. A working server cancels the statement before that. */
export const WEB_LIMITS: DatabaseLimits = {
  pool: 10,
  acquireTimeout: 3_000,
  statementTimeout: 5_000,
  queryTimeout: 5_500,
}

export const WORKER_LIMITS: DatabaseLimits = {
  pool: 20,
  acquireTimeout: 15_000,
  statementTimeout: 20_000,
  queryTimeout: 30_000,
  indexesOnly: true,
}

export interface DatabaseOptions extends DatabaseLimits {
  readonly url: string
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string
}

const CONNECT_TIMEOUT = 5_000
const LOCK_TIMEOUT = 3_000
const IDLE_IN_TRANSACTION_TIMEOUT = 30_000
/** Without `jit = off`, older servers compile plans that need a table scan, because these look very expensive. */
const INDEXES_ONLY = 'set enable_seqscan = off; set jit = off'

/** Idle connections outlive the tasks that run once a minute. The pool looks for idle ones rarely, because that wakes the process. */
const POOL = { min: 0, idleTimeoutMillis: 90_000, reapIntervalMillis: 15_000 }

/** Ids and counts are read as numbers. Dates have no time and no zone, and are read as text. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number)
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text)

/** Opens a pool. It connects with the first statement. Column names are snake_case in the database and camelCase in the code. */
export function openDatabase(options: DatabaseOptions): Knex {
  const connection = {
    connectionString: options.url,
    application_name: options.applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: options.queryTimeout,
    keepAlive: true,
  } satisfies pg.ClientConfig
  return createKnex({
    client: 'pg',
    connection,
    pool: { ...POOL, max: options.pool, validate: isUsable, afterCreate: limitSession(options) },
    acquireConnectionTimeout: options.acquireTimeout,
    log: silent,
    // Error messages are logged, and values may be private texts.
    compileSqlOnError: false,
    ...knexSnakeCaseMappers(),
  })
}

/** Sets the limits by a statement: connection poolers reject unknown startup parameters. */
function limitSession({ statementTimeout, indexesOnly }: DatabaseLimits) {
  const text = `
    set statement_timeout = ${statementTimeout};
    set lock_timeout = ${LOCK_TIMEOUT};
    set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT};
    ${indexesOnly ? INDEXES_ONLY : ''}`
  return (connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) => {
    connection.query(text, (error) => {
      if (error) connection.end(() => {})
      done(error, connection)
    })
  }
}

/** Knex prints warnings for errors that it also throws. */
const silent = { warn: () => undefined }

/** A connection with an abandoned statement is still busy. The next statement would wait behind it. */
function isUsable(connection: { readonly readyForQuery?: boolean | null }): boolean {
  return connection.readyForQuery === true
}

/** Calls back with the error of each connection that breaks or cannot be opened. */
export function onConnectionError(db: Knex, report: (error: Error) => void): void {
  const { pool } = db.client
  pool.on('createSuccess', (_id: number, connection: pg.Client) => connection.on('error', report))
  pool.on('createFail', (_id: number, error: Error) => report(error))
}

/** Calls back with the milliseconds that each statement waited for a connection, also if it got none. */
export function onConnectionAcquired(db: Knex, report: (ms: number) => void): void {
  const { pool } = db.client
  const began = new Map<number, number>()
  const end = (id: number) => {
    const at = began.get(id)
    began.delete(id)
    if (at !== undefined) report(performance.now() - at)
  }
  pool.on('acquireRequest', (id: number) => began.set(id, performance.now()))
  pool.on('acquireSuccess', end)
  pool.on('acquireFail', end)
}

/** The database answers within this many milliseconds. */
export async function isDatabaseReachable(db: Knex, within = 1_000): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, within, false)
  })
  const answer = db.raw('select 1').then(
    () => true,
    () => false,
  )
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}

/**
 * Runs a statement that the server plans once per connection, for frequent reads. A name always has the same text. A function
 * builds its text once per process. Columns keep the names of the text.
 */
export async function queryPrepared<Row extends pg.QueryResultRow>(
  db: Knex,
  name: string,
  text: string | (() => string),
  values: readonly unknown[],
): Promise<Row[]> {
  return onConnection(db, async (connection) => {
    const { rows } = await connection.query<Row>({ name, text: textOf(name, text), values: [...values] })
    return rows
  })
}

const builtTexts = new Map<string, string>()

function textOf(name: string, text: string | (() => string)): string {
  if (typeof text === 'string') return text
  const built = builtTexts.get(name) ?? text()
  builtTexts.set(name, built)
  return built
}

/** The same for a statement that always returns one row, such as an aggregate. */
export async function queryPreparedRow<Row extends pg.QueryResultRow>(
  ...statement: Parameters<typeof queryPrepared>
): Promise<Row> {
  const [row] = await queryPrepared<Row>(...statement)
  if (row === undefined) throw new Error(`The statement "${statement[1]}" returned no row.`)
  return row
}

/**
 * Runs a statement that the server plans for these values. For searches: one value matches no row and another one all rows, and no generic
 * plan serves both.
 */
export async function queryUnprepared<Row extends pg.QueryResultRow>(
  db: Knex,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  return onConnection(db, async (connection) => {
    const { rows } = await connection.query<Row>({ text, values: [...values] })
    return rows
  })
}

async function onConnection<Result>(db: Knex, run: (connection: pg.Client) => Promise<Result>): Promise<Result> {
  if (isTransaction(db) && db.isCompleted()) throw new Error('The transaction of this statement has ended.')
  const connection: pg.Client = await db.client.acquireConnection()
  try {
    return await run(connection)
  } catch (error) {
    // The stack of the driver's error does not lead to the caller.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  } finally {
    await db.client.releaseConnection(connection)
  }
}

function isTransaction(db: Knex): db is Knex.Transaction {
  return db.isTransaction === true
}

/** A connection outside of the pool, not opened yet. For state of a session, such as `listen`, that a pool would mix up. */
export function openSession(db: Knex, purpose: string): pg.Client {
  const settings: pg.ClientConfig = db.client.config.connection
  return new pg.Client({ ...settings, application_name: `${settings.application_name} (${purpose})` })
}

/**
 * Without the last two, a scan of a large table begins where another one has stopped, or its rows come from several processes: the
 * rows of two scans could not be compared.
 */
const UNLIMITED =
  'set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0; set jit = off; ' +
  'set synchronize_seqscans = off; set max_parallel_workers_per_gather = 0'

/** An open connection outside of the pool without time limits, for reading or loading whole tables. */
export async function openUnlimitedSession(db: Knex, purpose: string): Promise<pg.Client> {
  const settings: pg.ClientConfig = db.client.config.connection
  const session = new pg.Client({
    ...settings,
    application_name: `${settings.application_name} (${purpose})`,
    query_timeout: 0,
  })
  session.on('error', () => undefined) // the next statement reports the error
  await session.connect()
  await session.query(UNLIMITED)
  return session
}

export interface MigrateOptions {
  /** For tests: other migrations than those of the program. */
  readonly known?: Migrations
  /** Milliseconds for which a migration waits for the lock of a table. Requests queue behind it meanwhile. */
  readonly lockTimeout?: number
  /** Called before another try, when a table was locked for too long. */
  readonly onBlocked?: (attempt: number) => Promise<void>
}

const MIGRATION_LOCK_TIMEOUT = 3_000
const MIGRATION_TRIES = 10
/** Milliseconds in which requests run that have waited behind a migration. */
const PAUSE_BETWEEN_TRIES = 1_000
/** Milliseconds between two looks whether another process has ended its migrations. */
const MIGRATION_LOCK_PAUSE = 100

/**
 * Applies pending migrations and returns their names. Processes that start at the same time run one after the other. A migration that
 * cannot lock a table in time is tried again, so that it does not hold up requests.
 */
export async function migrate(
  db: Knex,
  {
    known = migrations,
    lockTimeout = MIGRATION_LOCK_TIMEOUT,
    onBlocked = () => pause(PAUSE_BETWEEN_TRIES),
  }: MigrateOptions = {},
): Promise<string[]> {
  return withMigrationLock(db, known, (migrationDb) => applyPending(migrationDb, known, onBlocked), lockTimeout)
}

/** The tables of a new database are made in one transaction; later each migration has its own, and keeps its locks for a shorter time. */
async function applyPending(
  migrationDb: Knex,
  known: Migrations,
  onBlocked: (attempt: number) => Promise<void>,
): Promise<string[]> {
  const { applied } = await migrationStatus(migrationDb)
  if (applied.length === 0) {
    const [, names]: [number, string[]] = await migrationDb.migrate.latest({
      ...SETTINGS,
      migrationSource: inOne(known),
    })
    return names
  }
  const [last = 0]: number[] = await migrationDb('knex_migrations').orderBy('batch', 'desc').limit(1).pluck('batch')
  const done: string[] = []
  for (let attempt = 1; ; ) {
    try {
      const [, names]: [number, string[]] = await migrationDb.migrate.up()
      if (names.length === 0) {
        // A rollback reverts all of them.
        await migrationDb('knex_migrations')
          .where('batch', '>', last)
          .update({ batch: last + 1 })
        return done
      }
      done.push(...names)
      attempt = 1
    } catch (error) {
      if (!isLockTimeout(error) || attempt === MIGRATION_TRIES) throw error
      await onBlocked(attempt)
      attempt += 1
    }
  }
}

/** Applies only these migrations, for the tables of an older version. */
export async function migrateTo(db: Knex, names: readonly string[]): Promise<void> {
  const chosen = new Map([...migrations].filter(([name]) => names.includes(name)))
  await withMigrationLock(db, chosen, async (migrationDb) => {
    await migrationDb.migrate.latest()
  })
}

/** Reverts the last batch of migrations and returns their names. */
export async function rollback(db: Knex): Promise<string[]> {
  const { unknown } = await migrationStatus(db)
  if (unknown.length > 0) throw new Error(`Only the release that added ${unknown.join(', ')} can revert it.`)
  return withMigrationLock(db, migrations, async (migrationDb) => {
    const [, names]: [number, string[]] = await migrationDb.migrate.rollback()
    return names
  })
}

export interface MigrationStatus {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** Applied by a newer release. The process starts nevertheless. */
  readonly unknown: readonly string[]
}

/** Reads the state of the migrations without creating the table of migrations. */
export async function migrationStatus(db: Knex): Promise<MigrationStatus> {
  const { rows } = await db.raw(`select to_regclass('knex_migrations') is not null as begun`)
  const done: string[] = rows[0].begun ? await db('knex_migrations').orderBy('id').pluck('name') : []
  return {
    applied: done.filter((name) => migrations.has(name)),
    pending: [...migrations.keys()].filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !migrations.has(name)),
  }
}

/** Runs work under a lock, on connections without time limits. */
async function withMigrationLock<Result>(
  db: Knex,
  known: Migrations,
  work: (migrationDb: Knex) => Promise<Result>,
  lockTimeout = 0,
): Promise<Result> {
  const settings: pg.ClientConfig = db.client.config.connection
  const migrationDb = createKnex({
    client: 'pg',
    connection: {
      ...(settings.connectionString && { connectionString: settings.connectionString }),
      application_name: `${settings.application_name} (migrations)`,
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      keepAlive: true,
    },
    pool: { min: 0, max: 2, afterCreate: waitForLocks(lockTimeout) },
    log: silent,
    migrations: { ...SETTINGS, migrationSource: migrationSource(known) },
  })
  try {
    return await migrationDb.transaction(async (lock) => {
      // Not by waiting in a statement: an index that another process makes concurrently would wait for its snapshot.
      while (!(await tryMigrationLock(lock))) await pause(MIGRATION_LOCK_PAUSE)
      // With the advisory lock held, a lock in the library's own table was left by a killed process.
      await migrationDb.migrate.forceFreeMigrationsLock()
      return work(migrationDb)
    })
  } finally {
    await migrationDb.destroy()
  }
}

async function tryMigrationLock(lock: Knex.Transaction): Promise<boolean> {
  const { rows } = await lock.raw(`select pg_try_advisory_xact_lock(hashtextextended('migrations', 0)) as locked`)
  return rows[0].locked
}

/** Sets the longest wait for a lock of each connection. */
function waitForLocks(lockTimeout: number) {
  return (connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) => {
    connection.query(`set lock_timeout = ${lockTimeout}`, (error) => done(error ?? null, connection))
  }
}

type Migrations = typeof migrations

/** A database of a newer release has migrations that this one does not know. */
const SETTINGS = { disableMigrationsListValidation: true } as const

/** The same migrations, all in one transaction. */
function inOne(known: Migrations): Knex.MigrationSource<string> {
  const withoutConfig = async (load: () => Promise<Migration>): Promise<Migration> => {
    const { up, down } = await load()
    return { up, down }
  }
  return migrationSource(new Map([...known].map(([name, load]) => [name, () => withoutConfig(load)])))
}

/** Migration names without a file extension, which is .ts in tests and .js in production. */
function migrationSource(known: Migrations): Knex.MigrationSource<string> {
  return {
    getMigrations: async () => [...known.keys()],
    getMigrationName: (name) => name,
    async getMigration(name) {
      const load = known.get(name)
      if (load === undefined) throw new Error(`There is no migration ${name}.`)
      return load()
    },
  }
}
