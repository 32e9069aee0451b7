import type { Knex } from 'knex'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { User } from '../../src/persistence/models/user.js'
import { listPostsOfPerson, type ViewerIds } from '../../src/persistence/posts/list-posts.js'
import { addPost, addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'

let database: OpenDatabase
let db: Knex
let alice: User
let reader: ViewerIds
let authorGuid: string
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
  alice = await addUserRow({ db }, 'alice')
  reader = { userId: alice.id, personId: alice.personId }
  authorGuid = alice.person?.guid ?? ''
})
afterAll(() => database.close())
beforeEach(() => db('posts').delete())
afterEach(() => vi.restoreAllMocks())

const list = (limit = 10) => listPostsOfPerson(db, reader, { authorGuid, visibility: 'readable', page: { limit } })
const texts = async (limit?: number) => (await list(limit)).items.map(({ text }) => text)

/** Calls back with the name of each statement before it is sent. */
function beforeStatements(look: (name: string) => Promise<unknown>): void {
  const query = pg.Client.prototype.query
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(async function (this: pg.Client, ...rest: unknown[]) {
    const [statement] = rest
    if (typeof statement === 'object' && statement) await look(String(Reflect.get(statement, 'name')))
    return Reflect.apply(query, this, rest)
  })
}

it('reads the contents of a post once, and its counters each time', async () => {
  const { id } = await addPost({ db }, { id: alice.personId })
  await list()
  await db('posts').where({ id }).update({ likesCount: 3 })
  const names: string[] = []
  beforeStatements(async (name) => names.push(name))

  const { items } = await list()

  expect(items).toMatchObject([{ text: 'Good morning', likesCount: 3 }])
  expect(names).not.toContain('post-contents')
  await addPost({ db }, { id: alice.personId })
  expect(await texts()).toEqual(['Good morning', 'Good morning'])
  expect(names.filter((name) => name === 'post-contents')).toHaveLength(1)
})

it('shows no retracted poll', async () => {
  const { id: postId } = await addPost({ db }, { id: alice.personId })
  const [poll] = await db('polls').insert({ guid: 'the_guid_of_a_poll', postId, question: 'Tea?' }).returning('id')
  await db('pollAnswers').insert({ guid: 'the_guid_of_an_answer', pollId: poll.id, position: 0, answer: 'Yes' })
  expect((await list()).items).toMatchObject([{ poll: { question: 'Tea?', answers: [{ answer: 'Yes' }] } }])

  await db('polls').where({ postId }).delete()

  expect((await list()).items).toMatchObject([{ text: 'Good morning', poll: null }])
})

it('does not show cached contents of another post with the same id after a restore', async () => {
  const { id } = await addPost({ db }, { id: alice.personId })
  expect(await texts()).toEqual(['Good morning'])

  const other = { guid: 'another_guid_of_a_post', authorId: alice.personId, type: 'StatusMessage', public: true }
  await db('posts').delete()
  await db.raw(
    'insert into posts (id, guid, author_id, type, public, text) overriding system value values (:id, :guid, :authorId, :type, :public, :text)',
    { ...other, id, text: 'Good night' },
  )

  expect(await texts()).toEqual(['Good night'])
})

it('fills the page if a post is deleted while it is read', async () => {
  for (let i = 0; i < 4; i += 1) await addPost({ db }, { id: alice.personId })
  const [, last] = await db('posts').orderBy('id', 'desc').pluck('id')
  beforeStatements(async (name) => {
    if (name !== 'post-contents') return
    vi.restoreAllMocks()
    await db('posts').where({ id: last }).delete()
  })

  const { items, hasMore } = await list(2)

  expect(items).toHaveLength(2)
  expect(hasMore).toBe(true)
})
