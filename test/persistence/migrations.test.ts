import { readFileSync } from 'node:fs'
import type { Knex } from 'knex'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrations } from '../../migrations/index.js'
import { createIndexConcurrently } from '../../migrations/migration.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { migrate, migrateTo, migrationStatus, rollback } from '../../src/persistence/database/migrate.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'

const names = [...migrations.keys()]

describe('a migration', () => {
  /** Statements that stop the version before from working, or hold up requests on a large table. */
  const FORBIDDEN: Readonly<Record<string, RegExp>> = {
    'drops or renames what the version before uses': /\bdrop (table|column)\b|\brename (to|column)\b/i,
    'rewrites a table':
      /\balter (column )?\w+ (set data )?type\b|\badd column [^;]*default (clock_timestamp|random|gen_random_uuid)/i,
    'reads a whole table under a lock':
      /\bset not null\b|\badd (constraint \w+ )?(check|foreign key)\b(?![^;]*not valid)/i,
  }
  /** Says that no running version uses it any more. */
  const CONTRACT = /-- Contract: unused since \d+\.\d+/

  const faultsOf = (source: string): readonly string[] => {
    const [up = ''] = source.split('async down')
    if (CONTRACT.test(up)) return []
    return Object.entries(FORBIDDEN).flatMap(([fault, pattern]) => (pattern.test(up) ? [fault] : []))
  }

  it('only adds, unless it names the version since which the rest is unused', () => {
    const newer = names.filter((name) => name >= '0140')
    const sourceOf = (name: string) => readFileSync(new URL(`../../migrations/${name}.ts`, import.meta.url), 'utf8')

    expect(newer.map((name) => [name, faultsOf(sourceOf(name))])).toEqual(newer.map((name) => [name, []]))
  })

  it.each([
    'alter table posts drop column text',
    'alter table posts rename column text to body',
    'alter table posts alter column text type bytea',
    'alter table posts add column place uuid default gen_random_uuid()',
    'alter table posts add constraint short check (length(text) < 9)',
    'alter table posts alter column text set not null',
  ])('is found to break a rule: %s', (statement) => {
    expect(faultsOf(statement)).toHaveLength(1)
    expect(faultsOf(`-- Contract: unused since 1.2\n${statement}`)).toEqual([])
  })

  it('may add a column with a constant default and a constraint that is validated later', () => {
    expect(faultsOf('alter table posts add column a int not null default 0')).toEqual([])
    expect(faultsOf('alter table posts add constraint b check (a > 0) not valid')).toEqual([])
  })
})

