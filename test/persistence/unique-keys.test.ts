import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { isUniqueViolation } from '../../src/persistence/database/errors.js'
import { addPost, addUserRow } from '../support/databases/rows.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'
import { addRemotePerson } from '../support/people/remote-people.js'

type Row = Readonly<Record<string, unknown>>

interface UniqueKey {
  readonly key: string
  readonly table: string
  /** The columns in which a second row must equal the first to be refused. */
  readonly columns: readonly string[]
  /** A row to which the key applies. */
  readonly row: () => Row
}

const at = new Date('2025-03-01T08:15:30.250Z')
const hash = () => randomBytes(32)

describe('unique keys', () => {
  let database: OpenDatabase
  let db: Knex
  let ids: Awaited<ReturnType<typeof addEntities>>
  beforeAll(async () => {
    database = await openTestDatabase()
    db = database.db
    ids = await addEntities(db)
  })
  afterAll(() => database.close())

  const person = () => ({ guid: newGuid(), address: `${newGuid()}@q.example`, publicKey: 'key' })
  const post = () => ({ guid: newGuid(), authorId: ids.quin, type: 'StatusMessage', public: true })
  const reshare = () => ({ ...post(), type: 'Reshare', rootId: ids.post })
  const comment = () => ({ guid: newGuid(), authorId: ids.quin, postId: ids.post, text: 'Hi' })
  const like = () => ({ guid: newGuid(), authorId: ids.quin, postId: ids.post })
  const likeOfComment = () => ({ guid: newGuid(), authorId: ids.quin, commentId: ids.comment })
  const vote = () => ({ guid: newGuid(), authorId: ids.quin, pollId: ids.poll, pollAnswerId: ids.answer })
  const participation = () => ({ guid: newGuid(), authorId: ids.quin, postId: ids.post })
  const conversation = () => ({ guid: newGuid(), authorId: ids.quin, subject: 'Lunch' })
  const message = () => ({ guid: newGuid(), authorId: ids.quin, conversationId: ids.conversation, text: 'Hi' })
  const notification = () => ({ guid: newGuid(), userId: ids.user, type: 'liked', postId: ids.post })
  const delivery = () => ({ messageId: ids.outboundMessage, podId: ids.pod })

  const keys: readonly UniqueKey[] = [
    { key: 'people_address_key', table: 'people', columns: ['address'], row: person },
    { key: 'people_guid_key', table: 'people', columns: ['guid'], row: person },
    { key: 'posts_guid_key', table: 'posts', columns: ['guid'], row: post },
    { key: 'comments_guid_key', table: 'comments', columns: ['guid'], row: comment },
    {
      key: 'photos_guid_key',
      table: 'photos',
      columns: ['guid'],
      row: () => ({ guid: newGuid(), authorId: ids.quin, name: 'a.png' }),
    },
    {
      key: 'polls_guid_key',
      table: 'polls',
      columns: ['guid'],
      row: () => ({ guid: newGuid(), postId: ids.posts.pop(), question: 'Noon?' }),
    },
    {
      key: 'poll_answers_guid_once',
      table: 'poll_answers',
      columns: ['pollId', 'guid'],
      row: () => ({ guid: newGuid(), pollId: ids.poll, answer: 'no', position: 1 }),
    },
    { key: 'likes_guid_key', table: 'likes', columns: ['guid'], row: () => ({ ...like(), postId: ids.posts.pop() }) },
    { key: 'likes_post_once', table: 'likes', columns: ['authorId', 'postId'], row: like },
    { key: 'likes_comment_once', table: 'likes', columns: ['authorId', 'commentId'], row: likeOfComment },
    {
      key: 'poll_participations_guid_key',
      table: 'poll_participations',
      columns: ['guid'],
      row: () => ({ ...vote(), authorId: ids.people.pop() }),
    },
    {
      key: 'poll_participations_poll_id_author_id_key',
      table: 'poll_participations',
      columns: ['pollId', 'authorId'],
      row: vote,
    },
    {
      key: 'participations_post_id_author_id_key',
      table: 'participations',
      columns: ['authorId', 'postId'],
      row: participation,
    },
    { key: 'conversations_guid_key', table: 'conversations', columns: ['guid'], row: conversation },
    { key: 'messages_guid_key', table: 'messages', columns: ['guid'], row: message },
    {
      key: 'conversation_visibilities_pkey',
      table: 'conversation_visibilities',
      columns: ['conversationId', 'personId'],
      row: () => ({ conversationId: ids.conversation, personId: ids.quin, createdAt: at, updatedAt: at }),
    },
    { key: 'posts_reshare_once', table: 'posts', columns: ['authorId', 'rootId'], row: reshare },
    {
      key: 'contacts_user_id_person_id_key',
      table: 'contacts',
      columns: ['userId', 'personId'],
      row: () => ({ userId: ids.user, personId: ids.quin, sharing: true }),
    },
    {
      key: 'blocks_pkey',
      table: 'blocks',
      columns: ['userId', 'personId'],
      row: () => ({ userId: ids.user, personId: ids.quin }),
    },
    {
      key: 'reports_post_once',
      table: 'reports',
      columns: ['userId', 'postId'],
      row: () => ({ userId: ids.user, postId: ids.post, reason: newGuid(), reviewedAt: at }),
    },
    {
      key: 'reports_comment_once',
      table: 'reports',
      columns: ['userId', 'commentId'],
      row: () => ({ userId: ids.user, commentId: ids.comment, reason: newGuid() }),
    },
    {
      key: 'mentions_post_once',
      table: 'mentions',
      columns: ['postId', 'personId'],
      row: () => ({ postId: ids.post, personId: ids.quin, createdAt: new Date() }),
    },
    {
      key: 'mentions_comment_once',
      table: 'mentions',
      columns: ['commentId', 'personId'],
      row: () => ({ commentId: ids.comment, personId: ids.quin }),
    },
    {
      key: 'notifications_merging',
      table: 'notifications',
      columns: ['userId', 'type', 'postId'],
      row: notification,
    },
    {
      key: 'notifications_merging',
      table: 'notifications',
      columns: ['userId', 'type', 'commentId'],
      row: () => ({ ...notification(), type: 'liked_comment', commentId: ids.comment }),
    },
    {
      key: 'notifications_merging',
      table: 'notifications',
      columns: ['userId', 'type', 'personId'],
      row: () => ({ guid: newGuid(), userId: ids.user, type: 'started_sharing', personId: ids.quin }),
    },
    {
      key: 'notifications_mention_once',
      table: 'notifications',
      columns: ['mentionId'],
      row: () => ({ ...notification(), type: 'mentioned', mentionId: ids.mention, read: true }),
    },
    {
      key: 'notifications_birthday_once',
      table: 'notifications',
      columns: ['userId', 'personId', 'day'],
      row: () => ({
        guid: newGuid(),
        userId: ids.user,
        type: 'contacts_birthday',
        personId: ids.quin,
        day: '2025-03-01',
        read: true,
      }),
    },
    {
      key: 'notification_actors_pkey',
      table: 'notification_actors',
      columns: ['notificationId', 'personId'],
      row: () => ({ notificationId: ids.notification, personId: ids.quin }),
    },
    { key: 'pods_host_port_key', table: 'pods', columns: ['host', 'port'], row: () => ({ host: 'r.example' }) },

    { key: 'users_username_key', table: 'users', columns: ['username'], row: newUser },
    { key: 'users_email', table: 'users', columns: ['email'], row: () => ({ ...newUser(), email: 'A@b.example' }) },
    {
      key: 'aspects_name',
      table: 'aspects',
      columns: ['userId'],
      row: () => ({ userId: ids.user, position: 1, name: ids.friends.pop() }),
    },
    {
      key: 'authorizations_user_id_client_id_key',
      table: 'authorizations',
      columns: ['userId', 'clientId'],
      row: () => ({ userId: ids.user, clientId: ids.client, scopes: ['profile'] }),
    },
    {
      key: 'access_tokens_token_hash_key',
      table: 'access_tokens',
      columns: ['tokenHash'],
      row: () => ({ authorizationId: ids.authorization, tokenHash: hash() }),
    },
    {
      key: 'refresh_tokens_token_hash_key',
      table: 'refresh_tokens',
      columns: ['tokenHash'],
      row: () => ({ authorizationId: ids.authorization, tokenHash: hash(), expiresAt: at }),
    },
    {
      key: 'authorization_codes_code_hash_key',
      table: 'authorization_codes',
      columns: ['codeHash'],
      row: () => ({ authorizationId: ids.authorization, codeHash: hash(), expiresAt: at }),
    },
    {
      key: 'waiting_digest_key',
      table: 'waiting',
      columns: ['digest'],
      row: () => ({ waitsFor: newGuid(), name: 'receive-public', payload: 'x', acceptedAt: at, digest: hash() }),
    },
    {
      key: 'outbound_messages_once',
      table: 'outbound_messages',
      columns: ['record', 'guid', 'verb'],
      row: () => ({ ...outboundMessage(ids.quin), guid: newGuid() }),
    },
    { key: 'deliveries_once', table: 'deliveries', columns: ['messageId', 'podId'], row: delivery },
    {
      key: 'deliveries_once',
      table: 'deliveries',
      columns: ['messageId', 'podId', 'personId'],
      row: () => ({ ...delivery(), personId: ids.quin }),
    },
    {
      key: 'tombstones_pkey',
      table: 'tombstones',
      columns: ['targetType', 'guid', 'deletedById'],
      row: () => ({ targetType: 'Post', guid: newGuid(), deletedById: ids.quin }),
    },
  ]

  function newUser(): Row {
    return { username: newGuid(), personId: ids.people.pop() }
  }

  it.each(keys)('$key refuses a second row of $table with the same $columns', async ({ key, table, columns, row }) => {
    const one = row()
    const other = { ...row(), ...Object.fromEntries(columns.map((column) => [column, one[column]])) }

    expect(await insertBoth(db, table, one, other)).toSatisfy((error) => isUniqueViolation(error, key))
  })

  const differing: readonly (readonly [behaviour: string, table: string, one: () => Row, other: () => Row])[] = [
    ['a guid that differs only in its letters', 'posts', () => withGuid('a'), () => withGuid('A')],
    [
      'the same notification once the first is read',
      'notifications',
      () => ({ ...notification(), read: true }),
      notification,
    ],
    [
      'an older notification marked unread beside a newer one',
      'notifications',
      () => ({ ...notification(), superseded: true }),
      notification,
    ],
    [
      'a birthday in the next year, although the last is unread',
      'notifications',
      () => birthday('2025-03-01'),
      () => birthday('2026-03-01'),
    ],
    [
      'two tokens of the operator for one user',
      'authorizations',
      () => ({ userId: ids.user, scopes: ['profile'] }),
      () => ({ userId: ids.user, scopes: [] }),
    ],
    ['a second profile to be sent', 'outbound_messages', () => profileToSend(), () => profileToSend()],
    [
      'a retraction beside the creation',
      'outbound_messages',
      () => ({ ...outboundMessage(ids.quin), guid: ids.guid }),
      () => ({ ...outboundMessage(ids.quin), guid: ids.guid, verb: 'retract' }),
    ],
    [
      'a retraction of the same entity by another person',
      'tombstones',
      () => ({ targetType: 'Post', guid: ids.guid, deletedById: ids.quin }),
      () => ({ targetType: 'Post', guid: ids.guid, deletedById: ids.people[0] }),
    ],
    [
      'reshares whose root is gone',
      'posts',
      () => ({ ...reshare(), rootId: null }),
      () => ({ ...reshare(), rootId: null }),
    ],
    [
      'private deliveries to two people of one pod',
      'deliveries',
      () => ({ ...delivery(), personId: ids.people[0] }),
      () => ({ ...delivery(), personId: ids.people[1] }),
    ],
  ]

  it.each(differing)('allow %s', async (_behaviour, table, one, other) => {
    expect(await insertBoth(db, table, one(), other())).toBeUndefined()
  })

  const withGuid = (letter: string) => ({ ...post(), guid: letter.repeat(32) })
  const birthday = (day: string) => ({
    guid: newGuid(),
    userId: ids.user,
    type: 'contacts_birthday',
    personId: ids.quin,
    day,
  })
  const profileToSend = () => ({ ...outboundMessage(ids.quin), record: 'profile', guid: ids.guid })
})

