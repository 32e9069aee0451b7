import { type Connection, createConnection, type QueryOptions } from 'mysql2'
import { hasCode } from '../../errors/thrown.js'
import { TakeOverError } from '../take-over-error.js'
import { toMysql } from './mysql-dialect.js'
import { copyLines, type MysqlRow } from './mysql-rows.js'
import type { BlockReading, FoundTable, Source } from './source.js'
import type { ColumnType, SourceTable } from './source-tables.js'

/** Milliseconds of one statement. */
const MAX_STATEMENT_MS = 60_000
/** Rows that are read ahead of the copy. */
const ROWS_AHEAD = 500

/** Error codes of MySQL and MariaDB for a statement that has taken too long. */
const TIMEOUTS = ['ER_QUERY_TIMEOUT', 'ER_STATEMENT_TIMEOUT'] as const
/** Another server does not have the setting. */
const UNKNOWN_SETTING = 'ER_UNKNOWN_SYSTEM_VARIABLE'

/** Opens the database of a diaspora* pod on MySQL or MariaDB, by one session. */
export async function openMysqlSource(url: string, maxStatementMs = MAX_STATEMENT_MS): Promise<Source> {
  const session = await connect(url, maxStatementMs)
  const tables = await listTables(session)
  const columnsByTable = new Map(tables.map((table) => [table.name, new Set(table.columns)]))
  const columnsOf = (table: SourceTable) => columnsByTable.get(table.name) ?? new Set<string>()
  return {
    kind: 'mysql',
    identity: async () => {
      const [row] = await select<{ identity: string }>(
        session,
        `select concat(@@hostname, ' ', @@port, ' ', database()) as identity`,
      )
      return row?.identity ?? ''
    },
    encoding: async () => {
      const [row] = await select<{ encoding: string }>(session, 'select @@character_set_database as encoding')
      return row?.encoding ?? ''
    },
    listTables: async () => tables,
    async listVersions() {
      if (!columnsByTable.has('schema_migrations')) return []
      const rows = await select<{ version: string }>(session, 'select version from schema_migrations order by 1')
      return rows.map(({ version }) => version)
    },
    countRows: async (table) =>
      columnsByTable.has(table) ? countRows(session, table) : { rows: 0, isEstimate: false },
    async lastKey(table) {
      if (!columnsOf(table).has(table.key)) return 0
      const [row] = await select<{ last: string }>(
        session,
        `select greatest(
           coalesce((select auto_increment - 1 from information_schema.tables where table_schema = database() and table_name = ?), 0),
           coalesce((select max(${quote(table.key)}) from ${quote(table.name)}), 0)
         ) as last`,
        [table.name],
      )
      return Number(row?.last ?? 0)
    },
    listBlockEnds: async (table, after, size) =>
      columnsByTable.has(table.name) ? listBlockEnds(session, table, after, size) : [],
    readBlock: (table, reading) => readBlock(session, table, columnsOf(table), reading),
    async query<Row extends object>(statement: string, values?: readonly unknown[]) {
      const mysqlStatement = toMysql(statement, values)
      return select<Row>(session, mysqlStatement.sql, mysqlStatement.values)
    },
    countExamples: async (statement, values, max) => {
      const { sql, values: given } = toMysql(
        `select count(*) as count, group_concat(example order by example separator ' ') as examples from (${statement}) as dirty`,
        values,
      )
      const [row] = await select<{ count: number; examples: string | null }>(session, sql, given)
      const examples = (row?.examples ?? '').split(' ').filter((example) => example !== '')
      return { count: Number(row?.count ?? 0), examples: examples.slice(0, max) }
    },
    isTimeout: (error) => hasCode(error, ...TIMEOUTS),
    close: async () =>
      new Promise((resolve) => {
        session.end(() => resolve())
      }),
  }
}

async function connect(url: string, maxStatementMs: number): Promise<Connection> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url)
  const database = decodeURIComponent(pathname.slice(1))
  const socketPath = searchParams.get('socket') ?? undefined
  const session = createConnection({
    ...(socketPath === undefined ? { host: hostname, port: Number(port || 3306) } : { socketPath }),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database,
    charset: 'utf8mb4_bin',
    connectTimeout: 10_000,
    dateStrings: true,
    supportBigNumbers: true,
    ...(searchParams.get('ssl') === 'true' && { ssl: {} }),
  })
  session.on('error', () => undefined) // the next statement reports the error
  try {
    await new Promise<void>((resolve, reject) => {
      session.connect((error) => (error ? reject(error) : resolve()))
    })
  } catch (cause) {
    session.destroy()
    const reason = cause instanceof Error ? cause.message : 'unknown'
    throw new TakeOverError(`The old database ${database} at ${hostname} cannot be read: ${reason}.`, { cause })
  }
  await select(session, 'set session transaction read only')
  await select(
    session,
    `set session sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES', time_zone = '+00:00'`,
  )
  await select(session, 'set session group_concat_max_len = 65536')
  for (const setting of [
    `max_execution_time = ${maxStatementMs}`,
    `max_statement_time = ${maxStatementMs / 1_000}`,
    'information_schema_stats_expiry = 0',
  ]) {
    await select(session, `set session ${setting}`).catch((error: unknown) => {
      if (!hasCode(error, UNKNOWN_SETTING)) throw error
    })
  }
  return session
}

