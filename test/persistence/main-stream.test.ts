import type { Knex } from 'knex'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { Post } from '../../src/persistence/models/post.js'
import type { Visibility } from '../../src/persistence/posts/visibility.js'
import type { TimePage } from '../../src/persistence/sql/keyset-page.js'
import { listStreamPosts, type Stream } from '../../src/persistence/streams/list-streams.js'
import { findMainStreamMembers } from '../../src/persistence/streams/main-stream-members.js'
import { addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'

const AUTHORS = 600
const POSTS = 9_000
const TAGS = 60

/** The contacts of each reader. Together these readers use every statement of the main stream. */
const readers = {
  /** Has own posts and no contacts. */
  'no contacts': `select`,
  /** So many that the newest posts of the whole pod fill a page. */
  'many contacts': `insert into contacts (user_id, person_id, receiving) select :user, id, true from people where id % 2 = 0`,
  /** As many, few of them with recent posts. */
  'many inactive contacts': `insert into contacts (user_id, person_id, receiving) select :user, id, true from people where id % 600 < 300`,
  'few contacts': `insert into contacts (user_id, person_id, receiving) select :user, id, true from people where id % 60 = 1`,
  /** Many people share with the reader who are not their contacts. */
  'many sharing people': `insert into contacts (user_id, person_id, receiving, sharing) select :user, id, id % 200 = 11, true from people`,
  'only followed tags': `select`,
  /** Both without recent posts. */
  'two inactive contacts': `insert into contacts (user_id, person_id, receiving) select :user, id, true from people where id % 600 in (400, 500)`,
} as const

type Name = keyof typeof readers
const names = Object.keys(readers) as Name[]

let database: OpenDatabase
let db: Knex
const ids = new Map<Name, { userId: number; personId: number }>()
/** The times of all posts by id. */
let times: ReadonlyMap<number, Date>
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
  for (const name of names) {
    const { id, personId } = await addUserRow({ db }, name.replaceAll(' ', '_'))
    ids.set(name, { userId: id, personId })
  }
  await fill()
  const posts: { id: number; createdAt: Date }[] = await db('posts').select('id', 'createdAt')
  times = new Map(posts.map(({ id, createdAt }) => [id, createdAt]))
})
afterAll(() => database.close())

async function fill(): Promise<void> {
  const guid = (salt: string) => `md5('${salt}' || i)`
  const pseudoRandom = (salt: string, outOf: number) => `abs(hashtext('${salt}' || i)) % ${outOf}`
  await db.raw(`
    insert into people (guid, address, public_key)
    select ${guid('person')}, 'person' || i || '@q.example', 'none' from generate_series(1, ${AUTHORS}) as i`)
  // Ten posts have the same time. Half of the people have no recent posts. The readers are authors too.
  await db.raw(`
    insert into posts (guid, author_id, type, public, text, created_at)
    select ${guid('post')}, people.id, 'StatusMessage', ${pseudoRandom('public', 3)} > 0, 'Tea',
      timestamptz '2025-01-01' + make_interval(mins => i / 10)
    from generate_series(1, ${POSTS}) as i
    join (select id, row_number() over (order by id) - 1 as place from people) as people
      on people.place = case when i < 3000 then ${pseudoRandom('author', AUTHORS)} else ${pseudoRandom('author', AUTHORS / 2)} end
    order by i`)
  await db.raw(`insert into tags (name) select 'tag' || i from generate_series(1, ${TAGS}) as i`)
  await db.raw(`
    insert into taggings (tag_id, post_id, created_at)
    select tags.id, posts.id, posts.created_at from posts join tags on (posts.id * 7 + tags.id) % 90 in (0, 1)`)
  for (const name of names) {
    const { userId: user, personId: person } = idsOf(name)
    const run = (statement: string) => db.raw(statement, { user, person })
    await run(readers[name])
    await run(`
      insert into post_visibilities (user_id, post_id, author_id, created_at)
      select :user, id, author_id, created_at from posts where not public and author_id <> :person and (id + :user) % 4 > 0`)
    await run(`insert into hidden_posts (user_id, post_id) select :user, id from posts where (id + :user) % 11 = 0`)
    await run(`insert into blocks (user_id, person_id) select :user, id from people where (id + :user) % 17 = 0`)
    await run(`
      insert into mentions (person_id, post_id, created_at)
      select :person, id, created_at from posts where (id + :user) % 40 = 0`)
    await run(`
      insert into tag_followings (user_id, tag_id)
      select :user, id from tags where (id + :user) % 8 = 0 and :user % 2 = 0`)
  }
  await db.raw('analyze')
}