function outboundMessage(senderId: number) {
  return { record: 'comment', verb: 'create', senderId, public: true, entity: '<comment/>' }
}

/** Inserts both rows and rolls back. Returns the error of the second row, if any. */
async function insertBoth(db: Knex, table: string, one: Row, other: Row): Promise<unknown> {
  const transaction = await db.transaction()
  try {
    await transaction(table).insert(one)
    return await transaction(table)
      .insert(other)
      .then(
        () => undefined,
        (error: unknown) => error,
      )
  } finally {
    await transaction.rollback()
  }
}

async function addEntities(db: Knex) {
  const alice = await addUserRow({ db }, 'alice')
  const quin = await addRemotePerson({ db }, 'quin@q.example')
  const post = await addPost({ db }, { id: alice.personId })
  const idOf = async (table: string, row: Row): Promise<number> => (await db(table).insert(row).returning('id'))[0].id
  const poll = await idOf('polls', { guid: newGuid(), postId: post.id, question: 'Noon?' })
  const comment = await idOf('comments', { guid: newGuid(), postId: post.id, authorId: quin.id, text: 'Hi' })
  const client = await idOf('clients', { clientId: newGuid(), redirectUris: ['https://app.example/'] })
  return {
    guid: newGuid(),
    user: alice.id,
    quin: quin.id,
    pod: quin.podId,
    post: post.id,
    comment,
    poll,
    client,
    answer: await idOf('poll_answers', { guid: newGuid(), pollId: poll, answer: 'yes', position: 0 }),
    conversation: await idOf('conversations', { guid: newGuid(), authorId: quin.id, subject: 'Lunch' }),
    mention: await idOf('mentions', { personId: alice.personId, postId: post.id, createdAt: post.createdAt }),
    notification: await idOf('notifications', { guid: newGuid(), userId: alice.id, type: 'reshared', postId: post.id }),
    authorization: await idOf('authorizations', { userId: alice.id, scopes: [] }),
    outboundMessage: await idOf('outbound_messages', { ...outboundMessage(alice.personId), guid: newGuid() }),
    /** For rows that need a post or person of their own. */
    posts: await Promise.all(Array.from({ length: 6 }, async () => (await addPost({ db }, { id: alice.personId })).id)),
    people: await Promise.all(
      Array.from({ length: 12 }, async () => (await addRemotePerson({ db }, `${newGuid()}@q.example`)).id),
    ),
    friends: ['Friends', 'friends'],
  }
}
