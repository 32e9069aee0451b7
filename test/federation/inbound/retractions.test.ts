import { createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import type { InboundMessage } from '../../../src/federation/inbound/batch.js'
import { receiveBatch } from '../../../src/federation/inbound/receive-batch.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import { Contact } from '../../../src/persistence/models/contact.js'
import { Participation } from '../../../src/persistence/models/participation.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import { User } from '../../../src/persistence/models/user.js'
import { destroyEntities } from '../../../src/persistence/posts/destroy-entities.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { RetractionEntity } from '../../../src/protocol/entities/retraction.js'
import { writeEncryptedEnvelope } from '../../../src/protocol/envelopes/encrypted-envelope.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { participationBy, postBy } from '../../support/federation/entities.js'
import { signedBy } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { publicMessage } from '../../support/federation/inbound-messages.js'
import { sentAbout } from '../../support/federation/outbound-messages.js'
import { addRemotePerson, type RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: User
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  await createUser(pod, { username: 'ann', password: 'the password of ann' })
  ann = await User.byUsername(pod.db, 'ann').throwIfNotFound()
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, photos, conversations, contacts, outbound_messages, outbox, waiting, tombstones')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

function retraction(type: RetractionEntity['target_type'], guid: string, author: string): RetractionEntity {
  return { type: 'retraction', author, target_guid: guid, target_type: type }
}

async function receive(...messages: readonly InboundMessage[]) {
  const { waiting, rejected, ignored, givenUp } = await receiveBatch(pod, messages)
  return {
    waiting: waiting.map(({ waitsFor, maxWaitSeconds }) => [waitsFor, maxWaitSeconds]),
    rejected: rejected.map(({ fault }) => fault),
    ignored: ignored.length,
    givenUp: givenUp.length,
  }
}

const done = { waiting: [], rejected: [], ignored: 0, givenUp: 0 }
const ownPost = (fields: Partial<Post> = {}) => addPost(pod, { id: ann.personId }, fields)

/** Of what was relayed long ago: nothing of that is left here. */
const createdAt = new Date('2024-05-06T07:08:09Z')

async function commentBy(
  author: { readonly id: number },
  post: Post,
  fields: Partial<Comment> = { createdAt },
): Promise<Comment> {
  await pod.db('posts').where({ id: post.id }).increment('commentsCount', 1)
  return Comment.query(pod.db)
    .insert({ guid: newGuid(), authorId: author.id, postId: post.id, text: 'Hi', ...fields })
    .returning('*')
}

async function follow(post: Post, ...people: readonly RemotePerson[]): Promise<void> {
  const rows = people.map(({ id }) => ({ guid: newGuid(), postId: post.id, authorId: id }))
  await Participation.query(pod.db).insert(rows)
}

const commentUnder = (parent: string) =>
  ({
    type: 'comment',
    author: quin.address,
    guid: newGuid(),
    parent_guid: parent,
    text: 'Hi',
    created_at: new Date('2024-05-06T08:08:09Z'),
  }) as const

describe('a retraction of a post', () => {
  it('by its author deletes comments and notifications, and leaves reshares without a root', async () => {
    const post = await addPost(pod, quin)
    const reshare = await addPost(pod, remy, { type: 'Reshare', text: '', rootId: post.id })
    await commentBy(remy, post)
    await pod.db('notifications').insert({ guid: newGuid(), userId: ann.id, type: 'also_commented', postId: post.id })

    expect(await receive(publicMessage(quin, retraction('Post', post.guid, quin.address)))).toEqual(done)

    expect(await Post.query(pod.db).select('id', 'rootId')).toEqual([{ id: reshare.id, rootId: null }])
    expect(await pod.rows('comments', 'notifications')).toEqual([0, 0])
    expect(await pod.db('tombstones')).toMatchObject([{ targetType: 'Post', guid: post.guid, deletedById: quin.id }])
  })

  it('by another person changes nothing', async () => {
    const post = await addPost(pod, quin)

    expect(await receive(publicMessage(remy, retraction('Post', post.guid, quin.address)))).toMatchObject({
      rejected: ['InvalidSender'],
    })
    expect(await receive(publicMessage(remy, retraction('Post', post.guid, remy.address)))).toMatchObject({
      rejected: ['InvalidSender'],
    })
    expect(await pod.rows('posts', 'tombstones')).toEqual([1, 0])
  })

  it('that is a reshare lowers the count of its root', async () => {
    const root = await ownPost({ resharesCount: 2 })
    const reshare = await addPost(pod, quin, { type: 'Reshare', text: '', rootId: root.id })

    expect(await receive(publicMessage(quin, retraction('Reshare', reshare.guid, quin.address)))).toEqual(done)

    expect(await Post.query(pod.db).findById(root.id)).toMatchObject({ resharesCount: 1 })
  })

  it('cannot delete a local post, in any form', async () => {
    const post = await ownPost()

    expect(await receive(publicMessage(quin, retraction('Post', post.guid, quin.address)))).toMatchObject({
      rejected: ['InvalidSender'],
    })
    expect(await pod.rows('posts')).toEqual([1])
  })
})

describe('a retraction of a comment', () => {
  it('on a local post is relayed, signed by the author of the post, but not to its sender', async () => {
    const post = await ownPost()
    await follow(post, quin, remy)
    const { guid } = await commentBy(quin, post)
    await commentBy(remy, post)

    expect(await receive(publicMessage(quin, retraction('Comment', guid, quin.address)))).toEqual(done)

    const [sent, ...more] = await sentAbout(pod, guid)
    expect(more).toEqual([])
    expect(sent).toMatchObject({ verb: 'retract', public: true, senderId: ann.personId, to: ['r.example'] })
    expect(sent?.entity).toContain(`<author>${quin.address}</author>`)
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 1 })
    expect(await Participation.query(pod.db)).toHaveLength(2)
  })

  it('is relayed to no pod if no job has dispatched the comment', async () => {
    const post = await ownPost()
    await follow(post, remy)
    const { guid } = await commentBy(quin, post, { createdAt: new Date() })

    expect(await receive(publicMessage(quin, retraction('Comment', guid, quin.address)))).toEqual(done)

    expect(await sentAbout(pod, guid)).toEqual([])
  })

  it.each([
    ['no pod to which the comment was not sent', {}, []],
    ['a pod to which the comment may have been sent', { lastFault: 'timeout' }, ['r.example']],
  ])('is relayed to %s', async (_, delivery, to) => {
    const post = await ownPost()
    await follow(post, remy)
    const { guid } = await commentBy(quin, post, { createdAt: new Date() })
    const message = { record: 'comment', guid, verb: 'create', senderId: ann.personId, public: true, entity: '<x/>' }
    const [{ id: messageId }] = await pod.db('outboundMessages').insert(message).returning('id')
    const { podId } = await Person.query(pod.db).findById(remy.id).throwIfNotFound()
    await pod.db('deliveries').insert({ messageId, podId, ...delivery })

    expect(await receive(publicMessage(quin, retraction('Comment', guid, quin.address)))).toEqual(done)

    expect(await sentAbout(pod, guid)).toMatchObject([{ verb: 'retract', to }])
  })

  it('is relayed to mentioned people', async () => {
    const post = await ownPost()
    const { id, guid } = await commentBy(quin, post)
    await pod.db('mentions').insert({ personId: remy.id, commentId: id })

    await receive(publicMessage(quin, retraction('Comment', guid, quin.address)))

    expect(await sentAbout(pod, guid)).toMatchObject([{ to: ['r.example'] }])
  })

  it('is relayed once when it arrives repeatedly', async () => {
    const post = await ownPost()
    await follow(post, remy)
    const { guid } = await commentBy(quin, post)
    const twice = [1, 2].map(() => publicMessage(quin, retraction('Comment', guid, quin.address)))

    expect(await receive(...twice)).toEqual(done)
    expect(await receive(...twice)).toEqual({ ...done, ignored: 2 })

    expect(await sentAbout(pod, guid)).toHaveLength(1)
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 0 })
  })

  it('may come from the author of the post, with the comment author as author', async () => {
    const post = await addPost(pod, remy)
    const { guid } = await commentBy(quin, post)

    expect(await receive(publicMessage(remy, retraction('Comment', guid, quin.address)))).toEqual(done)

    expect(await pod.rows('comments', 'outbound_messages')).toEqual([0, 0])
  })

  it('may not come from other readers', async () => {
    const { guid } = await commentBy(quin, await ownPost())

    expect(await receive(publicMessage(remy, retraction('Comment', guid, quin.address)))).toMatchObject({
      rejected: ['InvalidSender'],
    })
    expect(await pod.rows('comments')).toEqual([1])
  })

  it('cancels a pending relay of the comment', async () => {
    const post = await ownPost()
    const { guid } = await commentBy(quin, post)
    const creation = { record: 'comment', guid, verb: 'create', senderId: ann.personId, public: true, entity: '<x/>' }
    await pod.db('outboundMessages').insert(creation)

    await receive(publicMessage(quin, retraction('Comment', guid, quin.address)))

    expect(await sentAbout(pod, guid)).toEqual([])
  })
})

