import type { Knex } from 'knex'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import {
  type ContactFilter,
  searchPeopleByName,
  searchPeopleByTag,
} from '../../src/persistence/people/people-search.js'
import type { Page } from '../../src/persistence/sql/keyset-page.js'
import { addUserRow } from '../support/databases/rows.js'
import { openTestDatabase } from '../support/databases/test-database.js'

const MANY = 30_000
const A_PAGE = { offset: 0, limit: 15 }

let database: Awaited<ReturnType<typeof openTestDatabase>>
let db: Knex
let userId: number
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
  userId = (await addUserRow({ db }, 'alice')).id
  await fill()
})
afterAll(() => database.close())

/** Half of the people share one part of their name, ten share another one, and one of twenty has no name. */
async function fill(): Promise<void> {
  const name = `case when i % 20 = 0 then '' when i % 3001 = 1 then 'Bela Quartz'
    when i % 2 = 0 then 'Anna Miller ' || i else 'Otto Miller ' || i end`
  const statements = [
    `insert into people (guid, address, public_key, name)
     select md5(i::text), 'p' || i || '@q.example', 'none', ${name} from generate_series(1, ${MANY}) as i`,
    `insert into profiles (person_id, tags)
     select id, case when id % 1000 = 1 then '{rare,common}' else '{common}' end::text[] from people where id > ${userId}`,
    `insert into contacts (user_id, person_id, sharing, receiving)
     select ${userId}, id, true, false from people where id % 300 = 7`,
    'vacuum analyze',
  ]
  for (const statement of statements) await db.raw(statement)
}

const byName = (text: string, filters: readonly ContactFilter[] = []) =>
  searchPeopleByName(db, { userId, filters, words: text.split(' '), beginning: text, shouldFindContacts: true }, A_PAGE)
const byTag = (tag: string) => searchPeopleByTag(db, { userId, filters: [], tag }, A_PAGE)

it.each<[string, () => Promise<Page<unknown>>, number]>([
  ['a part of a name that half of the people have', () => byName('anna'), 15],
  ['two letters that half of the people have', () => byName('nn'), 15],
  ['a part of a name that few have', () => byName('quartz'), 10],
  ['a name that one has', () => byName('miller 12345'), 1],
  ['a name that no person has', () => byName('zymurgy'), 0],
  ['the beginning of an address', () => byName('p12345@'), 1],
  ['a part of an address', () => byName('q.example'), 0],
  ['a tag that all have', () => byTag('common'), 15],
  ['a tag that few have', () => byTag('rare'), 15],
  ['a tag that no person has', () => byTag('nothing'), 0],
  ['two letters that few contacts might have', () => byName('qz', ['sharing']), 0],
])('%s is found without reading all people', async (_what, search, found) => {
  const { items, plan } = await planOf(search)

  expect(items).toHaveLength(found)
  expect(rowsReadIn(plan)).toBeLessThan(MANY / 100)
})

type Step = Readonly<Record<string, unknown>>

/** The result of a search and the plan of its statement for these values. */
async function planOf<Item>(search: () => Promise<Page<Item>>): Promise<{ items: readonly Item[]; plan: unknown }> {
  const query = vi.spyOn(pg.Client.prototype, 'query')
  try {
    const { items } = await search()
    const statements: unknown[] = query.mock.calls.map(([statement]) => statement)
    const searchStatement = statements.find((statement) => JSON.stringify(statement)?.includes('shown_name'))
    const { text, values, name } = Object(searchStatement)
    expect(name).toBeUndefined()
    return { items, plan: await explainStatement(text, values) }
  } finally {
    query.mockRestore()
  }
}

async function explainStatement(text: string, values: unknown[]): Promise<unknown> {
  const connection: pg.Client = await db.client.acquireConnection()
  try {
    const { rows } = await connection.query(`explain (analyze, format json) ${text}`, values)
    return rows
  } finally {
    await db.client.releaseConnection(connection)
  }
}

function stepsOf(plan: unknown): readonly Step[] {
  if (typeof plan !== 'object' || plan === null) return []
  const own = 'Node Type' in plan ? [plan as Step] : [] // as the server writes it
  return [...own, ...Object.values(plan).flatMap(stepsOf)]
}

/** The rows that the largest step of the plan reads, filtered ones included. */
function rowsReadIn(plan: unknown): number {
  const counts = stepsOf(plan).map((step) => {
    const each = Number(step['Actual Rows']) + Number(step['Rows Removed by Filter'] ?? 0)
    return each * Number(step['Actual Loops'])
  })
  return Math.max(...counts)
}
