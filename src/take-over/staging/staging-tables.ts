import type pg from 'pg'
import type { BlockMark, KeyRange } from '../source/source.js'
import { type ColumnType, SOURCE_TABLES, type SourceTable } from '../source/source-tables.js'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int: 'bigint',
  bool: 'boolean',
  text: 'text',
  time: 'timestamp',
  date: 'date',
  json: 'jsonb',
  yaml: 'jsonb',
  sealed: 'bytea',
  hashed: 'bytea',
}

type Session = Pick<pg.Client, 'query'>

export interface StagedBlock extends KeyRange, BlockMark {}

/**
 * Creates the staging tables, all of them unlogged: after a crash of the server rows and marks are gone together, and the copy begins
 * again.
 */
export async function createStaging(session: Session): Promise<void> {
  await session.query(`
    create schema if not exists take_over;
    create unlogged table if not exists take_over.copied_blocks (
      table_name text collate "C" not null,
      after_key bigint not null,
      up_to_key bigint not null,
      rows bigint not null,
      fingerprint text not null,
      repaired bigint not null,
      copied_at timestamptz not null default now(),
      primary key (table_name, after_key)
    );
    create unlogged table if not exists take_over.source_tables (
      name text collate "C" primary key,
      rows bigint not null,
      last_key bigint not null
    );`)
  for (const table of SOURCE_TABLES) await session.query(createTable(table))
}

export async function dropStaging(session: Session): Promise<void> {
  await session.query('drop schema if exists take_over cascade')
}

export async function listStagedBlocks(session: Session, table: SourceTable): Promise<readonly StagedBlock[]> {
  const { rows } = await session.query<StagedBlock>(
    `select after_key::float as after, up_to_key::float as "upTo", rows::float, fingerprint
     from take_over.copied_blocks where table_name = $1 order by after_key`,
    [table.name],
  )
  return rows
}

/** Stores the mark of a block, in the transaction of its rows. */
export async function markBlock(
  session: Session,
  table: SourceTable,
  { after, upTo, rows, fingerprint, repaired }: StagedBlock & { readonly repaired: number },
): Promise<void> {
  await session.query(
    `insert into take_over.copied_blocks (table_name, after_key, up_to_key, rows, fingerprint, repaired)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (table_name, after_key) do update set
       up_to_key = excluded.up_to_key, rows = excluded.rows, fingerprint = excluded.fingerprint,
       repaired = excluded.repaired, copied_at = now()`,
    [table.name, after, upTo, rows, fingerprint, repaired],
  )
}

export async function countRepairedRows(session: Session): Promise<number> {
  const { rows } = await session.query('select coalesce(sum(repaired), 0)::float as count from take_over.copied_blocks')
  return rows[0].count
}

export async function countStagedRows(session: Session, table: Pick<SourceTable, 'name'>): Promise<number> {
  const { rows } = await session.query(`select count(*)::float as count from ${stagingTable(table)}`)
  return rows[0].count
}

export async function recordSourceTable(
  session: Session,
  table: { readonly name: string; readonly rows: number; readonly lastKey: number },
): Promise<void> {
  await session.query(
    `insert into take_over.source_tables (name, rows, last_key) values ($1, $2, $3)
     on conflict (name) do update set rows = excluded.rows, last_key = excluded.last_key`,
    [table.name, table.rows, table.lastKey],
  )
}

export function stagingTable({ name }: Pick<SourceTable, 'name'>): string {
  return `take_over."${name}"`
}

function createTable(table: SourceTable): string {
  const columns = Object.entries(table.columns).map(([name, type]) => `"${name}" ${TYPES[type]}`)
  return `create unlogged table if not exists ${stagingTable(table)} (${columns.join(', ')}, primary key ("${table.key}"))`
}