describe('a retraction of another entity', () => {
  it('a retraction of a like lowers the counter of its parent, and is relayed', async () => {
    const post = await ownPost({ likesCount: 2 })
    const comment = await commentBy(remy, post)
    await pod.db('comments').where({ id: comment.id }).update({ likesCount: 1 })
    await follow(post, remy)
    const [first, second, disliked] = [newGuid(), newGuid(), newGuid()]
    await pod.db('likes').insert([
      { guid: first, authorId: quin.id, postId: post.id, createdAt },
      { guid: second, authorId: quin.id, commentId: comment.id },
      { guid: disliked, authorId: remy.id, postId: post.id, positive: false },
    ])

    expect(await receive(publicMessage(quin, retraction('Like', second, quin.address)))).toEqual(done)
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ likesCount: 2 })
    expect(await Comment.query(pod.db).findById(comment.id)).toMatchObject({ likesCount: 0 })

    // The dislike was never counted.
    expect(
      await receive(
        publicMessage(quin, retraction('Like', first, quin.address)),
        publicMessage(remy, retraction('Like', disliked, remy.address)),
      ),
    ).toEqual(done)
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ likesCount: 1 })
    expect(await sentAbout(pod, first)).toMatchObject([{ senderId: ann.personId, to: ['r.example'] }])
  })

  it('a retraction of a vote lowers the counter of its answer, and is relayed', async () => {
    const post = await ownPost()
    await follow(post, remy)
    const [poll] = await pod.db('polls').insert({ guid: newGuid(), postId: post.id, question: 'Tea?' }).returning('id')
    const answer = { guid: newGuid(), pollId: poll.id, position: 0, answer: 'Yes', voteCount: 2 }
    const [{ id: pollAnswerId }] = await pod.db('pollAnswers').insert(answer).returning('id')
    const guid = newGuid()
    await pod.db('pollParticipations').insert({ guid, pollId: poll.id, pollAnswerId, authorId: quin.id, createdAt })

    expect(await receive(publicMessage(quin, retraction('PollParticipation', guid, quin.address)))).toEqual(done)

    expect(await pod.db('pollAnswers')).toMatchObject([{ voteCount: 1 }])
    expect(await sentAbout(pod, guid)).toMatchObject([{ verb: 'retract', to: ['r.example'] }])
  })

  it('a retraction of a poll keeps its post', async () => {
    const post = await addPost(pod, quin)
    const guid = newGuid()
    await pod.db('polls').insert({ guid, postId: post.id, question: 'Tea?' })

    expect(await receive(publicMessage(quin, retraction('Poll', guid, quin.address)))).toEqual(done)

    expect(await pod.rows('polls', 'posts')).toEqual([0, 1])
  })

  it('a retraction of a photo deletes a post without other content', async () => {
    const [worded, wordless] = [await addPost(pod, quin), await addPost(pod, quin, { text: '' })]
    const guids = [newGuid(), newGuid()]
    const photos = [worded, wordless].map(({ id }, index) => {
      return { guid: guids[index], authorId: quin.id, postId: id, name: 'one.jpg', remotePath: 'https://q.example/' }
    })
    await pod.db('photos').insert(photos)

    expect(await receive(...guids.map((guid) => publicMessage(quin, retraction('Photo', guid, quin.address))))).toEqual(
      done,
    )

    expect(await Post.query(pod.db)).toMatchObject([{ id: worded.id }])
  })

  it('a retraction of a participation ends it', async () => {
    const post = await ownPost()
    await follow(post, quin)
    const { guid } = await Participation.query(pod.db).findOne({ authorId: quin.id }).throwIfNotFound()

    expect(await receive(publicMessage(quin, retraction('Participation', guid, quin.address)))).toEqual(done)

    expect(await pod.rows('participations')).toEqual([0])
  })

  it('a retraction of a conversation deletes it with its messages for all participants', async () => {
    const [row] = await pod
      .db('conversations')
      .insert({ guid: newGuid(), authorId: quin.id, subject: 'Tea' })
      .returning('*')
    const { id: conversationId, guid, createdAt, updatedAt } = row
    await pod.db('messages').insert({ guid: newGuid(), conversationId, authorId: quin.id, text: 'Tea?' })
    const visibility = { conversationId, personId: ann.personId, createdAt, updatedAt }
    await pod.db('conversationVisibilities').insert(visibility)

    expect(await receive(publicMessage(quin, retraction('Conversation', guid, quin.address)))).toEqual(done)

    expect(await pod.rows('conversations', 'messages', 'conversation_visibilities')).toEqual([0, 0, 0])
  })

  it('a batch of retractions of many entities keeps all counters right', async () => {
    const post = await ownPost({ likesCount: 20 })
    const comments = await Promise.all(Array.from({ length: 20 }, () => commentBy(quin, post)))
    const likes = await Promise.all(
      comments.map(async (_comment, index) => {
        const { id } = await addRemotePerson(pod, `liker${index}@l.example`)
        const [like] = await pod.db('likes').insert({ guid: newGuid(), authorId: id, postId: post.id }).returning('*')
        return like
      }),
    )
    await pod.db('likes').update({ authorId: quin.id }).where({ id: likes[0].id })

    await Promise.all([
      receive(
        ...comments.slice(0, 12).map(({ guid }) => publicMessage(quin, retraction('Comment', guid, quin.address))),
      ),
      receive(
        ...comments.slice(8, 19).map(({ guid }) => publicMessage(quin, retraction('Comment', guid, quin.address))),
      ),
      receive(publicMessage(quin, retraction('Like', likes[0].guid, quin.address))),
    ])

    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 1, likesCount: 19 })
  })
})

