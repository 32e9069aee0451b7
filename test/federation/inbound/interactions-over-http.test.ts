import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import { decryptEnvelope } from '../../../src/protocol/envelopes/encrypted-envelope.js'
import { peekEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import type { RemotePodClient } from '../../../src/services/remote-pod-client.js'
import { outboundHandlers, outboundSlowHandlers, relayHandlers } from '../../../workers/handlers/outbound.js'
import {
  commentBy,
  likeBy,
  participationBy,
  pollWith,
  postBy,
  reshareBy,
  voteBy,
} from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { viewerOf } from '../../support/people/local-users.js'
import { type InboundPod, startInboundPod } from '../../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../../support/queues/queue-backends.js'

/** Deliveries go by https wherever that is the default, and the fake pods have no certificates. */
function withoutTls(remotePods: RemotePodClient): RemotePodClient {
  return {
    get: (url, options) => remotePods.get(url, options),
    post: (url, ...rest) => remotePods.post(String(url).replace(/^https:/, 'http:'), ...rest),
  }
}

describe.each(queueBackends)('interactions and posts from other pods, with the queue in $store', (backend) => {
  let stores: TestStores
  let fakePods: FakePods
  let pod: InboundPod
  let ann: TestPerson
  let ben: TestPerson
  let quin: FakePerson
  let remy: FakePerson
  /** What has been delivered, by host and path. */
  let delivered: Map<string, string[]>

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({
      fakePods,
      stores,
      environment: { PODMIN_ACCOUNT: 'ann' },
      handlers: { outbound: outboundHandlers, 'outbound-slow': outboundSlowHandlers, relay: relayHandlers },
      queues: [
        'inbound',
        'inbound-private',
        'fetch',
        'fetch-unproven',
        'maintenance',
        'outbound',
        'outbound-slow',
        'relay',
      ],
      change: (opened) => ({ ...opened, remotePods: withoutTls(opened.remotePods) }),
    })
    ;({ ann, ben } = await pod.people('ann', 'ben'))
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })
  beforeEach(async () => {
    quin = fakePods.person('quin@q.example')
    remy = fakePods.person('remy@r.example')
    delivered = new Map()
    for (const person of [quin, remy]) {
      await pod.addRemotePerson(person)
      const [, host] = person.address.split('@')
      takeDeliveries(`${host}/receive/public`)
      takeDeliveries(`${host}/receive/users/${person.guid}`)
    }
  })
  afterEach(async () => {
    await pod.waitUntilIdle()
    await pod.db.raw(
      'truncate posts, notifications, blocks, tags, outbound_messages, outbox, waiting, tombstones cascade',
    )
    await pod.db('people').whereNotNull('podId').delete()
  })

  function takeDeliveries(path: string): void {
    fakePods.script(path, async (request, response) => {
      const body = await text(request)
      delivered.set(path, [...(delivered.get(path) ?? []), body])
      response.statusCode = 202
      response.end()
    })
  }

  /** Received public envelopes, with signer and entity. */
  async function publicAt(host: string) {
    const envelopes = delivered.get(`${host}/receive/public`) ?? []
    return Promise.all(envelopes.map((envelope) => read(envelope)))
  }

  async function read(envelope: string) {
    const { sender } = peekEnvelope(envelope)
    const people = await Person.query(pod.db)
    const keys = new Map(people.map(({ address, publicKey }) => [address, readPublicKey(publicKey)] as const))
    const known = new Map([...keys].flatMap(([address, key]) => (key === undefined ? [] : [[address, key] as const])))
    const opened = verifyEnvelope(envelope, known, new Date())
    if (opened.state !== 'verified') throw new Error(`An envelope that was sent is ${opened.state}.`)
    return { sender, entity: opened.entity, signature: opened.signature }
  }

  async function published(person: TestPerson, input: Partial<Parameters<typeof publishPost>[2]> = {}): Promise<Post> {
    const post = await publishPost(pod, await viewerOf(pod, person), { text: 'Good morning', public: true, ...input })
    await pod.waitUntilIdle()
    return post
  }

  async function notificationTypes(person: TestPerson): Promise<readonly string[]> {
    return pod
      .db('notifications')
      .join('users', 'users.id', 'notifications.userId')
      .where({ username: person.account.username })
      .orderBy('notifications.id')
      .pluck('type')
  }

  const addressOf = ({ account }: TestPerson) => account.address

  it('a comment on a local post is relayed as it was signed, to participants but not to its sender', async () => {
    const post = await published(ann)
    await pod.postPublic(participationBy(remy, post), remy)
    await pod.waitUntilIdle()
    const comment = commentBy(quin, post, { text: '  a\r\nb; <&> 𝄞' })

    expect(await pod.postPublic(comment, quin)).toBe(202)
    await pod.postPublic(comment, quin)
    await pod.waitUntilIdle()

    expect(await publicAt('r.example')).toMatchObject([
      { sender: addressOf(ann), signature: 'valid', entity: { guid: comment.guid, text: comment.text } },
    ])
    expect(await publicAt('q.example')).toEqual([])
    expect(await notificationTypes(ann)).toEqual(['commented_on_post'])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 1 })
  })

  it('a comment of a blocked person is not stored; their pod receives a retraction', async () => {
    const post = await published(ann)
    const { userId } = await viewerOf(pod, ann)
    const { id: personId } = await Person.byAddress(pod.db, quin.address).throwIfNotFound()
    await pod.db('blocks').insert({ userId, personId })
    const comment = commentBy(quin, post)

    await pod.postPublic(comment, quin)
    await pod.waitUntilIdle()

    expect(await pod.rows('comments', 'notifications')).toEqual([0, 0])
    expect(await publicAt('q.example')).toMatchObject([
      {
        sender: addressOf(ann),
        entity: { type: 'retraction', author: quin.address, target_guid: comment.guid, target_type: 'Comment' },
      },
    ])
  })

  it('votes, likes of comments and reshares are counted once, and relayed once except the reshare', async () => {
    const post = await published(ann, { poll: { question: 'Nice?', answers: ['Yes', 'No'] } })
    await pod.postPublic(participationBy(remy, post), remy)
    await pod.waitUntilIdle()
    const { guid: pollGuid, id: pollId } = await pod.db('polls').first()
    const [yes, no] = await pod.db('pollAnswers').where({ pollId }).orderBy('position')
    const comment = commentBy(quin, post)
    const like = likeBy(quin, comment, { parent_type: 'Comment' })
    const vote = voteBy(quin, { guid: pollGuid }, yes)
    const reshare = reshareBy(quin, { guid: post.guid, author: addressOf(ann) })

    for (const entity of [like, comment, vote, reshare, like, vote]) await pod.postPublic(entity, quin)
    await pod.waitUntilIdle()
    await pod.postPublic(voteBy(quin, { guid: pollGuid }, no), quin)
    await pod.waitUntilIdle()

    expect(await pod.rows('comments', 'likes', 'poll_participations')).toEqual([1, 1, 1])
    expect(await pod.db('pollAnswers').orderBy('position').pluck('vote_count')).toEqual([1, 0])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 1, resharesCount: 1 })
    expect((await publicAt('r.example')).map(({ entity }) => entity.type).sort()).toEqual([
      'comment',
      'like',
      'poll_participation',
    ])
    expect([...(await notificationTypes(ann))].sort()).toEqual(['commented_on_post', 'reshared'])
  })

  it('a comment on a remote post is accepted only from the author of the post', async () => {
    const post = postBy(remy)
    const comment = commentBy(quin, post)
    await pod.postPublic(post, remy)
    await pod.waitUntilIdle()

    await pod.postPublic(comment, quin)
    await pod.waitUntilIdle()
    expect(await pod.rows('comments')).toEqual([0])

    await pod.postPublic(comment, remy)
    await pod.waitUntilIdle()
    expect(await pod.rows('comments')).toEqual([1])
  })

  it('a comment on an unknown post causes a fetch of the post from the pod of the sender', async () => {
    const post = postBy(remy)
    const comment = commentBy(quin, post)
    fakePods.serve(remy, post)
    fakePods.script(`q.example/fetch/post/${post.guid}`, (_request, response) => {
      response.writeHead(302, { location: `http://r.example/fetch/post/${post.guid}` }).end()
    })

    await pod.postPublic(comment, remy)
    await pod.waitUntilIdle()

    expect(await Post.query(pod.db)).toMatchObject([{ guid: post.guid }])
    expect(await Comment.query(pod.db)).toMatchObject([{ guid: comment.guid }])
  })

  it('a comment on a post that cannot be fetched waits until the post is received', async () => {
    const post = postBy(remy)
    const comment = commentBy(quin, post)

    await pod.postPublic(comment, remy)
    await pod.postPublic(post, remy)
    await pod.waitUntilIdle()

    expect(await Comment.query(pod.db)).toMatchObject([{ guid: comment.guid }])
  })

  it('a private post and its comment are stored for both recipients in any order of arrival', async () => {
    const post = postBy(remy, { public: false, text: `@{${addressOf(ann)}}` })
    const comment = commentBy(quin, post)

    for (const entity of [comment, post]) {
      expect(await pod.postPrivate(entity, remy, ann)).toBe(202)
      expect(await pod.postPrivate(entity, remy, ben)).toBe(202)
    }
    await pod.waitUntilIdle()

    expect(await pod.rows('posts', 'comments', 'post_visibilities')).toEqual([1, 1, 2])
    expect([await notificationTypes(ann), await notificationTypes(ben)]).toEqual([['mentioned'], []])
    expect([...delivered]).toEqual([])
  })

  it('a public post makes this pod send one participation to its author', async () => {
    const post = postBy(quin)

    await pod.postPublic(post, quin)
    await pod.postPublic(post, quin)
    await pod.postPublic(postBy(quin, { public: false }), quin)
    await pod.waitUntilIdle()

    const [body, ...more] = delivered.get(`q.example/receive/users/${quin.guid}`) ?? []
    expect(more).toEqual([])
    const envelope = decryptEnvelope(body ?? '', quin.privateKey)
    expect(await read(envelope ?? '')).toMatchObject({
      sender: addressOf(ann),
      entity: { type: 'participation', author: addressOf(ann), parent_guid: post.guid },
    })
  })

  it('posts that link to each other are fetched once each', async () => {
    const [one, two] = [postBy(remy), postBy(quin)]
    const linkTo = ({ author, guid }: typeof one) => `diaspora://${author}/post/${guid}`
    fakePods.serve(quin, { ...two, text: linkTo(one) })

    await pod.postPublic({ ...one, text: linkTo(two) }, remy)
    await pod.waitUntilIdle()

    expect(await pod.db('posts').orderBy('id').pluck('guid')).toEqual([one.guid, two.guid])
  })

  it('a post or comment of a local author is rejected when another pod sends it', async () => {
    const post = postBy(remy)
    const { id } = await Person.query(pod.db).findOne({ guid: ann.account.guid }).throwIfNotFound()
    const { guid, publicKey, address } = await Person.query(pod.db).findById(id).throwIfNotFound()
    const ownAnn = { guid, publicKey, address, privateKey: await loadPrivateKey(pod, id) }
    await pod.postPublic(post, remy)
    await pod.waitUntilIdle()

    await pod.postPublic(commentBy(ownAnn, post), remy)
    await pod.post('/receive/public', envelopeOf(ownAnn, postBy(ownAnn)))
    await pod.waitUntilIdle()

    expect(await pod.rows('posts', 'comments')).toEqual([1, 0])
  })

  it('a post is stored with its poll, answers, location, tags and mentions', async () => {
    const location = { type: 'location', address: 'Here', lat: '1.5', lng: '-2' } as const
    const post = postBy(quin, { poll: pollWith('Yes', 'No'), location, text: `#tag @{${addressOf(ann)}}` })

    await pod.postPublic(post, quin)
    await pod.waitUntilIdle()

    expect(await pod.rows('polls', 'poll_answers', 'locations', 'taggings', 'mentions')).toEqual([1, 2, 1, 1, 1])
    expect(await notificationTypes(ann)).toEqual(['mentioned'])
  })
})
