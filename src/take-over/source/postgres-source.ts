import pg from 'pg'
import { copyOut } from '../../persistence/database/copy.js'
import { isStatementTimeout } from '../../persistence/database/errors.js'
import { TakeOverError } from '../take-over-error.js'
import type { BlockReading, FoundTable, Source } from './source.js'
import type { ColumnType, SourceTable } from './source-tables.js'

/** Milliseconds of one transaction. */
const MAX_TRANSACTION_MS = 60_000

/** Opens the PostgreSQL database of a diaspora* pod. One session reads, and one more may be opened for a second block. */
export async function openPostgresSource(url: string, maxTransactionMs = MAX_TRANSACTION_MS): Promise<Source> {
  const session = await connect(url, maxTransactionMs)
  const columnsByTable = new Map((await listTables(session)).map((table) => [table.name, new Set(table.columns)]))
  const columnsOf = (table: SourceTable) => columnsByTable.get(table.name) ?? new Set<string>()
  return {
    kind: 'postgres',
    identity: () => identityOf(session),
    encoding: () => readEncoding(session),
    listTables: () => listTables(session),
    async listVersions() {
      if (!columnsByTable.has('schema_migrations')) return []
      const { rows } = await session.query<{ version: string }>(
        'select version from public.schema_migrations order by 1',
      )
      return rows.map(({ version }) => version)
    },
    async countRows(table) {
      return columnsByTable.has(table) ? countRows(session, table) : { rows: 0, isEstimate: false }
    },
    async lastKey(table) {
      if (!columnsOf(table).has(table.key)) return 0
      const { rows } = await session.query(
        `select coalesce(greatest((
           select case when has_sequence_privilege(name, 'select') then pg_sequence_last_value(name::regclass) end
           from pg_get_serial_sequence($1, $2) as name where name is not null
         ), (select max(${quote(table.key)}) from public.${quote(table.name)})), 0)::float as last`,
        [`public.${quote(table.name)}`, table.key],
      )
      return rows[0].last
    },
    async listBlockEnds(table, after, { rows: size, blocks }) {
      if (!columnsByTable.has(table.name)) return []
      const key = quote(table.key)
      const { rows } = await session.query<{ end: number }>(
        `select max(key)::float as end from (
           select ${key} as key, (row_number() over (order by ${key}) - 1) / $2 as block
           from public.${quote(table.name)} where ${key} > $1 order by ${key} limit $3
         ) as keys group by block order by 1`,
        [after, size, size * blocks],
      )
      return rows.map(({ end }) => end)
    },
    readBlock: (table, reading) => readBlock(session, table, columnsOf(table), reading),
    query: async (statement, values = []) => (await session.query(statement, [...values])).rows,
    async countExamples(select, values, max) {
      const { rows } = await session.query(
        `select count(*)::int as count, coalesce((array_agg(example))[1:${max}], '{}') as examples from (${select}) as dirty`,
        [...values],
      )
      return rows[0]
    },
    isTimeout: isStatementTimeout,
    close: () => session.end(),
  }
}

async function connect(url: string, maxTransactionMs: number): Promise<pg.Client> {
  const session = new pg.Client({
    connectionString: url,
    application_name: 'pod take-over',
    connectionTimeoutMillis: 10_000,
  })
  session.on('error', () => undefined) // the next statement reports the error
  try {
    await session.connect()
  } catch (cause) {
    const { host, pathname } = new URL(url)
    const reason = cause instanceof Error ? cause.message : 'unknown'
    throw new TakeOverError(`The old database ${pathname.slice(1)} at ${host} cannot be read: ${reason}.`, { cause })
  }
  await session.query(`
    set session characteristics as transaction read only;
    set default_transaction_read_only = on; set datestyle = iso; set timezone = 'UTC'; set bytea_output = hex;
    set statement_timeout = ${maxTransactionMs}`)
  // Without this the server refuses to send bytes that are not UTF-8; the copy replaces them.
  if ((await readEncoding(session)) === 'SQL_ASCII') await session.query(`set client_encoding = 'SQL_ASCII'`)
  return session
}

async function readEncoding(session: pg.Client): Promise<string> {
  const { rows } = await session.query<{ server_encoding: string }>('show server_encoding')
  return rows[0]?.server_encoding ?? ''
}

async function countRows(session: pg.Client, table: string): ReturnType<Source['countRows']> {
  try {
    const { rows } = await session.query(`select count(*)::float as count from public.${quote(table)}`)
    return { rows: rows[0].count, isEstimate: false }
  } catch (error) {
    if (!isStatementTimeout(error)) throw error
    const { rows } = await session.query(
      `select greatest(reltuples, 0)::float as count from pg_class
       where relnamespace = 'public'::regnamespace and relname = $1`,
      [table],
    )
    return { rows: rows[0].count, isEstimate: true }
  }
}

/** Selects `identity` of server and database: two URLs may lead to one database. */
export const SELECT_IDENTITY_SQL = `
  select pg_postmaster_start_time()::text || ' ' || oid as identity from pg_database where datname = current_database()`

async function identityOf(session: pg.Client): Promise<string> {
  const { rows } = await session.query(SELECT_IDENTITY_SQL)
  return rows[0].identity
}

async function listTables(session: pg.Client): Promise<readonly FoundTable[]> {
  const { rows } = await session.query<FoundTable>(`
    select class.relname as name, pg_table_size(class.oid)::float as bytes, (
      select array_agg(attname::text order by attnum) from pg_attribute
      where attrelid = class.oid and attnum > 0 and not attisdropped
    ) as columns
    from pg_class as class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by 1`)
  return rows
}

async function readBlock(
  session: pg.Client,
  table: SourceTable,
  existing: ReadonlySet<string>,
  { block, known, use }: BlockReading,
): Promise<void> {
  const { after, upTo } = block
  const columns = Object.keys(table.columns).map((name) => selectColumn(table, name, existing))
  const from = `from public.${quote(table.name)} where ${quote(table.key)} > ${after} and ${quote(table.key)} <= ${upTo}`
  await session.query('begin isolation level repeatable read read only')
  try {
    const { rows } = await session.query<{ rows: number; fingerprint: string }>(`
      select count(*)::float as rows,
        coalesce(sum(('x' || left(md5(row(${columns.join(', ')})::text), 15))::bit(60)::bigint), 0)::text as fingerprint
      ${from}`)
    const mark = rows[0] ?? { rows: 0, fingerprint: '0' }
    const isKnown = known !== undefined && known.rows === mark.rows && known.fingerprint === mark.fingerprint
    const openLines = () => copyOut(session, `copy (select ${columns.join(', ')} ${from}) to stdout`)
    await use({ ...mark, openLines: isKnown ? undefined : openLines })
    await session.query('commit')
  } catch (error) {
    await session.query('rollback').catch(() => undefined)
    throw error
  }
}

const TYPES: Readonly<Record<ColumnType, string>> = {
  int: 'bigint',
  bool: 'boolean',
  text: 'text',
  time: 'timestamp',
  date: 'date',
  json: 'text',
  yaml: 'text',
  sealed: 'text',
  hashed: 'text',
}

function selectColumn({ columns, defaults }: SourceTable, name: string, existing: ReadonlySet<string>): string {
  if (existing.has(name)) return quote(name)
  return `${defaults?.[name] ?? 'null'}::${TYPES[columns[name] ?? 'text']}`
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