describe('a retraction of an unknown entity', () => {
  it('waits for an hour, and keeps its target away', async () => {
    const guid = newGuid()

    expect(await receive(publicMessage(quin, retraction('Post', guid, quin.address)))).toEqual({
      ...done,
      waiting: [[`post:${guid}`, 3_600]],
    })
    expect(await receive(publicMessage(quin, postBy(quin, { guid })))).toEqual({ ...done, ignored: 1 })
    expect(await pod.rows('posts', 'waiting')).toEqual([0, 1])

    const [{ seconds }] = await pod
      .db('waiting')
      .select(pod.db.raw('extract(epoch from due_at - now())::float as seconds'))
    expect(seconds).toBeGreaterThan(3_500)
    expect(seconds).toBeLessThanOrEqual(3_600)
  })

  it.each(['a local user', 'its sender'])(
    'rejects answers to entities that %s has deleted, without a request',
    async (by) => {
      const [post, author] = by === 'its sender' ? [await addPost(pod, quin), quin] : [await ownPost(), undefined]
      const comment = commentUnder(post.guid)
      const deleter = author ?? (await Person.query(pod.db).findById(ann.personId).throwIfNotFound())
      await pod.db('tombstones').insert({ targetType: 'Post', guid: post.guid, deletedById: deleter.id })
      await pod.db('posts').where({ id: post.id }).delete()

      expect(await receive(publicMessage(quin, comment))).toEqual({ ...done, ignored: 1 })
      expect(await pod.rows('outbox', 'waiting')).toEqual([0, 0])
    },
  )

  it('a retraction of an unknown post by a third person does not block interactions', async () => {
    const guid = newGuid()
    await pod.db('tombstones').insert({ targetType: 'Post', guid, deletedById: remy.id })

    expect(await receive(publicMessage(quin, commentUnder(guid)))).toMatchObject({
      waiting: [[`post:${guid}`, undefined]],
    })
  })

  it('waits for a participation too', async () => {
    const post = await ownPost()
    const participation = participationBy(quin, post)

    expect(
      await receive(publicMessage(quin, retraction('Participation', participation.guid, quin.address))),
    ).toMatchObject({
      waiting: [[`participation:${participation.guid}`, 3_600]],
    })
    expect(await receive(publicMessage(quin, participation))).toEqual({ ...done, ignored: 1 })
    expect(await pod.rows('participations')).toEqual([0])
  })

  it('does not keep away an entity of another author', async () => {
    const guid = newGuid()
    await receive(publicMessage(remy, retraction('Post', guid, remy.address)))

    expect(await receive(publicMessage(quin, postBy(quin, { guid })))).toEqual(done)

    expect(await Post.query(pod.db)).toMatchObject([{ guid, authorId: quin.id }])
  })

  it('keeps a comment away if the author of the post has sent it, and not if another person has', async () => {
    const post = await addPost(pod, remy)
    const [unwanted, welcome] = [1, 2].map(() => signedBy(quin, commentUnder(post.guid)))
    if (unwanted === undefined || welcome === undefined) throw new Error('There are two.')
    const sam = await pod.addRemotePerson('sam@s.example')
    await receive(
      publicMessage(remy, retraction('Comment', unwanted.guid, quin.address)),
      publicMessage(sam, retraction('Comment', welcome.guid, quin.address)),
    )

    expect(await receive(publicMessage(remy, unwanted), publicMessage(remy, welcome))).toEqual({ ...done, ignored: 1 })

    expect(await Comment.query(pod.db)).toMatchObject([{ guid: welcome.guid }])
  })

  it('ends without a dead letter when its time is over', async () => {
    const guid = newGuid()
    const late = publicMessage(quin, retraction('Post', guid, quin.address))
    await receive(late)
    const [{ id }] = await pod.db('outbox').insert({ queue: 'inbound', name: 'receive-public' }).returning('id')

    expect(await receive({ ...late, resumed: { outboxId: id, times: 1, last: true } })).toEqual({ ...done, ignored: 1 })
  })

  it('finds a target in the same batch', async () => {
    const guid = newGuid()

    expect(
      await receive(
        publicMessage(quin, retraction('Post', guid, quin.address)),
        publicMessage(quin, postBy(quin, { guid })),
      ),
    ).toEqual(done)
    expect(await pod.rows('posts', 'tombstones', 'waiting')).toEqual([0, 1, 0])
  })
})