function idsOf(name: Name) {
  const reader = ids.get(name)
  if (reader === undefined) throw new Error(`There is no reader with ${name}.`)
  return reader
}

/** Lists all pages of the stream. */
async function listAllPages(
  name: Name,
  visibility: Visibility,
  start: Omit<TimePage, 'limit'>,
  limit: number,
): Promise<number[]> {
  const found: number[] = []
  for (let place = start; ; ) {
    const { items, hasMore } = await listStreamPosts(db, idsOf(name), {
      stream: 'main',
      visibility,
      page: { ...place, limit },
    })
    found.push(...items.map(({ id }) => id))
    const last = items.at(-1)
    if (!hasMore || last === undefined) return found
    const key = { time: last.createdAt, id: last.id }
    place = start.after === undefined ? { before: key } : { after: key }
  }
}

async function expectedPosts(name: Name, visibility: Visibility): Promise<number[]> {
  const { userId } = idsOf(name)
  const found = await findMainStreamMembers(db, { userIds: [userId], postIds: [...times.keys()] })
  const time = (id: number) => times.get(id)?.getTime() ?? Number.NaN
  return found
    .filter((member) => visibility === 'readable' || member.public)
    .map(({ postId }) => postId)
    .toSorted((one, other) => time(other) - time(one) || other - one)
}

it.each(names)('lists for a reader with %s exactly the members of the stream, in order', async (name) => {
  for (const visibility of ['readable', 'public'] as const) {
    const expected = await expectedPosts(name, visibility)
    expect(expected.length).toBeGreaterThan(10)
    expect(await listAllPages(name, visibility, {}, 100)).toEqual(expected)
  }
})

it.each(names)('lists for a reader with %s small pages from any key, in both directions', async (name) => {
  const expected = await expectedPosts(name, 'readable')
  for (const part of [0, 0.3, 0.95]) {
    const start = expected[Math.floor(part * (expected.length - 1))] ?? 0
    const key = { time: times.get(start) ?? new Date(0), id: start }
    const behind = expected.slice(expected.indexOf(start) + 1)
    const ahead = expected.slice(0, expected.indexOf(start)).toReversed()
    const page = (place: Omit<TimePage, 'limit'>) =>
      listStreamPosts(db, idsOf(name), { stream: 'main', visibility: 'readable', page: { ...place, limit: 7 } })
    const idsIn = async (place: Omit<TimePage, 'limit'>) => (await page(place)).items.map(({ id }) => id)

    expect(await idsIn({ before: key })).toEqual(behind.slice(0, 7))
    expect(await idsIn({ after: key })).toEqual(ahead.slice(0, 7))
  }
})

it.each(names)(
  'shows a reader with %s each change at once, in and behind the window of the last page',
  async (name) => {
    const reader = idsOf(name)
    const page = async () => {
      const { items } = await listStreamPosts(db, reader, {
        stream: 'main',
        visibility: 'readable',
        page: { limit: 10 },
      })
      return items.map(({ id }) => id)
    }
    const first = await page()
    expect(await page()).toEqual(first)

    const others = await db('posts').whereIn('id', first).whereNot({ authorId: reader.personId }).first('authorId')
    const [{ id: own }] = await db('posts')
      .insert({ guid: `own ${name}`.padEnd(16, '.'), authorId: reader.personId, type: 'StatusMessage', public: true })
      .returning('id')
    expect(await page()).toEqual([own, ...first].slice(0, 10))

    const hidden = first.slice(0, 8).map((postId) => ({ userId: reader.userId, postId }))
    const blocked = { userId: reader.userId, personId: others?.authorId ?? 0 }
    await db('hiddenPosts').insert(hidden)
    if (others !== undefined) await db('blocks').insert(blocked)
    expect(await page()).toEqual([own, ...(await expectedPosts(name, 'readable'))].slice(0, 10))

    await db('hiddenPosts').where({ userId: reader.userId }).whereIn('postId', first).delete()
    await db('blocks').where(blocked).delete()
    await db('posts').where({ id: own }).delete()
    expect(await page()).toEqual(first)
  },
)

