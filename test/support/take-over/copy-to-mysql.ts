import type { Knex } from 'knex'
import type { Connection } from 'mysql2/promise'
import { type ColumnType, SOURCE_TABLES } from '../../../src/take-over/source/source-tables.js'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int: 'bigint',
  bool: 'tinyint(1)',
  text: 'longtext',
  time: 'datetime',
  date: 'date',
  json: 'longtext',
  yaml: 'longtext',
  sealed: 'longtext',
  hashed: 'longtext',
}

/** Copies the tables of a diaspora* pod to MySQL, with the column types of MySQL. */
export async function copyToMysql(db: Knex, session: Connection): Promise<void> {
  for (const { name, key, columns } of SOURCE_TABLES) {
    const names = Object.keys(columns)
    const definitions = Object.entries(columns).map(
      ([column, type]) =>
        `"${column}" ${TYPES[type]}${column === key ? ` not null primary key${key === 'id' ? ' auto_increment' : ''}` : ''}`,
    )
    await session.query(`create table "${name}" (${definitions.join(', ')})`)
    const selected = Object.entries(columns).map(([column, type]) =>
      type === 'time' ? `to_char("${column}", 'YYYY-MM-DD HH24:MI:SS') as "${column}"` : `"${column}"`,
    )
    const { rows } = await db.raw(`select ${selected.join(', ')} from "${name}" order by "${key}"`)
    if (rows.length === 0) continue
    const values = rows.map((row: Record<string, unknown>) => Object.values(row))
    await session.query(`insert into "${name}" (${names.map((column) => `"${column}"`).join(', ')}) values ?`, [values])
  }
  // Tables that the take-over ignores.
  await session.query('create table services (id bigint primary key)')
  await session.query('insert into services values (1)')
  await session.query('alter table posts auto_increment = 901')
  await session.query('create table schema_migrations (version varchar(255) not null)')
  const versions = await db('schema_migrations').pluck('version')
  await session.query('insert into schema_migrations values ?', [versions.map((version) => [version])])
}
