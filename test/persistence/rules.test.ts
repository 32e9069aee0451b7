import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import type { Post } from '../../src/persistence/models/post.js'
import type { User } from '../../src/persistence/models/user.js'
import { addPost, addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'
import { addRemotePerson } from '../support/people/remote-people.js'

let database: OpenDatabase
let db: Knex
let alice: User
let bob: User
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
  alice = await addUserRow({ db }, 'alice')
  bob = await addUserRow({ db }, 'bob')
})
afterAll(() => database.close())

async function idOf(table: string, row: object): Promise<number> {
  return (await db(table).insert(row).returning('id'))[0].id
}

async function countOf(table: string, where: object): Promise<number> {
  return (await db(table).where(where).count())[0]?.['count'] as number // int8 is read as a number
}

describe('a delete', () => {
  /** A post with rows in every table below it. */
  async function addLoadedPost(): Promise<{ post: Post; comment: number; reshare: Post }> {
    const post = await addPost({ db }, { id: alice.personId })
    const postId = post.id
    const authorId = bob.personId
    const comment = await idOf('comments', { guid: newGuid(), postId, authorId, text: 'Hi' })
    const poll = await idOf('polls', { guid: newGuid(), postId, question: 'Noon?' })
    const answer = await idOf('poll_answers', { guid: newGuid(), pollId: poll, answer: 'yes', position: 0 })
    const tag = await idOf('tags', { name: newGuid() })
    const mention = await idOf('mentions', { postId, personId: bob.personId, createdAt: post.createdAt })
    const mentionInComment = await idOf('mentions', { commentId: comment, personId: alice.personId })
    const aspect = await idOf('aspects', { userId: alice.id, name: newGuid(), position: 1 })
    await db('poll_participations').insert({ guid: newGuid(), pollId: poll, pollAnswerId: answer, authorId })
    await db('photos').insert({ guid: newGuid(), postId, authorId: alice.personId, name: 'a.png' })
    await db('locations').insert({ postId, address: 'Main Square', lat: '48.0', lng: '9.25' })
    await db('likes').insert([
      { guid: newGuid(), postId, authorId },
      { guid: newGuid(), commentId: comment, authorId },
    ])
    await db('participations').insert({ guid: newGuid(), postId, authorId })
    await db('taggings').insert([
      { tagId: tag, postId, createdAt: post.createdAt },
      { tagId: tag, commentId: comment, createdAt: post.createdAt },
    ])
    await db('post_aspects').insert({ postId, aspectId: aspect })
    await db('post_visibilities').insert({ postId, userId: bob.id, authorId, createdAt: post.createdAt })
    await db('activity_entries').insert({ postId, userId: bob.id })
    await db('hidden_posts').insert({ postId, userId: bob.id })
    await db('muted_posts').insert({ postId, userId: bob.id })
    await db('reports').insert([
      { postId, userId: bob.id, reason: 'rude' },
      { commentId: comment, userId: bob.id, reason: 'rude' },
    ])
    const notifications = [
      { userId: alice.id, type: 'liked', postId },
      { userId: bob.id, type: 'mentioned', postId, mentionId: mention },
      { userId: bob.id, type: 'liked_comment', postId, commentId: comment },
      { userId: alice.id, type: 'mentioned_in_comment', postId, commentId: comment, mentionId: mentionInComment },
    ]
    for (const notification of notifications) await db('notifications').insert({ guid: newGuid(), ...notification })
    const reshare = await addPost({ db }, { id: bob.personId })
    await reshare.$query(db).patch({ type: 'Reshare', rootId: postId, text: '' })
    return { post, comment, reshare }
  }

  const below = [
    ...['comments', 'polls', 'photos', 'locations', 'likes', 'participations', 'taggings', 'mentions', 'post_aspects'],
    ...['post_visibilities', 'activity_entries', 'hidden_posts', 'muted_posts', 'reports', 'notifications'],
  ]

  it('the deletion of a post deletes everything below it, and keeps its reshares without a root', async () => {
    const { post, comment, reshare } = await addLoadedPost()
    for (const table of below) expect([table, await countOf(table, { postId: post.id })]).not.toEqual([table, 0])

    await post.$query(db).delete()

    for (const table of below) expect([table, await countOf(table, { postId: post.id })]).toEqual([table, 0])
    for (const table of ['likes', 'mentions', 'taggings', 'reports', 'notifications']) {
      expect([table, await countOf(table, { commentId: comment })]).toEqual([table, 0])
    }
    expect(await reshare.$query(db)).toMatchObject({ type: 'Reshare', rootId: null })
  })

  it('the deletion of a comment deletes its likes, mentions and notifications, and keeps those of its post', async () => {
    const { post, comment } = await addLoadedPost()

    await db('comments').where({ id: comment }).delete()

    expect(await countOf('likes', { commentId: comment })).toBe(0)
    expect(await countOf('mentions', { commentId: comment })).toBe(0)
    const left = await db('notifications').where({ postId: post.id }).orderBy('type').pluck('type')
    expect(left).toEqual(['liked', 'mentioned'])
  })

  it('the deletion of an authorization deletes its tokens', async () => {
    const authorization = await idOf('authorizations', { userId: alice.id, scopes: ['profile'] })
    const hash = Buffer.alloc(32, 7)
    await db('access_tokens').insert({ authorizationId: authorization, tokenHash: hash })
    await db('refresh_tokens').insert({ authorizationId: authorization, tokenHash: hash, expiresAt: new Date() })
    await db('authorization_codes').insert({ authorizationId: authorization, codeHash: hash, expiresAt: new Date() })

    await db('authorizations').where({ id: authorization }).delete()

    for (const table of ['access_tokens', 'refresh_tokens', 'authorization_codes']) {
      expect([table, await countOf(table, { authorizationId: authorization })]).toEqual([table, 0])
    }
  })

  it('the deletion of an aspect keeps contacts and posts', async () => {
    const post = await addPost({ db }, { id: alice.personId })
    const aspect = await idOf('aspects', { userId: alice.id, name: 'Gone soon', position: 9 })
    const contact = await idOf('contacts', { userId: alice.id, personId: bob.personId, receiving: true })
    await db('aspect_memberships').insert({ aspectId: aspect, contactId: contact })
    await db('post_aspects').insert({ aspectId: aspect, postId: post.id })
    await alice.$query(db).patch({ followBackAspectId: aspect })

    await db('aspects').where({ id: aspect }).delete()

    expect(await countOf('contacts', { id: contact })).toBe(1)
    expect(await post.$query(db)).toMatchObject({ id: post.id })
    expect(await alice.$query(db)).toMatchObject({ followBackAspectId: null })
    expect(await countOf('aspect_memberships', { contactId: contact })).toBe(0)
  })
})

