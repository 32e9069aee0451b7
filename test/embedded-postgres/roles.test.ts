import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findRunningEmbeddedPostgres, startEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { migrate } from '../../src/persistence/database/migrate.js'
import { copyPreparedData } from '../support/databases/prepared-data.js'
import { makeFolder, query } from './data-dirs.js'

const INSUFFICIENT_PRIVILEGE = { code: '42501' }

describe('the role of web, workers and commands', () => {
  it('is not a superuser in a new cluster, and can create the tables of the pod', async () => {
    const server = await startEmbeddedPostgres(join(await makeFolder(), 'var'), { fast: true })

    await migrateAll(server.url)

    await expectNoRights(server.url)
    await server.stop()
  })

  it('owns all tables, functions and queues of a cluster that a superuser has used', async () => {
    const dataDir = join(await makeFolder(), 'var')
    await makeClusterOfEarlierVersion(dataDir)

    const server = await startEmbeddedPostgres(dataDir, { fast: true })

    await expectNoRights(server.url)
    expect(await query(server.url, OBJECTS_OF_OTHERS)).toEqual([])
    expect(await query(server.url, 'select count(*)::int as pods from pods')).toEqual([{ pods: 1 }])
    await query(server.url, 'alter table pods add column added int')
    await query(server.url, 'drop function count_deliveries cascade')
    await migrateAll(server.url)
    await server.stop()
  })

  it('is used by a command on a running server, also while that server is being prepared', async () => {
    const dataDir = join(await makeFolder(), 'var')
    await copyPreparedData(dataDir)
    const server = await startEmbeddedPostgres(dataDir, { fast: true })
    await query(server.superuserUrl, 'alter role pod_app nologin password null')

    const found = findRunningEmbeddedPostgres(dataDir)
    await query(server.superuserUrl, `alter role pod_app login password '${new URL(server.url).password}'`)

    expect((await found)?.url).toBe(server.url)
    await server.stop()
  })

  it('loses manually granted rights at the next start', async () => {
    const dataDir = join(await makeFolder(), 'var')
    await copyPreparedData(dataDir)
    const first = await startEmbeddedPostgres(dataDir, { fast: true })
    await query(first.superuserUrl, 'alter role pod_app superuser createdb createrole replication bypassrls')
    await first.stop()

    const second = await startEmbeddedPostgres(dataDir, { fast: true })

    await expectNoRights(second.url)
    await second.stop()
  })
})

/** A cluster from before the role existed: one superuser owns everything. */
async function makeClusterOfEarlierVersion(dataDir: string): Promise<void> {
  await copyPreparedData(dataDir)
  const server = await startEmbeddedPostgres(dataDir, { fast: true })
  for (const statement of ['reassign owned by pod_app to pod', 'drop owned by pod_app', 'drop role pod_app']) {
    await query(server.superuserUrl, statement)
  }
  await query(server.superuserUrl, `insert into pods (host) values ('kept.example')`)
  await server.stop()
}

async function migrateAll(url: string): Promise<void> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url, applicationName: 'test migrate' })
  try {
    await migrate(db)
  } finally {
    await db.destroy()
  }
  await migrateQueue(url)
}

async function expectNoRights(url: string): Promise<void> {
  expect(
    await query(
      url,
      `select rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls
         from pg_roles where rolname = current_user`,
    ),
  ).toEqual([{ rolsuper: false, rolcreatedb: false, rolcreaterole: false, rolreplication: false, rolbypassrls: false }])
  for (const statement of [
    `copy (select 1) to program 'true'`,
    `do $$ begin create temp table lines (line text); copy lines from program 'id'; end $$`,
    `copy (select 1) to '/tmp/never-written'`,
    `select pg_read_file('postgresql.conf')`,
    `select pg_ls_dir('.')`,
    `select lo_import('/etc/passwd')`,
    `alter system set log_statement = 'all'`,
    'create role other',
    'create database other',
    'create extension file_fdw',
    'set role pod',
    `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'pod'`,
  ]) {
    await expect(query(url, statement), statement).rejects.toMatchObject(INSUFFICIENT_PRIVILEGE)
  }
}

/** Members of an extension stay owned by the superuser: only a superuser may change C code. */
const OBJECTS_OF_OTHERS = `
  select oid::regclass::text as name from pg_class
    where relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema', 'pg_toast')
      and relowner <> current_user::regrole
  union all
  select oid::regprocedure::text from pg_proc
    where oid >= 16384 and proowner <> current_user::regrole
      and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')
  union all
  select nspname from pg_namespace where oid >= 16384 and nspowner <> current_user::regrole
  union all
  select typname from pg_type
    where oid >= 16384 and typowner <> current_user::regrole
      and not exists (select from pg_depend where objid = pg_type.oid and deptype in ('e', 'i'))
  union all
  select datname from pg_database where datname = current_database() and datdba <> current_user::regrole`
