import type { Knex } from 'knex'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { openDatabase, queryPrepared } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import type { ViewerIds } from '../../src/persistence/posts/list-posts.js'
import type { TimePage } from '../../src/persistence/sql/keyset-page.js'
import {
  listAspectStreamPosts,
  listPostsWithTag,
  listStreamPosts,
  type Stream,
} from '../../src/persistence/streams/list-streams.js'
import { addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'

const POSTS = 6_000
const AUTHORS = 60
/** PostgreSQL makes a custom plan for each of the first five executions. */
const CUSTOM_PLANS = 5
/** More than the recent posts of the whole pod, which are the most that a statement reads. */
const MAX_ROWS = 1_500

let database: OpenDatabase
/** One connection, without prepared statements before the test. */
let db: Knex
let reader: ViewerIds
/** A reader whose contacts post rarely. */
let other: ViewerIds
/** A post in the middle of all lists. */
let middle: { time: Date; id: number }
beforeAll(async () => {
  database = await openTestDatabase()
  const { id: userId, personId } = await addUserRow({ db: database.db }, 'alice')
  reader = { userId, personId }
  const bob = await addUserRow({ db: database.db }, 'bob')
  other = { userId: bob.id, personId: bob.personId }
  await fill(reader, other)
  const post = await database
    .db('posts')
    .offset(POSTS / 2)
    .orderBy('id')
    .first('id', 'createdAt')
  middle = { time: post.createdAt, id: post.id }
})
afterAll(() => database.close())
beforeEach(() => {
  db = openDatabase({ ...WEB_DATABASE_LIMITS, url: database.url, pool: 1, applicationName: 'test' })
})
afterEach(() => db.destroy())

/** The first reader has every relation to every post. */
async function fill({ userId, personId }: ViewerIds, readerWithFewContacts: ViewerIds): Promise<void> {
  const statements = [
    `insert into people (guid, address, public_key)
     select md5('person' || i), 'person' || i || '@q.example', 'none' from generate_series(1, ${AUTHORS - 1}) as i`,
    `insert into posts (guid, author_id, type, public, text, created_at, interacted_at)
     select md5(i::text), ${personId} + i % ${AUTHORS}, 'StatusMessage', i % 3 > 0, 'Tea', moment, moment
     from generate_series(1, ${POSTS}) as i,
       lateral (select timestamptz '2025-01-01' + make_interval(mins => i) as moment) as times`,
    `insert into contacts (user_id, person_id, receiving) select ${userId}, id, true from people where id <> ${personId}`,
    `insert into aspects (user_id, name, position) values (${userId}, 'All', 1)`,
    `insert into aspect_memberships (aspect_id, contact_id) select aspects.id, contacts.id from aspects, contacts`,
    `insert into tags (name) select 'tag' || i from generate_series(1, 20) as i`,
    `insert into tag_followings (user_id, tag_id) select ${userId}, id from tags`,
    `insert into taggings (tag_id, post_id, created_at) select 1 + id % 20, id, created_at from posts`,
    `insert into post_visibilities (user_id, post_id, author_id, created_at)
     select ${userId}, id, author_id, created_at from posts where not public`,
    `insert into mentions (person_id, post_id, created_at) select ${personId}, id, created_at from posts`,
    `insert into likes (guid, author_id, post_id, post_created_at) select guid, ${personId}, id, created_at from posts`,
    `insert into comments (guid, author_id, post_id, text, post_created_at)
     select md5(guid || n), ${personId}, id, 'Tea', created_at from posts, generate_series(1, 2) as n`,
    `insert into participations (guid, author_id, post_id) select guid, ${personId}, id from posts`,
    `insert into activity_entries (user_id, post_id, interacted_at) select ${userId}, id, interacted_at from posts`,
    `insert into contacts (user_id, person_id, receiving)
     select ${readerWithFewContacts.userId}, person_id, true from contacts where person_id % 15 = 3`,
    `insert into tag_followings (user_id, tag_id) values (${readerWithFewContacts.userId}, 1)`,
    `insert into aspects (user_id, name, position) values (${readerWithFewContacts.userId}, 'Few', 1)`,
    `insert into aspect_memberships (aspect_id, contact_id)
     select aspects.id, contacts.id from aspects join contacts using (user_id) where user_id = ${readerWithFewContacts.userId}`,
    `insert into hidden_posts (user_id, post_id) select ${userId}, id from posts where id % 7 = 0`,
    'analyze',
  ]
  for (const statement of statements) await database.db.raw(statement)
}

const GROWING_TABLES = [
  ...['posts', 'post_visibilities', 'mentions', 'taggings', 'likes', 'comments', 'participations', 'activity_entries'],
  'hidden_posts',
]

interface Statement {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
}

async function statementOf(list: () => Promise<unknown>): Promise<Statement> {
  const asked = vi.spyOn(pg.Client.prototype, 'query')
  try {
    await list()
    // Statements of a new connection have no name. Contents are read by id.
    const statements = asked.mock.calls
      .map(([given]) => given as unknown as Statement)
      .filter(({ name }) => name && name !== 'post-contents')
    const [statement] = statements
    if (statement === undefined || statements.length > 1) throw new Error(`${statements.length} statements were run.`)
    return statement
  } finally {
    asked.mockRestore()
  }
}

const streams: readonly Stream[] = ['main', 'all aspects', 'activity', 'mentions', 'tags', 'liked', 'commented']
type List = (reader: ViewerIds, page: TimePage, visibility: 'public' | 'readable') => Promise<unknown>
const lists: readonly (readonly [string, List])[] = [
  ...streams.map((stream): [string, List] => {
    return [stream, (who, page, visibility) => listStreamPosts(db, who, { stream, visibility, page })]
  }),
  ['aspects', (who, page, visibility) => listAspectStreamPosts(db, who, { aspectIds: [1, 2], visibility, page })],
  ['one tag', (who, page, visibility) => listPostsWithTag(db, who, { tag: 'tag1', visibility, page })],
]
/** Streams whose second page is read from a window. */
const WITH_WINDOW = ['main', 'all aspects', 'tags', 'aspects']
/** Streams with another statement for sparse windows. */
const WITH_SPARSE_WINDOW = ['main', 'all aspects', 'aspects']

const pages: readonly (readonly [string, () => TimePage])[] = [
  ['the first page', () => ({ limit: 15 })],
  ['a long page', () => ({ limit: 100 })],
  ['older posts', () => ({ limit: 15, before: middle })],
  ['newer posts', () => ({ limit: 15, after: middle })],
]

describe.each(lists)('the stream %s', (stream, list) => {
  it.each(pages)('has a generic plan for %s, and reads few rows', async (name, page) => {
    const first = await statementOf(() => list(reader, page(), 'readable'))
    const second = await statementOf(() => list(reader, page(), 'readable'))
    const statements = [first]
    if (WITH_WINDOW.includes(stream)) statements.push(second)
    if (WITH_SPARSE_WINDOW.includes(stream) && name !== 'a long page') {
      await list(other, page(), 'readable')
      statements.push(await statementOf(() => list(other, page(), 'readable')))
    }
    expect(new Set([...statements, second].map((statement) => statement.name)).size).toBe(statements.length)

    for (const statement of statements) await expectGenericPlan(statement)
  })
})

async function expectGenericPlan({ name, text, values }: Statement): Promise<void> {
  const [{ asked }] = (await db.raw(selectPlanCounts, [name])).rows
  for (let request = asked; request < 2 * CUSTOM_PLANS; request += 1) await queryPrepared(db, name, text, values)
  expect((await db.raw(selectPlanCounts, [name])).rows).toEqual([{ asked: 2 * CUSTOM_PLANS, generic: CUSTOM_PLANS }])
  const explained = await db.raw(`explain (analyze, format json) execute "${name}"(${values.map(literal).join(', ')})`)
  expect(maxRowsIn(findPart(explained.rows, 'CTE page'))).toBeLessThan(MAX_ROWS)
}

const selectPlanCounts = `
  select (generic_plans + custom_plans)::integer as asked, generic_plans::integer as generic
  from pg_prepared_statements where name = ?`

/** The part of the plan that finds the posts of a page. */
function findPart(plan: unknown, name: string): object {
  if (typeof plan !== 'object' || plan === null) return {}
  if (Reflect.get(plan, 'Subplan Name') === name) return plan
  const parts = Object.values(plan).map((inside) => findPart(inside, name))
  return parts.find((part) => Object.keys(part).length > 0) ?? {}
}

function literal(value: unknown): string {
  if (value instanceof Date) return `'${value.toISOString()}'`
  return Array.isArray(value) ? `'{${value.join(',')}}'` : `'${String(value)}'`
}

/** The most rows that a step of the plan reads in all its loops, filtered ones included, of tables that grow with the pod. */
function maxRowsIn(plan: unknown): number {
  if (typeof plan !== 'object' || plan === null) return 0
  const number = (name: string) => Number(Reflect.get(plan, name) ?? 0)
  const rows = (number('Actual Rows') + number('Rows Removed by Filter')) * number('Actual Loops')
  const own = GROWING_TABLES.includes(Reflect.get(plan, 'Relation Name')) ? rows : 0
  return Math.max(own, ...Object.values(plan).map(maxRowsIn))
}