describe('migrations', () => {
  let database: OpenDatabase
  let db: Knex
  beforeEach(async () => {
    database = await openEmptyDatabase()
    db = database.db
  })
  afterEach(() => database.close())

  it('run in order, once', async () => {
    expect(names).toEqual([...names].sort())
    expect(await migrationStatus(db)).toEqual({ applied: [], pending: names, unknown: [] })

    expect(await migrate(db)).toEqual(names)
    expect(await migrate(db)).toEqual([])

    expect(await migrationStatus(db)).toEqual({ applied: names, pending: [], unknown: [] })
  })

  it('create the same tables when they run again after a rollback of all', async () => {
    await migrate(db)
    const first = await schemaOf(db)

    expect(await rollback(db)).toEqual([...names].reverse())
    expect(await schemaOf(db)).toEqual({ columns: [], constraints: [], indexes: [], tables: [] })

    await migrate(db)
    expect(await schemaOf(db)).toEqual(first)
    expect(first.tables.length).toBeGreaterThan(45)
  })

  it('can be reverted one by one', async () => {
    for (const load of migrations.values()) await (await load()).up(db)
    for (const load of [...migrations.values()].reverse()) await (await load()).down(db)

    expect((await schemaOf(db)).tables).toEqual([])
  })

  it('run once when two processes start at the same time', async () => {
    const other = openDatabase({ ...WEB_DATABASE_LIMITS, url: database.url, applicationName: 'test' })

    const ran = await Promise.all([migrate(db), migrate(other)])
    await other.destroy()

    expect(ran.map((one) => one.length).sort((one, two) => one - two)).toEqual([0, names.length])
  })

  it('run after a process was killed during a migration', async () => {
    await migrate(db)
    await rollback(db)
    await db('knex_migrations_lock').update({ is_locked: 1 })

    expect(await migrate(db)).toEqual(names)
  })

  it('change nothing if one of them fails', async () => {
    await db.raw('create table outbox (id bigint)')

    await expect(migrate(db)).rejects.toThrow('already exists')

    expect((await schemaOf(db)).tables).toEqual([expect.objectContaining({ name: 'outbox' })])
    expect((await migrationStatus(db)).applied).toEqual([])
  })

  it('are tried again when a table is locked for too long', async () => {
    const changing = names.indexOf('0140-retention') // it changes the table posts
    await migrateTo(db, names.slice(0, changing))
    const blocker = await db.transaction()
    await blocker.raw('lock table posts in access exclusive mode')
    const attempts: number[] = []

    const applied = await migrate(db, {
      lockTimeout: 20,
      async onBlocked(attempt) {
        attempts.push(attempt)
        if (attempt === 2) await blocker.rollback()
      },
    })

    expect(applied).toEqual(names.slice(changing))
    expect(attempts).toEqual([1, 2])
  })

  it('are tried again after a deadlock', async () => {
    await migrate(db)
    let runs = 0
    const deadlocked = {
      async up(on: Knex) {
        runs += 1
        if (runs === 1) await on.raw(`do $$ begin raise sqlstate '40P01'; end $$`)
      },
      down: async () => undefined,
    }
    const known = new Map([...migrations, ['9001-deadlocked', async () => deadlocked]])

    expect(await migrate(db, { known, onBlocked: async () => undefined })).toEqual(['9001-deadlocked'])
    expect(runs).toBe(2)
  })

  it('have a transaction each on a database with tables, and are reverted together', async () => {
    await migrate(db)
    const faulty = { up: () => db.raw('select 1 / 0').then(() => undefined), down: async () => undefined }
    const next = {
      up: (on: Knex) => on.schema.createTable('next', () => {}),
      down: (on: Knex) => on.schema.dropTable('next'),
    }
    const known = new Map([...migrations, ['9001-next', async () => next], ['9002-faulty', async () => faulty]])
    await expect(migrate(db, { known })).rejects.toThrow('division by zero')
    expect((await migrationStatus(db)).unknown).toEqual(['9001-next'])

    const none = { up: async () => undefined, down: async () => undefined }
    const repaired = new Map([
      ...migrations,
      ['9001-next', async () => next],
      ['9002-repaired', async () => none],
      ['9003-last', async () => none],
    ])
    expect(await migrate(db, { known: repaired })).toEqual(['9002-repaired', '9003-last'])
    const batches = await db('knex_migrations').where('name', '>', '9002').distinct().pluck('batch')
    expect(batches).toHaveLength(1)
  })

  it('make an index while others write, and again after the process that made it was killed', async () => {
    await migrate(db)
    const index = {
      config: { transaction: false } as const,
      up: (on: Knex) => createIndexConcurrently(on, 'posts_test', 'on posts (type)'),
      down: async () => undefined,
    }
    const known = new Map([...migrations, ['9001-index', async () => index]])
    const state = async () =>
      (await db.raw(`select indisvalid as valid from pg_index where indexrelid = to_regclass('posts_test')`)).rows
    const writer = await db.transaction()
    await writer.raw(`update posts set text = text where false`)
    const killed = migrate(db, { known, lockTimeout: 20 })
    killed.catch(() => undefined)
    await expect.poll(state).toEqual([{ valid: false }])
    // The other process waits for its turn, without a snapshot for which the index would wait.
    const other = migrate(db, { known })

    await db.raw(
      `select pg_terminate_backend(pid) from pg_stat_activity where query like 'create index concurrently posts_test%'`,
    )
    await expect(killed).rejects.toThrow()
    await expect.poll(state).toEqual([{ valid: false }])
    await writer.raw(`insert into tags (name) values ('written meanwhile')`)
    await writer.commit()

    expect(await other).toEqual(['9001-index'])
    expect(await state()).toEqual([{ valid: true }])
    expect(await migrate(db, { known })).toEqual([])
  })

  it('of a newer release do not stop an older one, which cannot revert them', async () => {
    await migrate(db)
    await db('knex_migrations').insert({ name: '9999-of-tomorrow', batch: 2, migration_time: new Date() })

    expect((await migrationStatus(db)).unknown).toEqual(['9999-of-tomorrow'])
    expect(await migrate(db)).toEqual([])
    await expect(rollback(db)).rejects.toThrow('9999-of-tomorrow')
  })
})

/** Everything a migration can leave behind, in words that do not depend on when it ran. */
async function schemaOf(db: Knex) {
  const ours = `
    select pg_class.oid, relname from pg_class
    join pg_namespace on pg_namespace.oid = relnamespace and nspname = 'public'
    where relkind = 'r' and relname not like 'knex_%'`
  const rowsOf = async (statement: string): Promise<object[]> => (await db.raw(statement)).rows
  return {
    tables: await rowsOf(`
      select relname as name, reloptions as options from pg_class where oid in (select oid from (${ours}) ours) order by 1`),
    columns: await rowsOf(`
      select ours.relname, attname, format_type(atttypid, atttypmod) as type, attnotnull, attidentity, attgenerated,
        (select collname from pg_collation where oid = attcollation) as collation, pg_get_expr(adbin, adrelid) as value
      from (${ours}) ours
      join pg_attribute on attrelid = ours.oid and attnum > 0 and not attisdropped
      left join pg_attrdef on adrelid = attrelid and adnum = attnum
      order by 1, attnum`),
    constraints: await rowsOf(`
      select ours.relname, conname, pg_get_constraintdef(pg_constraint.oid) as definition
      from (${ours}) ours join pg_constraint on conrelid = ours.oid order by 1, 2`),
    indexes: await rowsOf(`
      select ours.relname, pg_get_indexdef(indexrelid) as definition
      from (${ours}) ours join pg_index on indrelid = ours.oid order by 1, 2`),
  }
}
