import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { publishLiveEvents } from '../../src/domain/notifications/enqueue-live-events.js'
import { Mention } from '../../src/persistence/models/mention.js'
import { Tag } from '../../src/persistence/models/tag.js'
import type { User } from '../../src/persistence/models/user.js'
import { findLiveEventRange, listLiveEventsAfter } from '../../src/persistence/notifications/live-event-sources.js'
import { addLiveEventRows, publishRows } from '../support/databases/publish-rows.js'
import { addPost, addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'
import { addRemotePerson } from '../support/people/remote-people.js'

let database: OpenDatabase
let db: Knex
let alice: User
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
  alice = await addUserRow({ db }, 'alice')
})
afterAll(() => database.close())
beforeEach(() => db('announcements').delete())

const listAnnounced = async () => (await listLiveEventsAfter(db, 0)).map(({ subjectId, userId }) => [subjectId, userId])

it('lets one transaction at a time insert announcements, so that ids are in commit order', async () => {
  const { id } = await addPost({ db }, { id: alice.personId })
  const first = await db.transaction()
  await publishRows(first, { posts: [id] })

  const second = publishRows(db, { posts: [id] })
  await expect.poll(countWaiting).toBe(1)
  expect(await listLiveEventsAfter(db, 0)).toEqual([])
  await first.commit()
  await second

  expect(await listAnnounced()).toEqual([
    [id, null],
    [id, null],
  ])
})

it('publishes the announcements of many outbox rows together, and each row once', async () => {
  const post = await addPost({ db }, { id: alice.personId })
  const other = await addPost({ db }, { id: alice.personId })
  const ids = await addLiveEventRows(db, [
    { posts: [post.id] },
    { notifications: [], posts: [] },
    { shown: [{ userId: alice.id, postId: other.id }] },
  ])

  await publishLiveEvents({ db }, ids)
  await publishLiveEvents({ db }, ids)

  expect(await listAnnounced()).toEqual([
    [post.id, null],
    [other.id, alice.id],
  ])
  expect(await db('outbox').whereIn('id', [...ids])).toEqual([])
})

it('gives the announcements of outbox rows higher ids than those of a transaction that has committed before', async () => {
  const { id } = await addPost({ db }, { id: alice.personId })
  const later = await addPost({ db }, { id: alice.personId })
  const rows = await addLiveEventRows(db, [{ posts: [later.id] }])
  const first = await db.transaction()
  await publishRows(first, { posts: [id] })

  const second = publishLiveEvents({ db }, rows)
  await expect.poll(countWaiting).toBe(1)
  await publishRows(first, { posts: [id] })
  await first.commit()
  await second

  expect((await listAnnounced()).map(([subjectId]) => subjectId)).toEqual([id, id, later.id])
})

function attach(postId: number, model: typeof Mention | typeof Tag, names: readonly string[]): Promise<void> {
  return db.transaction((transaction) =>
    model.attach(transaction, { postId, createdAt: new Date(), isPublic: true }, names),
  )
}

/** Counts the transactions that wait for the lock. */
async function countWaiting(): Promise<number> {
  const { rows } = await db.raw(
    `select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`,
  )
  return rows[0].count
}

describe('a post is announced if a local user could have it in a stream:', () => {
  it('not a post by a person without a connection to local users', async () => {
    const remotePerson = await addRemotePerson({ db }, 'sam@s.example')
    const { id } = await addPost({ db }, { id: remotePerson.id })

    await publishRows(db, { posts: [id] })
    expect(await listAnnounced()).toEqual([])
  })

  it.each<readonly [string, (post: { id: number; authorId: number }) => Promise<unknown>]>([
    [
      'a local user shares with its author',
      ({ authorId: personId }) => db('contacts').insert({ userId: alice.id, personId, receiving: true }),
    ],
    ['it mentions a local person', ({ id }) => attach(id, Mention, ['alice@pod.example'])],
    [
      'a local user follows its tag',
      async ({ id }) => {
        await attach(id, Tag, ['tea'])
        const { id: tagId } = await Tag.query(db).findOne({ name: 'tea' }).throwIfNotFound()
        await db('tagFollowings').insert({ userId: alice.id, tagId })
      },
    ],
  ])('%s', async (_why, connect) => {
    const remotePerson = await addRemotePerson({ db }, `sam${Math.random()}@s.example`)
    const post = await addPost({ db }, { id: remotePerson.id })
    await connect({ id: post.id, authorId: remotePerson.id })

    await publishRows(db, { posts: [post.id] })
    expect(await listAnnounced()).toEqual([[post.id, null]])
  })

  it('not a post that was written long before it arrived', async () => {
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000)
    const [late, old] = [await addPost({ db }, { id: alice.personId }), await addPost({ db }, { id: alice.personId })]
    await late.$query(db).patch({ createdAt: daysAgo(1.9) })
    await old.$query(db).patch({ createdAt: daysAgo(2.1) })

    await publishRows(db, { posts: [old.id, late.id] })
    expect(await listAnnounced()).toEqual([[late.id, null]])
  })

  it('a post is announced to one user alone if it is shared with them later', async () => {
    const { id } = await addPost({ db }, { id: alice.personId })

    await publishRows(db, { shown: [{ userId: alice.id, postId: id }] })
    expect(await listAnnounced()).toEqual([[id, alice.id]])
  })
})

it('returns the range of stored announcements', async () => {
  await db.raw('truncate announcements restart identity')
  expect(await findLiveEventRange(db)).toEqual({ from: 0, newest: 0 })

  const { id } = await addPost({ db }, { id: alice.personId })
  for (let number = 0; number < 3; number += 1) await publishRows(db, { posts: [id] })
  expect(await findLiveEventRange(db)).toEqual({ from: 0, newest: 3 })

  await db('announcements').where({ id: 1 }).delete()
  expect(await findLiveEventRange(db)).toEqual({ from: 1, newest: 3 })
})
