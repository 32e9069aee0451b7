import createKnex, { type Knex } from 'knex'
import { knexSnakeCaseMappers } from 'objection'
import pg from 'pg'

/** Limits of the database use of a process. */
export interface DatabaseLimits {
  /** The largest number of connections. */
  readonly pool: number
  /** The longest wait for a free connection. */
  readonly acquireTimeoutMs: number
  /** The server cancels a statement after this time. */
  readonly statementTimeoutMs: number
  /** The process abandons a statement after this time: the server may be frozen or unreachable. */
  readonly queryTimeoutMs: number
  /**
   * The planner always prefers an index to a scan of the table. Queue tables grow from none to fifty thousand rows within seconds, and a
   * plan made for the empty table would scan all rows for each job. Not set: the planner chooses.
   */
  readonly indexesOnly?: true
}

export interface DatabaseOptions extends DatabaseLimits {
  readonly url: string
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string
}

export const CONNECT_TIMEOUT_MS = 5_000
const LOCK_TIMEOUT_MS = 3_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000
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
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: options.queryTimeoutMs,
    keepAlive: true,
  } satisfies pg.ClientConfig
  return createKnex({
    client: 'pg',
    connection,
    pool: { ...POOL, max: options.pool, validate: isUsable, afterCreate: limitSession(options) },
    acquireConnectionTimeout: options.acquireTimeoutMs,
    log: NO_LOG,
    // Error messages are logged, and values may be private texts.
    compileSqlOnError: false,
    ...knexSnakeCaseMappers(),
  })
}

/**
 * The form of values as texts. A server, database or role may have another one, which the driver cannot read, and a copy of which cannot be
 * compared. Days are those of UTC.
 */
const FORM_OF_VALUES = `
  set timezone = 'UTC';
  set datestyle = 'ISO';
  set intervalstyle = 'postgres';
  set bytea_output = 'hex';
  set extra_float_digits = 1`

/** Sets the limits by a statement: connection poolers reject unknown startup parameters. */
function limitSession({ statementTimeoutMs, indexesOnly }: DatabaseLimits) {
  const text = `
    set statement_timeout = ${statementTimeoutMs};
    set lock_timeout = ${LOCK_TIMEOUT_MS};
    set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS};
    ${FORM_OF_VALUES};
    ${indexesOnly ? INDEXES_ONLY : ''}`
  return (connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) => {
    connection.query(text, (error) => {
      if (error) connection.end(() => {})
      done(error, connection)
    })
  }
}

/** Knex prints warnings for errors that it also throws. */
export const NO_LOG = { warn: () => undefined }

/** A connection with an abandoned statement is still busy. The next statement would wait for it. */
function isUsable(connection: { readonly readyForQuery?: boolean | null }): boolean {
  return connection.readyForQuery === true
}

/** Calls back with the error of each connection that breaks or cannot be opened. */
export function onConnectionError(db: Knex, report: (error: Error) => void): void {
  const { pool } = db.client
  pool.on('createSuccess', (_id: number, connection: pg.Client) => connection.on('error', report))
  pool.on('createFail', (_id: number, error: Error) => report(error))
}

/** Calls back with the milliseconds that each statement waited for a connection, even if it got none. */
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
export async function isDatabaseReachable(db: Knex, withinMs = 1_000): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, withinMs, false)
  })
  const answer = db.raw('select 1').then(
    () => true,
    () => false,
  )
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}

/** Values of a statement: a list for `?`, or an object for `:name`. */
type Bindings = readonly unknown[] | Readonly<Record<string, unknown>>

/** Runs a statement and returns its rows. Columns keep the names of the text. */
export async function queryRows<Row extends object>(db: Knex, text: string, bindings?: Bindings): Promise<Row[]> {
  const result: { readonly rows: Row[] } = await runRaw(db, text, bindings)
  return result.rows
}

/** Runs a statement that always returns a row, such as an aggregate, and returns the first one. */
export async function queryRow<Row extends object>(db: Knex, text: string, bindings?: Bindings): Promise<Row> {
  const [row] = await queryRows<Row>(db, text, bindings)
  if (row === undefined) throw new Error(`The statement "${text.trim().slice(0, 60)}" returned no row.`)
  return row
}

/** Runs a statement and returns the number of rows that it has inserted, updated or deleted. */
export async function changeRows(db: Knex, text: string, bindings?: Bindings): Promise<number> {
  const result: { readonly rowCount: number } = await runRaw(db, text, bindings)
  return result.rowCount
}

/** A text without values may contain question marks. */
function runRaw(db: Knex, text: string, bindings: Bindings | undefined): Knex.Raw {
  if (bindings === undefined) return db.raw(text)
  if (!Array.isArray(bindings)) assertNamesHaveValues(text, bindings as Readonly<Record<string, unknown>>)
  return db.raw(text, bindings as Knex.RawBinding[] | Knex.ValueDict)
}

/** A name in a text, such as `:userId`, which is not a cast, such as `::text`. */
const NAME = /(?<![:\\\w]):([a-zA-Z]\w*)/g

/** Knex leaves a name without a value in the text, and PostgreSQL then reports a syntax error at a colon. */
function assertNamesHaveValues(text: string, values: Readonly<Record<string, unknown>>): void {
  for (const [, name = ''] of text.matchAll(NAME)) {
    if (!Object.hasOwn(values, name))
      throw new Error(`The statement "${text.trim().slice(0, 60)}" has no value for :${name}.`)
  }
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

/** Runs a prepared statement that always returns one row, such as an aggregate. */
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
 * With `synchronize_seqscans`, a scan of a large table begins where another one has stopped; with parallel workers, its rows come from
 * several processes: the rows of two scans could not be compared.
 */
const UNLIMITED = `
  set statement_timeout = 0;
  set lock_timeout = 0;
  set idle_in_transaction_session_timeout = 0;
  set jit = off;
  set synchronize_seqscans = off;
  set max_parallel_workers_per_gather = 0;
  ${FORM_OF_VALUES}`

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
