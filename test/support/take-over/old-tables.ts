import type { Knex } from 'knex'
import { type ColumnType, SOURCE_TABLES } from '../../../src/take-over/source/source-tables.js'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int: 'integer',
  bool: 'boolean',
  text: 'text',
  time: 'timestamp',
  date: 'date',
  json: 'text',
  yaml: 'text',
  sealed: 'text',
  hashed: 'varchar',
}

/** Default values of diaspora*. */
const DEFAULTS: Readonly<Record<string, string>> = {
  created_at: `'2020-05-01 10:00:00.123456'`,
  updated_at: `'2020-05-01 10:00:00.123456'`,
  email: `''`,
  encrypted_password: `''`,
  sharing: 'false',
  receiving: 'false',
  unread: 'true',
  closed_account: 'false',
  fetch_status: '0',
  pending: 'false',
  hidden: 'false',
  public: 'false',
  commentable_type: `'Post'`,
}

/** The default of a column. `unread` is a counter of messages in one table and a flag of notifications in another. */
function defaultOf(type: ColumnType, column: string): string {
  const value = DEFAULTS[column]
  if (value === undefined || (column === 'unread' && type === 'int')) return ''
  return ` default ${value}`
}

/** Creates the tables of diaspora* 0.9 that the take-over reads or ignores. */
export async function makeOldTables(db: Knex): Promise<void> {
  for (const { name, key, columns } of SOURCE_TABLES) {
    const definitions = Object.entries(columns).map(([column, type]) =>
      column === 'id'
        ? 'id serial primary key'
        : `"${column}" ${TYPES[type]}${defaultOf(type, column)}${column === key ? ' unique' : ''}`,
    )
    await db.raw(`create table "${name}" (${definitions.join(', ')})`)
  }
  await db.raw(`
    create table schema_migrations (version varchar not null);
    insert into schema_migrations values ('0'), ('20170813222333'), ('20181127012722'), ('20230604015559');
    create table services (id serial primary key, user_id integer, access_token varchar);
    insert into services (user_id, access_token) values (1, 'token of another service');
    create table invitation_codes (id serial primary key, token varchar);
    create table "references" (id bigserial primary key, source_id integer)`)
}
