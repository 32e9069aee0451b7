import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Mention } from '../../src/persistence/models/mention.js'
import { Tag } from '../../src/persistence/models/tag.js'
import type { User } from '../../src/persistence/models/user.js'
import {
  type AnnouncedRows,
  findAnnouncementRange,
  insertAnnouncements,
  listAnnouncementsAfter,
} from '../../src/persistence/notifications/announcements.js'
import { type OpenDatabase, openTestDatabase } from './test-database.js'
import { addPost, addStranger, addUser } from './world.js'

let database: OpenDatabase
let db: Knex
let alice: User
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
  alice = await addUser(db, 'alice')
})
afterAll(() => database.close())
beforeEach(() => db('announcements').delete())

const announce = (news: AnnouncedRows) => db.transaction((transaction) => insertAnnouncements(transaction, news))
const announced = async () => (await listAnnouncementsAfter(db, 0)).map(({ subjectId, userId }) => [subjectId, userId])

it('lets one transaction after the other announce, so that ids are in the order of commits', async () => {
  const { id } = await addPost(db, alice.personId)
  const first = await db.transaction()
  await insertAnnouncements(first, { posts: [id] })

  const second = announce({ posts: [id] })
  await expect.poll(waiting).toBe(1)
  expect(await listAnnouncementsAfter(db, 0)).toEqual([])
  await first.commit()
  await second

  expect(await announced()).toEqual([
    [id, null],
    [id, null],
  ])
})

function attach(postId: number, model: typeof Mention | typeof Tag, names: readonly string[]): Promise<void> {
  return db.transaction((transaction) =>
    model.attach(transaction, { postId, createdAt: new Date(), isPublic: true }, names),
  )
}

/** Transactions that wait for their turn. */
async function waiting(): Promise<number> {
  const { rows } = await db.raw(
    `select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`,
  )
  return rows[0].count
}

describe('a post is announced where somebody here could have it in a stream:', () => {
  it('not that of a stranger', async () => {
    const stranger = await addStranger(db, 'sam@s.example')
    const { id } = await addPost(db, stranger.id)

    expect(await announce({ posts: [id] })).toBe(0)
    expect(await announced()).toEqual([])
  })

  it.each<readonly [string, (post: { id: number; authorId: number }) => Promise<unknown>]>([
    [
      'somebody shares with its author',
      ({ authorId: personId }) => db('contacts').insert({ userId: alice.id, personId, receiving: true }),
    ],
    ['it names somebody', ({ id }) => attach(id, Mention, ['alice@pod.example'])],
    [
      'somebody follows its tag',
      async ({ id }) => {
        await attach(id, Tag, ['tea'])
        const { id: tagId } = await Tag.query(db).findOne({ name: 'tea' }).throwIfNotFound()
        await db('tagFollowings').insert({ userId: alice.id, tagId })
      },
    ],
  ])('%s', async (_why, connect) => {
    const stranger = await addStranger(db, `sam${Math.random()}@s.example`)
    const post = await addPost(db, stranger.id)
    await connect({ id: post.id, authorId: stranger.id })

    expect(await announce({ posts: [post.id] })).toBe(1)
    expect(await announced()).toEqual([[post.id, null]])
  })

  it('not what was written long ago and came only now', async () => {
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000)
    const [late, old] = [await addPost(db, alice.personId), await addPost(db, alice.personId)]
    await late.$query(db).patch({ createdAt: daysAgo(1.9) })
    await old.$query(db).patch({ createdAt: daysAgo(2.1) })

    expect(await announce({ posts: [old.id, late.id] })).toBe(1)
    expect(await announced()).toEqual([[late.id, null]])
  })

  it('and to one person alone, to whom it is shown later', async () => {
    const { id } = await addPost(db, alice.personId)

    expect(await announce({ shown: [{ userId: alice.id, postId: id }] })).toBe(1)
    expect(await announced()).toEqual([[id, alice.id]])
  })
})

it('knows what is kept', async () => {
  await db.raw('truncate announcements restart identity')
  expect(await findAnnouncementRange(db)).toEqual({ from: 0, newest: 0 })

  const { id } = await addPost(db, alice.personId)
  for (let number = 0; number < 3; number += 1) await announce({ posts: [id] })
  expect(await findAnnouncementRange(db)).toEqual({ from: 0, newest: 3 })

  await db('announcements').where({ id: 1 }).delete()
  expect(await findAnnouncementRange(db)).toEqual({ from: 1, newest: 3 })
})
