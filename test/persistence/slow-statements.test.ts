import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDatabase, queryPrepared } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { listSlowStatements, watchSlowStatements } from '../../src/persistence/database/slow-statements.js'
import { createTestDatabase, type TestDatabase } from '../support/databases/test-database.js'

let database: TestDatabase
let db: Knex
beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase({ ...WEB_DATABASE_LIMITS, url: database.url, applicationName: 'test' })
  watchSlowStatements(db, 0)
})
afterAll(async () => {
  await db.destroy()
  await database.drop()
})

it('slow statements are listed with their number and without values, also of transactions and after an error', async () => {
  await db.raw('select ?::text  as\n  name', ['a secret'])
  await queryPrepared(db, 'slow', 'select $1::text as prepared', ['a secret'])
  await db.transaction((transaction) => transaction.raw('select ?::text as name', ['another secret']))
  await expect(db.raw('select ?::integer / 0 as wrong', [7])).rejects.toThrow('division by zero')

  const listed = new Map(listSlowStatements(db).map(({ text, count }) => [text, count]))

  expect(listed.get('select $1::text as name')).toBe(2)
  expect(listed.get('select $1::text as prepared')).toBe(1)
  expect(listed.get('select $1::integer / 0 as wrong')).toBe(1)
  expect([...listed.keys()].join()).not.toContain('secret')
  expect(listSlowStatements(db, Date.now() + 3_600_001)).toEqual([])
})

it('no more than 50 slow statements are kept, the latest ones', async () => {
  for (let number = 0; number < 60; number += 1) await db.raw(`select ${number} as number`)

  const texts = listSlowStatements(db).map(({ text }) => text)

  expect(texts).toHaveLength(50)
  expect(texts).toContain('select 59 as number')
  expect(texts).not.toContain('select 0 as number')
})