describe('a batch of retractions', () => {
  const retractionsUnder = async (post: Post, count: number): Promise<readonly InboundMessage[]> => {
    const comments = await Promise.all(Array.from({ length: count }, () => commentBy(quin, post)))
    return comments.map(({ guid }) => publicMessage(remy, retraction('Comment', guid, quin.address)))
  }

  it('needs as many statements for a hundred as for two', async () => {
    const post = await addPost(pod, remy)
    const [few, many] = [await retractionsUnder(post, 2), await retractionsUnder(post, 100)]

    const forFew = await statementsDuring(() => receive(...few), 'worker')
    const forMany = await statementsDuring(() => receive(...many), 'worker')

    expect(forMany).toBe(forFew)
    expect(await pod.rows('comments', 'tombstones')).toEqual([0, 102])
  })
})

describe('a comment that arrives while its post is being deleted', () => {
  it('is not stored, and delays no other message', async () => {
    const [going, staying] = [await ownPost(), await ownPost()]
    const comments = [going, staying].map(({ guid }) => signedBy(quin, commentUnder(guid)))

    let receiving: ReturnType<typeof receive> | undefined
    await pod.db.transaction(async (transaction) => {
      await destroyEntities(transaction, 'post', [going.id])
      receiving = receive(...comments.map((comment) => publicMessage(quin, comment)))
      await vi.waitFor(async () => {
        const { rows } = await pod.db.raw(`select from pg_stat_activity
          where wait_event_type = 'Lock' and datname = current_database() and query like '%with input as%'`)
        expect(rows).toHaveLength(1)
      })
    })

    expect(await receiving).toMatchObject({ rejected: [], givenUp: 0 })
    expect(await Comment.query(pod.db)).toMatchObject([{ guid: comments[1]?.guid }])
  })
})