describe('the database rejects', () => {
  const NULL = '23502'
  const UNKNOWN_REFERENCE = '23503'
  const AGAINST_A_RULE = '23514'

  interface Refused {
    readonly what: string
    readonly table: string
    readonly row: () => Promise<object>
    readonly why?: string
  }

  const refused: readonly Refused[] = [
    {
      what: 'a contact with neither flag',
      table: 'contacts',
      row: async () => ({ userId: bob.id, personId: alice.personId }),
    },
    {
      what: 'a vote for an answer of another poll',
      table: 'poll_participations',
      row: async () => {
        const [mine, other] = await Promise.all([addPoll(), addPoll()])
        return { guid: newGuid(), pollId: mine.poll, pollAnswerId: other.answer, authorId: bob.personId }
      },
      why: UNKNOWN_REFERENCE,
    },
    { what: 'a private reshare', table: 'posts', row: async () => ({ ...newPost(), type: 'Reshare', public: false }) },
    {
      what: 'a status message with a root',
      table: 'posts',
      row: async () => ({ ...newPost(), rootId: (await addPost({ db }, { id: bob.personId })).id }),
    },
    { what: 'a post of no known type', table: 'posts', row: async () => ({ ...newPost(), type: 'Event' }) },
    { what: 'a guid that is too short', table: 'posts', row: async () => ({ ...newPost(), guid: '0123456789abcde' }) },
    { what: 'a guid that is too long', table: 'posts', row: async () => ({ ...newPost(), guid: 'a'.repeat(256) }) },
    { what: 'a counter below zero', table: 'posts', row: async () => ({ ...newPost(), likesCount: -1 }) },
    { what: 'a like of nothing', table: 'likes', row: async () => ({ guid: newGuid(), authorId: bob.personId }) },
    {
      what: 'a like of two things',
      table: 'likes',
      row: async () => {
        const postId = (await addPost({ db }, { id: alice.personId })).id
        const commentId = await idOf('comments', { guid: newGuid(), postId, authorId: bob.personId, text: 'Hi' })
        return { guid: newGuid(), authorId: bob.personId, postId, commentId }
      },
    },
    {
      what: 'a notification without a target',
      table: 'notifications',
      row: async () => ({ guid: newGuid(), userId: alice.id, type: 'liked' }),
      why: NULL,
    },
    {
      what: 'a notification with the target of another kind',
      table: 'notifications',
      row: async () => ({ guid: newGuid(), userId: alice.id, type: 'liked', personId: bob.personId }),
    },
    {
      what: 'a notification of an unknown type',
      table: 'notifications',
      row: async () => ({ guid: newGuid(), userId: alice.id, type: 'poked', personId: bob.personId }),
    },
    {
      what: 'a birthday without its day',
      table: 'notifications',
      row: async () => ({ guid: newGuid(), userId: alice.id, type: 'contacts_birthday', personId: bob.personId }),
    },
    {
      what: 'an address in capitals',
      table: 'people',
      row: async () => ({ guid: newGuid(), address: 'Q@q.example', publicKey: 'key' }),
    },
    {
      what: 'a user name in capitals',
      table: 'users',
      row: async () => ({ personId: alice.personId, username: 'Alice' }),
    },
    { what: 'the other default port of a pod', table: 'pods', row: async () => ({ host: 'r.example', port: 80 }) },
    {
      what: 'a token that is not a hash',
      table: 'access_tokens',
      row: async () => ({ authorizationId: 1, tokenHash: Buffer.from('abc') }),
    },
    {
      what: 'a dead delivery without a time',
      table: 'deliveries',
      row: async () => ({ messageId: 1, podId: 1, state: 'dead' }),
    },
  ]

  it.each(refused)('$what', async ({ table, row, why = AGAINST_A_RULE }) => {
    const given = await row()

    await expect(db(table).insert(given)).rejects.toMatchObject({ code: why })
  })

  const newPost = () => ({ guid: newGuid(), authorId: alice.personId, type: 'StatusMessage', public: true })

  async function addPoll(): Promise<{ poll: number; answer: number }> {
    const post = await addPost({ db }, { id: alice.personId })
    const poll = await idOf('polls', { guid: newGuid(), postId: post.id, question: 'Noon?' })
    return { poll, answer: await idOf('poll_answers', { guid: newGuid(), pollId: poll, answer: 'yes', position: 0 }) }
  }
})

