import { createHash, randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import type { Model, ModelClass } from 'objection'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { schemaPage } from '../../scripts/schema-page.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { AccessToken, Authorization } from '../../src/persistence/models/access-token.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import { Client } from '../../src/persistence/models/client.js'
import { Comment } from '../../src/persistence/models/comment.js'
import { Block, Contact } from '../../src/persistence/models/contact.js'
import { Conversation, ConversationMessage, ConversationVisibility } from '../../src/persistence/models/conversation.js'
import { Like } from '../../src/persistence/models/like.js'
import { Notification, NotificationActor } from '../../src/persistence/models/notification.js'
import { Participation } from '../../src/persistence/models/participation.js'
import { Person, Profile } from '../../src/persistence/models/person.js'
import { Photo } from '../../src/persistence/models/photo.js'
import { Poll, PollAnswer, PollParticipation } from '../../src/persistence/models/poll.js'
import { Location, Post } from '../../src/persistence/models/post.js'
import { RemotePod } from '../../src/persistence/models/remote-pod.js'
import { Tag } from '../../src/persistence/models/tag.js'
import { Tombstone } from '../../src/persistence/models/tombstone.js'
import { User, UserSecrets } from '../../src/persistence/models/user.js'
import { addPost, addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'
import { addRemotePerson } from '../support/people/remote-people.js'

const models: readonly ModelClass<Model>[] = [
  ...[AccessToken, Aspect, Authorization, Block, Client, Comment, Contact, Conversation, ConversationVisibility],
  ...[
    Like,
    Location,
    ConversationMessage,
    Notification,
    NotificationActor,
    Participation,
    Person,
    Photo,
    RemotePod,
    Poll,
    PollAnswer,
  ],
  ...[PollParticipation, Post, Profile, Tag, Tombstone, User, UserSecrets],
]

let database: OpenDatabase
let db: Knex
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
})
afterAll(() => database.close())

describe.each(models)('$name', (model) => {
  it('reads its table, and its id columns are the primary key', async () => {
    const table = model.tableName
    const { rows } = await db.raw(
      `select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey)
       where indrelid = ?::regclass and indisprimary`,
      [table],
    )
    const key = rows.map((row: { attname: string }) => row.attname).sort()
    const columns = [model.idColumn]
      .flat()
      .map((column) => column.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))

    expect(columns.sort()).toEqual(key)
    await expect(model.query(db)).resolves.toEqual(expect.any(Array))
  })

  it('can be joined with all its relations', async () => {
    for (const relation of Object.keys(model.getRelations())) {
      await expect(model.query(db).withGraphJoined(relation).limit(1), relation).resolves.toEqual(expect.any(Array))
    }
  })
})

it('docs/schema.sql matches the migrations', async () => {
  await expect(await schemaPage(db)).toMatchFileSnapshot('../../docs/schema.sql')
})

describe('a person', () => {
  it('has a profile, and a copy of its name and picture', async () => {
    const person = await db.transaction((transaction) =>
      Person.insertWithProfile(
        transaction,
        { guid: newGuid(), address: 'ann@pod.example', publicKey: 'key' },
        {
          firstName: 'Ann',
          lastName: 'Lee',
          imageUrl: 'https://pod.example/a.png',
          imageUrlMedium: 'https://pod.example/m.png',
          birthday: '0000-02-29',
          tags: ['tea', 'art'],
        },
      ),
    )

    const found = await Person.query(db).findById(person.id).withGraphFetched('[profile, pod]')

    expect(found).toMatchObject({ name: 'Ann Lee', avatarUrl: 'https://pod.example/m.png', podId: null, pod: null })
    expect(found?.profile).toMatchObject({
      birthday: '0000-02-29',
      tags: ['tea', 'art'],
      bio: '',
      gender: null,
      searchable: true,
      publicDetails: false,
      nsfw: false,
    })
  })

  it.each([
    [{}, { name: '', avatarUrl: null }],
    [{ lastName: 'Lee' }, { name: 'Lee', avatarUrl: null }],
    [
      { firstName: 'Ann ', imageUrl: 'a.png' },
      { name: 'Ann', avatarUrl: 'a.png' },
    ],
  ])('with the profile %j is shown as %j', async (profile, shown) => {
    const address = `${newGuid()}@pod.example`
    const person = await db.transaction((transaction) =>
      Person.insertWithProfile(transaction, { guid: newGuid(), address, publicKey: 'key' }, profile),
    )

    expect(person).toMatchObject(shown)
  })

  it('is found by address, any number at once', async () => {
    const quin = await addRemotePerson({ db }, 'quin@q.example')
    const remy = await addRemotePerson({ db }, 'remy@q.example')

    const found = await Person.byAddresses(db, ['remy@q.example', 'nobody@q.example', 'quin@q.example'])

    expect(found.map((person) => person.id).sort()).toEqual([quin.id, remy.id].sort())
    expect(await Person.byAddresses(db, [])).toEqual([])
  })
})