const MERGED_STREAMS: readonly Stream[] = ['main', 'all aspects', 'tags']

it.each(MERGED_STREAMS)('has the same pages in a window as in the whole stream: %s', async (stream) => {
  const statements: (string | undefined)[] = []
  for (const name of names) {
    for (const visibility of ['readable', 'public'] as const) {
      const page = (from: Knex, place: Omit<TimePage, 'limit'>) =>
        listStreamPosts(from, idsOf(name), { stream, visibility, page: { ...place, limit: 7 } })
      const { items } = await page(db, {})
      const last = items.at(-1)
      const key = last && { time: last.createdAt, id: last.id }
      for (const place of [
        {},
        ...(key ? [{ before: key }] : []),
        { after: { time: times.get(3_000) ?? new Date(0) } },
      ]) {
        const wholeStreamPage = await page(withoutWindows(), place)
        await page(db, place)
        await page(db, place)
        const asked = await namesDuring(async () => expect(await page(db, place)).toEqual(wholeStreamPage))
        if (wholeStreamPage.hasMore) statements.push(asked.at(-1)?.split(', ').at(-1))
      }
    }
  }
  expect(statements.length).toBeGreaterThan(names.length)
  expect(new Set(statements)).toEqual(new Set(stream === 'tags' ? ['window'] : ['window', 'sparse']))
})

async function addPost(authorId: number, createdAt: Date): Promise<Post> {
  const post = { guid: newGuid(), authorId, type: 'StatusMessage', public: true, text: 'Tea', createdAt } as const
  return Post.query(db).insert(post).returning('*')
}

/** The same database, for a process without recorded windows. */
function withoutWindows(): Knex {
  return db.withUserParams({})
}

/** The names of the stream statements that run. */
async function namesDuring(read: () => Promise<void>): Promise<readonly string[]> {
  const asked = vi.spyOn(pg.Client.prototype, 'query')
  try {
    await read()
    const names = asked.mock.calls.map(([given]) => (given as unknown as pg.QueryConfig).name ?? '')
    return names.filter((name) => name.startsWith('stream '))
  } finally {
    asked.mockRestore()
  }
}

it('is read with one statement if the whole stream fits on a page, and shows changes at once', async () => {
  const reader = await addUserRow({ db }, 'quiet')
  const page = async () => {
    const { items, hasMore } = await listStreamPosts(
      db,
      { userId: reader.id, personId: reader.personId },
      { stream: 'main', visibility: 'readable', page: { limit: 3 } },
    )
    return { ids: items.map(({ id }) => id), hasMore }
  }
  const write = async (minute: number) => (await addPost(reader.personId, new Date(Date.UTC(2025, 0, 1, 0, minute)))).id
  expect(await page()).toEqual({ ids: [], hasMore: false })
  const [first, second] = [await write(1), await write(2)]
  expect(await page()).toEqual({ ids: [second, first], hasMore: false })

  const asked = await namesDuring(async () => expect(await page()).toEqual({ ids: [second, first], hasMore: false }))
  expect(asked).toEqual([expect.stringContaining(', window')])

  const older = await write(0)
  expect(await page()).toEqual({ ids: [second, first, older], hasMore: false })
  const oldest = await addPost(reader.personId, new Date('0999-01-01T00:00:00Z'))
  expect(await page()).toEqual({ ids: [second, first, older], hasMore: true })
  await db('hiddenPosts').insert({ userId: reader.id, postId: first })
  expect(await page()).toEqual({ ids: [second, older, oldest.id], hasMore: false })
  await db('posts').where({ authorId: reader.personId }).delete()
  expect(await page()).toEqual({ ids: [], hasMore: false })
})

