import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { administer, createTestDatabase, type TestDatabase } from './test-database.js'

describe('createTestDatabase', () => {
  let left: TestDatabase
  let right: TestDatabase
  beforeAll(async () => {
    ;[left, right] = await Promise.all([createTestDatabase(), createTestDatabase()])
  })
  afterAll(() => Promise.all([left.drop(), right.drop()]))

  it('has the tables of the pod and of the queue', async () => {
    const found = await administer(left.url, (client) =>
      client.query(`select to_regclass('public.people') as people, to_regnamespace('bullmq') as queue`),
    )

    expect(found.rows).toEqual([{ people: 'people', queue: 'bullmq' }])
  })

  it('gives each caller a database of its own', async () => {
    await administer(left.url, (client) => client.query('create table only_left ()'))

    const found = await administer(right.url, (client) => client.query(`select to_regclass('only_left') as there`))

    expect(found.rows).toEqual([{ there: null }])
  })

  it('drops a database with an open connection', async () => {
    const database = await createTestDatabase()
    const client = new Client({ connectionString: database.url })
    const cutOff = new Promise((resolve) => client.on('error', resolve))
    await client.connect()

    await database.drop()

    expect(await cutOff).toMatchObject({ code: '57P01' })
    await expect(administer(database.url, (again) => again.query('select 1'))).rejects.toMatchObject({ code: '3D000' })
  })
})