describe('a user', () => {
  it('is found by name in any letter case, with the person and without secrets', async () => {
    const alice = await addUserRow({ db }, 'alice')

    const found = await User.byUsername(db, 'Alice')

    expect(found).toMatchObject({ id: alice.id, username: 'alice', settings: {}, role: null })
    expect(found?.person?.address).toBe('alice@pod.example')
    expect(JSON.stringify(found)).not.toMatch(/secret|hash|sealed/i)
    expect(await User.byUsername(db, 'nobody')).toBeUndefined()
  })

  it('has secrets if they are fetched', async () => {
    const user = await addUserRow({ db }, 'sue')

    expect(await user.$relatedQuery('secrets', db)).toMatchObject({
      passwordHash: 'hash',
      sealedPrivateKey: Buffer.from('sealed'),
    })
  })

  it('has contacts in aspects', async () => {
    const user = await addUserRow({ db }, 'uma')
    const remotePerson = await addRemotePerson({ db }, 'sten@q.example')
    await user.$relatedQuery('aspects', db).insert([
      { name: 'Family', position: 1 },
      { name: 'Friends', position: 2 },
    ])
    const contact = await user
      .$relatedQuery('contacts', db)
      .insert({ personId: remotePerson.id, receiving: true })
      .returning('*')
    await contact.$relatedQuery('aspects', db).relate((await Aspect.query(db).findOne({ name: 'Friends' }))?.id ?? 0)

    const found = await User.query(db).findById(user.id).withGraphFetched('contacts.[person, aspects]')

    expect(found?.contacts).toMatchObject([
      { receiving: true, sharing: false, person: { address: 'sten@q.example' }, aspects: [{ name: 'Friends' }] },
    ])
  })
})

describe('a token', () => {
  const hashOf = (token: string) => createHash('sha256').update(token).digest()

  async function addToken(username: string, scopes: string[], expiresAt: Date | null = null) {
    const user = await addUserRow({ db }, username)
    const token = randomBytes(32).toString('hex')
    const authorization = await Authorization.query(db).insert({ userId: user.id, scopes }).returning('*')
    const { id } = await authorization
      .$relatedQuery<AccessToken>('accessTokens', db)
      .insert({ tokenHash: hashOf(token), expiresAt })
      .returning('*')
    return { user, token, id, authorization }
  }

  const holderOf = async (token: string) => (await AccessToken.findHoldersByHashes(db, [hashOf(token)])).get(0)

  it('has a holder and scopes', async () => {
    const { user, token, id, authorization } = await addToken('tia', ['profile', 'public:read'])

    expect(await holderOf(token)).toMatchObject({
      tokenId: id,
      userId: user.id,
      personId: user.personId,
      authorizationId: authorization.id,
      scopes: 'profile public:read',
      isExpired: false,
      isLocked: false,
      isClosed: false,
    })
  })

  it('has the scopes of its authorization', async () => {
    const { token, authorization } = await addToken('tim', ['profile'])

    await authorization.$query(db).patch({ scopes: ['notifications'] })

    expect(await holderOf(token)).toMatchObject({ scopes: 'notifications' })
  })

  it('shows that it has expired, and that its account is locked or closed', async () => {
    const past = new Date('2025-03-01T00:00:00Z')
    const { user, token } = await addToken('tom', [], past)
    await user.$query(db).patch({ lockedAt: past, closedAt: past })

    expect(await holderOf(token)).toMatchObject({
      isExpired: true,
      isLocked: true,
      isClosed: true,
    })
  })

  it('is valid until it expires', async () => {
    const { token } = await addToken('ted', [], new Date('2999-01-01T00:00:00Z'))

    expect(await holderOf(token)).toMatchObject({ isExpired: false })
  })

  it('has no holder if it is unknown', async () => {
    expect(await holderOf('unknown')).toBeUndefined()
  })

  it('is looked up together with others', async () => {
    const [una, uwe] = [await addToken('una', ['profile']), await addToken('uwe', ['notifications'])]

    const found = await AccessToken.findHoldersByHashes(db, [uwe.token, 'unknown', una.token].map(hashOf))

    expect([...found.keys()].sort()).toEqual([0, 2])
    expect([found.get(0)?.tokenId, found.get(2)?.tokenId]).toEqual([uwe.id, una.id])
  })
})

describe('the signed elements of an author', () => {
  it('are stored unchanged and in order, with unknown and empty elements', async () => {
    const author = await addRemotePerson({ db }, 'sig@q.example')
    const post = await addPost({ db }, { id: (await addUserRow({ db }, 'sam')).personId })
    const signedElements = [
      ['zebra', ' 1.0 '],
      ['author', 'sig@q.example'],
      ['text', '  a\r\nb; "𝒳" \u2028 '],
      ['0', ''],
    ] as const

    const comment = await Comment.query(db)
      .insert({
        guid: newGuid(),
        postId: post.id,
        authorId: author.id,
        text: 'a',
        authorSignature: 'c2ln',
        signedElements,
      })
      .returning('*')

    const found = await Comment.query(db).findById(comment.id).withGraphFetched('[author, post]')
    expect(found).toMatchObject({
      authorSignature: 'c2ln',
      signedElements,
      author: { id: author.id },
      post: { id: post.id },
    })
  })
})

describe('a notification', () => {
  it('has its actors in the order of their actions', async () => {
    const user = await addUserRow({ db }, 'nora')
    const post = await addPost({ db }, { id: user.personId })
    const [first, second, third] = await Promise.all(
      ['one', 'two', 'three'].map((name) => addRemotePerson({ db }, `${name}@n.example`)),
    )
    const notification = await Notification.query(db)
      .insert({ guid: newGuid(), userId: user.id, type: 'liked', postId: post.id })
      .returning('*')
    for (const person of [third, first, second]) {
      await db('notification_actors').insert({ notificationId: notification.id, personId: person?.id })
    }

    const found = await Notification.query(db).findById(notification.id).withGraphFetched('[actors.person, post]')

    expect(found?.actors?.map((actor) => actor.person?.id)).toEqual([third?.id, first?.id, second?.id])
    expect(found).toMatchObject({ targetId: post.id, post: { guid: post.guid }, read: false, superseded: false })
  })
})