describe('a retraction of a person', () => {
  const privately = async (signer: FakePerson, entity: Entity): Promise<InboundMessage> => {
    const { guid, publicKey } = await Person.query(pod.db).findById(ann.personId).throwIfNotFound()
    const { envelope, ...rest } = publicMessage(signer, entity)
    return { ...rest, envelope: writeEncryptedEnvelope(envelope, createPublicKey(publicKey)), recipientGuid: guid }
  }
  const contacts = () => Contact.query(pod.db).select('personId', 'sharing', 'receiving')

  it('ends sharing with the user', async () => {
    await Contact.query(pod.db).insert([
      { userId: ann.id, personId: quin.id, sharing: true, receiving: true },
      { userId: ann.id, personId: remy.id, sharing: true },
    ])
    await pod
      .db('notifications')
      .insert({ guid: newGuid(), userId: ann.id, type: 'started_sharing', personId: remy.id })

    expect(
      await receive(
        await privately(quin, retraction('Person', quin.guid, quin.address)),
        await privately(remy, retraction('Person', remy.guid, remy.address)),
      ),
    ).toEqual(done)

    expect(await contacts()).toEqual([{ personId: quin.id, sharing: false, receiving: true }])
    expect(await pod.rows('notifications', 'tombstones')).toEqual([0, 0])
  })

  it('must be private, and by themselves', async () => {
    await Contact.query(pod.db).insert({ userId: ann.id, personId: quin.id, sharing: true })

    expect(await receive(publicMessage(quin, retraction('Person', quin.guid, quin.address)))).toMatchObject({
      rejected: ['NotPublic'],
    })
    expect(await receive(await privately(remy, retraction('Person', quin.guid, quin.address)))).toMatchObject({
      rejected: ['InvalidSender'],
    })
    expect(await contacts()).toHaveLength(1)
  })
})