async function select<Row extends object>(
  session: Connection,
  sql: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    session.query(sql, [...values], (error, rows) => (error ? reject(error) : resolve(rows as unknown as Row[])))
  })
}

async function listTables(session: Connection): Promise<readonly FoundTable[]> {
  const tables = await select<{ name: string; bytes: string }>(
    session,
    `select table_name as name, coalesce(data_length, 0) + coalesce(index_length, 0) as bytes
     from information_schema.tables where table_schema = database() and table_type = 'BASE TABLE' order by 1`,
  )
  const columns = await select<{ name: string; column: string }>(
    session,
    `select table_name as name, column_name as "column" from information_schema.columns
     where table_schema = database() order by table_name, ordinal_position`,
  )
  return tables.map(({ name, bytes }) => ({
    name,
    bytes: Number(bytes),
    columns: columns.filter((each) => each.name === name).map(({ column }) => column),
  }))
}

async function countRows(session: Connection, table: string): ReturnType<Source['countRows']> {
  try {
    const [row] = await select<{ count: number }>(session, `select count(*) as count from ${quote(table)}`)
    return { rows: Number(row?.count ?? 0), isEstimate: false }
  } catch (error) {
    if (!hasCode(error, ...TIMEOUTS)) throw error
    const [row] = await select<{ count: number }>(
      session,
      'select table_rows as count from information_schema.tables where table_schema = database() and table_name = ?',
      [table],
    )
    return { rows: Number(row?.count ?? 0), isEstimate: true }
  }
}

/** One statement for each block: the servers that diaspora* runs on do not all number rows. */
async function listBlockEnds(
  session: Connection,
  { name, key }: SourceTable,
  after: number,
  { rows: size, blocks }: { readonly rows: number; readonly blocks: number },
): Promise<readonly number[]> {
  const ends: number[] = []
  const column = quote(key)
  for (let last = after; ends.length < blocks; ) {
    const [end] = await select<{ key: string }>(
      session,
      `select ${column} as "key" from ${quote(name)} where ${column} > ? order by ${column} limit 1 offset ${size - 1}`,
      [last],
    )
    if (end !== undefined) {
      last = Number(end.key)
      ends.push(last)
      continue
    }
    const [rest] = await select<{ key: string | null }>(
      session,
      `select max(${column}) as "key" from ${quote(name)} where ${column} > ?`,
      [last],
    )
    if (rest?.key != null) ends.push(Number(rest.key))
    break
  }
  return ends
}

async function readBlock(
  session: Connection,
  table: SourceTable,
  existing: ReadonlySet<string>,
  { block, known, use }: BlockReading,
): Promise<void> {
  const names = Object.keys(table.columns)
  const columns = names.map((name) => (existing.has(name) ? quote(name) : (table.defaults?.[name] ?? 'null')))
  const from = `from ${quote(table.name)} where ${quote(table.key)} > ${block.after} and ${quote(table.key)} <= ${block.upTo}`
  await select(session, 'start transaction with consistent snapshot, read only')
  try {
    // 60 bits of MD5 over all columns; a mark before each keeps null apart from an empty text.
    const columnTexts = columns.map((column) => `coalesce(concat('=', cast(${column} as binary)), '-')`)
    const [row] = await select<{ rows: string; fingerprint: string }>(
      session,
      `select count(*) as "rows",
         cast(coalesce(sum(cast(conv(left(md5(concat_ws('|', ${columnTexts.join(', ')})), 15), 16, 10) as unsigned)), 0) as char) as fingerprint
       ${from}`,
    )
    const mark = { rows: Number(row?.rows ?? 0), fingerprint: row?.fingerprint ?? '0' }
    const isKnown = known !== undefined && known.rows === mark.rows && known.fingerprint === mark.fingerprint
    const types = names.map((name): ColumnType => table.columns[name] ?? 'text')
    const openLines = () => copyLines(streamRows(session, `select ${columns.join(', ')} ${from}`), types)
    await use({ ...mark, openLines: isKnown ? undefined : openLines })
    await select(session, 'commit')
  } catch (error) {
    await select(session, 'rollback').catch(() => undefined)
    throw error
  }
}

/** The fields as bytes. */
function streamRows(session: Connection, sql: string): AsyncIterable<MysqlRow> {
  const options: QueryOptions = { sql, rowsAsArray: true, typeCast: (field) => field.buffer() }
  return session.query(options).stream({ highWaterMark: ROWS_AHEAD })
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
