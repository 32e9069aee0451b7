import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { inject } from 'vitest'
import { openDatabase, WEB_LIMITS } from '../../src/persistence/database/database.js'
import { administer, createTestDatabase, databaseAt, type TestDatabase } from '../support/databases/test-database.js'

export interface OpenDatabase {
  readonly url: string
  readonly db: Knex
  close(): Promise<void>
}

/** Opens a new database with all tables. */
export async function openTestDatabase(): Promise<OpenDatabase> {
  return open(await createTestDatabase())
}

/** Opens a new database without tables. */
export async function openEmptyDatabase(): Promise<OpenDatabase> {
  const { server, superuser, prefix } = inject('testDatabases')
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  await administer(server, (client) => client.query(`create database ${name}`))
  return open({
    url: databaseAt(server, name),
    async drop() {
      await administer(superuser, (client) => client.query(`drop database ${name} with (force)`))
    },
  })
}

function open({ url, drop }: TestDatabase): OpenDatabase {
  const db = openDatabase({ ...WEB_LIMITS, url, applicationName: 'test' })
  return {
    url,
    db,
    async close() {
      await db.destroy()
      await drop()
    },
  }
}
