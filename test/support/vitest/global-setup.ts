import { randomBytes } from 'node:crypto'
import { chmod, rm } from 'node:fs/promises'
import type { TestProject } from 'vitest/node'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../../embedded-postgres/embedded-postgres.js'
import { createTables } from '../databases/create-tables.js'
import { administer, databaseAt, type TestDatabases } from '../databases/test-database.js'
import { makeRunFolder, removeRunFoldersNow, sweepKilledRuns } from './run-folders.js'

declare module 'vitest' {
  interface ProvidedContext {
    testDatabases: TestDatabases
  }
}

/** Several test files run complete pods at the same time. */
const CONNECTIONS = 600

let undo: () => Promise<void>

/**
 * Rights that tests need and a pod does not: to create databases, to insert rows without foreign key checks, and to set a longer
 * deadlock timeout.
 */
const RIGHTS_OF_TESTS = `
  alter role pod_app createdb;
  grant set on parameter session_replication_role, deadlock_timeout to pod_app`

/** One server for the whole run, with one migrated database that each test file gets a copy of. */
export async function setup(project: TestProject): Promise<void> {
  const folder = await makeFolder()
  process.env['PREPARED_DATA'] = folder.path // read by copyPreparedData
  const given = process.env['TEST_DATABASE_URL']
  const server =
    given === undefined
      ? await startServer(folder.path)
      : { url: given, superuserUrl: given, stop: async () => undefined }
  const prefix = `pod_test_${process.pid}_${randomBytes(3).toString('hex')}`
  undo = async () => {
    if (given !== undefined) await dropAll(given, prefix)
    await server.stop()
    await folder.remove()
  }
  const { url, superuserUrl: superuser } = server
  const template = `${prefix}_template`
  await createTemplate(url, template)
  project.provide('testDatabases', { server: url, superuser, template, copy: await copyOptions(url), prefix })
}

export async function teardown(): Promise<void> {
  await undo?.()
}

async function createTemplate(server: string, name: string): Promise<void> {
  await administer(server, (client) => client.query(`create database ${name}`))
  await createTables(databaseAt(server, name))
}

/** Copying files takes half the time of writing the copy to the log as well. PostgreSQL 14 always copies files. */
async function copyOptions(server: string): Promise<string> {
  const { rows } = await administer(server, (client) =>
    client.query<{ isOld: boolean }>(`select current_setting('server_version_num')::int < 150000 as "isOld"`),
  )
  return rows[0]?.isOld ? '' : 'strategy = file_copy'
}

/** The folder of this run. As root, the databases in it run as another user, who must traverse it. */
async function makeFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  await sweepKilledRuns()
  const path = await makeRunFolder(process.pid)
  await chmod(path, 0o711)
  const cleanUpOnExit = () => removeRunFoldersNow(process.pid)
  process.once('exit', cleanUpOnExit)
  return {
    path,
    async remove() {
      await rm(path, { recursive: true, force: true })
      process.off('exit', cleanUpOnExit)
    },
  }
}

async function startServer(folder: string): Promise<Pick<EmbeddedServer, 'url' | 'superuserUrl' | 'stop'>> {
  const server = await startEmbeddedPostgres(folder, { fast: true, maxConnections: CONNECTIONS })
  await administer(server.superuserUrl, (client) => client.query(RIGHTS_OF_TESTS))
  return server
}

async function dropAll(server: string, prefix: string): Promise<void> {
  await administer(server, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      'select datname as name from pg_database where starts_with(datname, $1)',
      [prefix],
    )
    for (const { name } of rows) await client.query(`drop database if exists ${name} with (force)`)
  })
}