it('is read from the whole stream if the window holds too many hidden posts', async () => {
  const [reader, author] = [await addUserRow({ db }, 'tired'), await addUserRow({ db }, 'tireless')]
  await db('contacts').insert({ userId: reader.id, personId: author.personId, receiving: true })
  const moment = `timestamptz '2024-06-01'`
  await db.raw(`
    insert into posts (guid, author_id, type, public, text, created_at)
    select md5('tireless' || i), ${author.personId}, 'StatusMessage', true, 'Tea', ${moment} + make_interval(secs => i)
    from generate_series(1, 1200) as i`)
  const written: number[] = await db('posts')
    .where({ authorId: author.personId })
    .orderBy('createdAt', 'desc')
    .pluck('id')
  const page = async (limit: number) => {
    const { items } = await listStreamPosts(
      db,
      { userId: reader.id, personId: reader.personId },
      { stream: 'main', visibility: 'readable', page: { limit } },
    )
    return items.map(({ id }) => id)
  }
  expect(await page(5)).toEqual(written.slice(0, 5))

  await db.raw(`insert into hidden_posts (user_id, post_id) select ${reader.id}, unnest(?::bigint[])`, [
    written.slice(0, 1_198),
  ])
  // With a window that ends, and with one that holds the whole stream.
  for (const limit of [5, 5, 5, 4, 4, 4]) expect(await page(limit)).toEqual(written.slice(1_198))

  await db('hiddenPosts').where({ userId: reader.id }).delete()
  expect(await page(5)).toEqual(written.slice(0, 5))
  await db('posts').where({ authorId: author.personId }).delete()
})

it('has all posts if others have posted much since the last page', async () => {
  const [reader, author, others] = [
    await addUserRow({ db }, 'late'),
    await addUserRow({ db }, 'early'),
    await addUserRow({ db }, 'many'),
  ]
  await db('contacts').insert({ userId: reader.id, personId: author.personId, receiving: true })
  const [tag] = await db('tags').insert({ name: 'late' }).returning('id')
  await db('tagFollowings').insert({ userId: reader.id, tagId: tag.id })
  const moment = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second))
  const tagged: number[] = []
  for (const second of [1, 3, 3, 4, 5]) {
    const { id, createdAt } = await addPost(others.personId, moment(second))
    await db('taggings').insert({ tagId: tag.id, postId: id, createdAt })
    tagged.unshift(id)
  }
  const { id: authorPost } = await addPost(author.personId, moment(6))
  const page = async () => {
    const { items } = await listStreamPosts(
      db,
      { userId: reader.id, personId: reader.personId },
      { stream: 'main', visibility: 'readable', page: { limit: 3 } },
    )
    return items.map(({ id }) => id)
  }
  expect(await page()).toEqual([authorPost, ...tagged.slice(0, 2)])
  await db.raw(`
    insert into posts (guid, author_id, type, public, text, created_at)
    select md5('late' || i), ${others.personId}, 'StatusMessage', true, 'Tea', timestamptz '2026-01-02' + make_interval(secs => i)
    from generate_series(1, 1200) as i`)

  expect(await page()).toEqual([authorPost, ...tagged.slice(0, 2)])
  await db('posts').whereIn('authorId', [others.personId, author.personId]).delete()
})

it('has the same members for many readers at once as for each alone', async () => {
  const postIds = [...times.keys()].slice(-500)
  const userIds = names.map((name) => idsOf(name).userId)
  const alone = []
  for (const userId of userIds) alone.push(...(await findMainStreamMembers(db, { userIds: [userId], postIds })))

  const together = await findMainStreamMembers(db, { userIds, postIds })

  expect(together).toHaveLength(alone.length)
  expect(new Set(together.map(({ userId, postId }) => `${userId} ${postId}`))).toEqual(
    new Set(alone.map(({ userId, postId }) => `${userId} ${postId}`)),
  )
})