describe('every table', () => {
  it('compares guids byte for byte', async () => {
    const { rows } = await db.raw(`
      select attrelid::regclass::text || '.' || attname as column_name, collname
      from pg_attribute
      join pg_class on pg_class.oid = attrelid and relkind = 'r' and relnamespace = 'public'::regnamespace
      left join pg_collation on pg_collation.oid = attcollation
      where attname in ('guid', 'address', 'username', 'host', 'client_id') and atttypid = 'text'::regtype
        and attrelid <> 'locations'::regclass`)

    expect(rows.length).toBeGreaterThan(15)
    expect(rows.filter((row: { collname: string }) => row.collname !== 'C')).toEqual([])
  })

  it('keeps milliseconds, with a zone', async () => {
    const { rows } = await db.raw(`
      select attrelid::regclass::text as table_name, attname, format_type(atttypid, atttypmod) as type
      from pg_attribute
      join pg_class on pg_class.oid = attrelid and relkind = 'r' and relnamespace = 'public'::regnamespace
      where attname like '%\\_at' and relname not like 'knex%' and attnum > 0 and not attisdropped`)

    expect(rows.length).toBeGreaterThan(50)
    expect(rows.filter((row: { type: string }) => row.type !== 'timestamp(3) with time zone')).toEqual([])
  })

  it('has an index for each of its foreign keys', async () => {
    const { rows } = await db.raw(`
      select conrelid::regclass::text || ': ' || pg_get_constraintdef(pg_constraint.oid) as foreign_key
      from pg_constraint
      where contype = 'f' and connamespace = 'public'::regnamespace and not exists (
        select from pg_index
        where indrelid = conrelid and indkey[0] = any(conkey) and (indkey::int2[])[0:cardinality(conkey) - 1] @> conkey
      )`)

    expect(rows).toEqual([])
  })
})

describe('times', () => {
  it('made by the database are truncated to milliseconds, never rounded up', async () => {
    const { rows } = await db.raw(`
      select adrelid::regclass::text as table_name, pg_get_expr(adbin, adrelid) as made
      from pg_attrdef
      join pg_class on pg_class.oid = adrelid and relkind = 'r' and relnamespace = 'public'::regnamespace
      where pg_get_expr(adbin, adrelid) like '%now()%'`)

    expect(rows.length).toBeGreaterThan(30)
    expect(rows.filter((row: { made: string }) => !row.made.includes(`date_trunc('milliseconds'`))).toEqual([])
  })

  it('are read as they were written', async () => {
    const remotePerson = await addRemotePerson({ db }, 'quin@q.example')
    const at = new Date('2025-03-01T08:15:30.257Z')

    await remotePerson.$query(db).patch({ refreshedAt: at })

    expect((await remotePerson.$query(db)).refreshedAt).toEqual(at)
  })
})
