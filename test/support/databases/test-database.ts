import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { Client } from 'pg'
import { inject } from 'vitest'
import { openDatabase } from '../../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../../src/persistence/database/limits.js'

/** The database server of this test run, see global-setup.ts. */
export interface TestDatabases {
  readonly server: string
  /** URL for a superuser, who may end the autovacuum of a dropped database. */
  readonly superuser: string
  readonly template: string
  /** Options of `create database` for a copy of the template. */
  readonly copy: string
  /** Prefix of the names of all databases of this run. */
  readonly prefix: string
}

export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** A fresh database with all tables, of the pod and of the queue. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { server, superuser, template, copy, prefix } = inject('testDatabases')
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  await administer(server, (client) => client.query(`create database ${name} template ${template} ${copy}`))
  return {
    url: databaseAt(server, name),
    async drop() {
      await administer(superuser, (client) => client.query(`drop database if exists ${name} with (force)`))
    },
  }
}

export interface OpenDatabase extends AsyncDisposable {
  readonly url: string
  readonly db: Knex
  close(): Promise<void>
}

/** Opens a fresh database with all tables. */
export async function openTestDatabase(): Promise<OpenDatabase> {
  return open(await createTestDatabase())
}

/** Opens a fresh database without tables; `options` are those of `create database`. */
export async function openEmptyDatabase(options = ''): Promise<OpenDatabase> {
  const { server, superuser, prefix } = inject('testDatabases')
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  await administer(server, (client) => client.query(`create database ${name} ${options}`))
  return open({
    url: databaseAt(server, name),
    async drop() {
      await administer(superuser, (client) => client.query(`drop database ${name} with (force)`))
    },
  })
}

function open({ url, drop }: TestDatabase): OpenDatabase {
  const db = openDatabase({ ...WEB_DATABASE_LIMITS, url, applicationName: 'test' })
  const close = async () => {
    await db.destroy()
    await drop()
  }
  return { url, db, close, [Symbol.asyncDispose]: close }
}

export function databaseAt(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

export async function administer<Result>(server: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: server })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
