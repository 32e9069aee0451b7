import createKnex, { type Knex } from 'knex'
import { knexSnakeCaseMappers } from 'objection'
import pg from 'pg'
import { migrations } from '../../../migrations/index.js'

/** What a kind of process may take from the database; times in milliseconds. */
export interface DatabaseLimits {
  /** Connections at most. */
  readonly pool: number
  /** How long to wait for a free connection. */
  readonly acquireTimeout: number
  /** After this the server gives up on a statement. */
  readonly statementTimeout: number
  /** After this we give up on the server: it may be frozen or out of reach. */
  readonly queryTimeout: number
  /**
   * What waits for work is nothing at one moment and fifty thousand rows at the next, and a plan that was made for the one would
   * read the whole of the other for each job. Wherever there is an index it is used, whatever the length of the table. Not set: the
   * server chooses.
   */
  readonly indexesOnly?: true
}

/** Clients of a frozen server are told so within six seconds; one that lives has given up by itself before that. */
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
  /** Shown by the server beside each connection. */
  readonly applicationName: string
}

const CONNECT_TIMEOUT = 5_000
const LOCK_TIMEOUT = 3_000
const IDLE_IN_TRANSACTION_TIMEOUT = 30_000
/** Older servers take a table without an index for so expensive that they would compile the plan. */
const INDEXES_ONLY = 'set enable_seqscan = off; set jit = off'

/** What is done once a minute finds its connection still there; and to look for idle ones wakes the process. */
const POOL = { min: 0, idleTimeoutMillis: 90_000, reapIntervalMillis: 15_000 }

/** Ids and counts are numbers here; a day has no time and no zone, so it stays a text. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number)
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text)

/** Opens a pool; nothing is connected before the first statement. Columns are snake_case in the database and camelCase here. */
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
    // Error messages end in logs, and values are texts of people.
    compileSqlOnError: false,
    ...knexSnakeCaseMappers(),
  })
}

/** By a statement: a pooler in between refuses what it does not know at the beginning of a connection. */
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

/** The library would print what it also throws. */
const silent = { warn: () => undefined }

/** A connection on which we gave up waiting has its answer still to come; the next statement would wait behind it. */
function isUsable(connection: { readonly readyForQuery?: boolean | null }): boolean {
  return connection.readyForQuery === true
}

/** Calls with each error that a lost connection causes: one that breaks, and one that cannot be made. */
export function onConnectionError(db: Knex, report: (error: Error) => void): void {
  const { pool } = db.client
  pool.on('createSuccess', (_id: number, connection: pg.Client) => connection.on('error', report))
  pool.on('createFail', (_id: number, error: Error) => report(error))
}

/** Calls with the milliseconds that each statement waited for a connection, also where it got none. */
export function onConnectionAcquired(db: Knex, note: (ms: number) => void): void {
  const { pool } = db.client
  const began = new Map<number, number>()
  const end = (id: number) => {
    const at = began.get(id)
    began.delete(id)
    if (at !== undefined) note(performance.now() - at)
  }
  pool.on('acquireRequest', (id: number) => began.set(id, performance.now()))
  pool.on('acquireSuccess', end)
  pool.on('acquireFail', end)
}

/** Whether the database answers, and soon. */
export async function isDatabaseReachable(db: Knex, within = 1_000): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, within, false)
  })
  const answer = db.raw('select 1').then(
    () => true,
    () => false,
  )
  return Promise.race([answer, tooLate]).finally(() => clearTimeout(timer))
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

/** The same for what always has one row, as aggregates have. */
export async function queryPreparedRow<Row extends pg.QueryResultRow>(
  ...statement: Parameters<typeof queryPrepared>
): Promise<Row> {
  const [row] = await queryPrepared<Row>(...statement)
  if (row === undefined) throw new Error(`The statement "${statement[1]}" has no row.`)
  return row
}

/**
 * Runs a statement that the server plans for these very values: for a search, of which one value finds nobody and another one
 * everybody.
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
    // It was made where the answer came in, which does not tell who has asked.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  } finally {
    await db.client.releaseConnection(connection)
  }
}

function isTransaction(db: Knex): db is Knex.Transaction {
  return db.isTransaction === true
}

/** A connection outside of the pool, not opened yet: for what belongs to a session, which a pool would hand on to others. */
export function openSession(db: Knex, purpose: string): pg.Client {
  const settings: pg.ClientConfig = db.client.config.connection
  return new pg.Client({ ...settings, application_name: `${settings.application_name} (${purpose})` })
}

/** Brings the tables up to date and tells which migrations ran. Processes that start together take turns. */
export async function migrate(db: Knex): Promise<string[]> {
  return oneAtATime(db, async (own) => {
    const [, names]: [number, string[]] = await own.migrate.latest()
    return names
  })
}

/** Takes the last batch of migrations back and tells which. */
export async function rollback(db: Knex): Promise<string[]> {
  const { unknown } = await migrationStatus(db)
  if (unknown.length > 0) throw new Error(`Only the release that brought ${unknown.join(', ')} can take it back.`)
  return oneAtATime(db, async (own) => {
    const [, names]: [number, string[]] = await own.migrate.rollback()
    return names
  })
}

export interface MigrationStatus {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** Applied by a newer release; that is no reason not to start. */
  readonly unknown: readonly string[]
}

/** Looks, and changes nothing: not even the table of migrations is made. */
export async function migrationStatus(db: Knex): Promise<MigrationStatus> {
  const { rows } = await db.raw(`select to_regclass('knex_migrations') is not null as begun`)
  const done: string[] = rows[0].begun ? await db('knex_migrations').orderBy('id').pluck('name') : []
  return {
    applied: done.filter((name) => migrations.has(name)),
    pending: [...migrations.keys()].filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !migrations.has(name)),
  }
}

/** Migrations run on connections of their own: they may take as long as they take. */
async function oneAtATime<Result>(db: Knex, work: (own: Knex) => Promise<Result>): Promise<Result> {
  const settings: pg.ClientConfig = db.client.config.connection
  const own = createKnex({
    client: 'pg',
    connection: {
      ...(settings.connectionString && { connectionString: settings.connectionString }),
      application_name: `${settings.application_name} (migrations)`,
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      keepAlive: true,
    },
    pool: { min: 0, max: 2 },
    log: silent,
    migrations: { migrationSource, disableMigrationsListValidation: true },
  })
  try {
    return await own.transaction(async (turn) => {
      await turn.raw(`select pg_advisory_xact_lock(hashtextextended('migrations', 0))`)
      // It is our turn, so whoever the library believes to be migrating was killed.
      await own.migrate.forceFreeMigrationsLock()
      return work(own)
    })
  } finally {
    await own.destroy()
  }
}

/** File names end in .ts in tests and in .js in production; these names have no ending. */
const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () => [...migrations.keys()],
  getMigrationName: (name) => name,
  async getMigration(name) {
    const migration = migrations.get(name)
    if (migration === undefined) throw new Error(`There is no migration ${name}.`)
    return migration
  },
}
