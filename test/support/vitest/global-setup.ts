import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
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
  const given = process.env['TEST_DATABASE_URL']
  const server =
    given === undefined ? await startServer() : { url: given, superuserUrl: given, stop: async () => undefined }
  const prefix = `pod_test_${process.pid}_${randomBytes(3).toString('hex')}`
  undo = async () => {
    if (given !== undefined) await dropAll(given, prefix)
    await server.stop()
  }
  const { url, superuserUrl: superuser } = server
  project.provide('testDatabases', { server: url, superuser, template: `${prefix}_template`, prefix })
  await createTemplate(server.url, `${prefix}_template`)
}

export async function teardown(): Promise<void> {
  await undo?.()
}

async function createTemplate(server: string, name: string): Promise<void> {
  await administer(server, (client) => client.query(`create database ${name}`))
  await createTables(databaseAt(server, name))
}

async function startServer(): Promise<Pick<EmbeddedServer, 'url' | 'superuserUrl' | 'stop'>> {
  await sweepKilledRuns()
  const folder = await makeRunFolder(process.pid)
  const cleanUpOnExit = () => removeRunFoldersNow(process.pid)
  process.once('exit', cleanUpOnExit)
  const server = await startEmbeddedPostgres(folder, { fast: true, maxConnections: CONNECTIONS })
  await administer(server.superuserUrl, (client) => client.query(RIGHTS_OF_TESTS))
  return {
    ...server,
    async stop() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
      process.off('exit', cleanUpOnExit)
    },
  }
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
