import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { readPodActivity } from '../../../src/domain/operations/pods.js'
import type { InboundMessage } from '../../../src/federation/inbound/batch.js'
import { receiveBatch } from '../../../src/federation/inbound/receive-batch.js'
import { savePodActivity } from '../../../src/jobs/operations/pod-activity.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import type { ReshareEntity, StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { openRecordedLog } from '../../support/assertions/recorded-log.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { photoBy, postBy, reshareBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { privateMessage } from '../../support/federation/inbound-messages.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let quin: FakePerson
let remy: FakePerson
beforeAll(async () => {
  pod = await openFederationPod()
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('people, pods, tags, outbox, waiting')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

const acceptedAt = new Date('2026-01-02T03:04:05Z')

function message(envelope: string): InboundMessage {
  return { envelope, acceptedAt }
}

/** Nothing is done with it anywhere in the network. */
function eventBy({ address }: FakePerson) {
  const start = new Date('2026-06-07T18:00:00Z')
  return { type: 'event' as const, author: address, guid: newGuid(), summary: 'A party', start, all_day: false }
}

function pollWith(answers: readonly string[], guid = newGuid()) {
  const pollAnswers = answers.map((text) => ({ type: 'poll_answer' as const, guid: newGuid(), answer: text }))
  return { type: 'poll' as const, guid, question: 'Nice?', poll_answers: pollAnswers }
}

/** As each of them would send it. */
function messagesOf(...entities: readonly (StatusMessageEntity | ReshareEntity)[]): InboundMessage[] {
  const people = new Map([quin, remy].map((person) => [person.address, person]))
  return entities.map((entity) => {
    const author = people.get(entity.author)
    if (author === undefined) throw new Error('No author has these keys.')
    return message(envelopeOf(author, entity))
  })
}

async function receive(...messages: readonly InboundMessage[]) {
  const { waiting, rejected, ignored } = await receiveBatch(pod, messages)
  return {
    waiting: waiting.map(({ waitsFor }) => waitsFor),
    rejected: rejected.map(({ fault }) => fault),
    ignored: ignored.length,
  }
}

const nothing = { waiting: [], rejected: [], ignored: 0 }
const guids = () => pod.db('posts').orderBy('guid').pluck('guid')

describe('a batch', () => {
  it('counts received and rejected messages for the pods of their senders, once each', async () => {
    const unknownSender = pod.fakePods.person('unknown@s.example')
    const forged = message(envelopeOf({ ...remy, address: quin.address }, postBy(quin)))
    await receive(
      ...messagesOf(postBy(quin), postBy(quin)),
      forged,
      message(envelopeOf(unknownSender, postBy(unknownSender))),
    )

    await savePodActivity(pod)
    await savePodActivity(pod)
    const { podId } = await pod.db('people').where({ address: quin.address }).first('podId')
    expect((await readPodActivity(pod, podId)).days).toMatchObject([{ received: 2, refused: 1, delivered: 0 }])
  })

  it('gives each of its messages its own outcome', async () => {
    const entities = [postBy(quin), postBy(remy), postBy(quin)]
    const unknownPerson = pod.fakePods.person('unknown@s.example')
    const messages = [
      ...messagesOf(...entities),
      message(envelopeOf(unknownPerson, postBy(unknownPerson))),
      message('no envelope'),
      message(''),
      message(envelopeOf({ ...remy, address: quin.address }, postBy(quin))),
      message(envelopeOf(remy, postBy(quin))),
      message(envelopeOf(quin, postBy(quin, { public: false }))),
      message(envelopeOf(quin, eventBy(quin))),
    ]

    expect(await receive(...messages)).toEqual({
      waiting: ['person:unknown@s.example'],
      rejected: [
        'InvalidEnvelope',
        'InvalidEnvelope',
        'InvalidSignature',
        'UnknownEntity',
        'InvalidSender',
        'NotPublic',
      ],
      ignored: 0,
    })
    expect(await guids()).toEqual(entities.map(({ guid }) => guid).sort())
  })

  it('writes one log line with the outcomes and the duration', async () => {
    const recordedLog = openRecordedLog()
    const known = postBy(quin)
    await receive(...messagesOf(known))

    await receiveBatch({ ...pod, log: recordedLog.log }, [
      ...messagesOf(known, postBy(remy), postBy(quin)),
      message('no envelope'),
    ])

    expect(recordedLog.entries().filter(({ level }) => level === 30)).toEqual([
      expect.objectContaining({
        msg: 'inbound batch processed',
        queue: 'inbound',
        messages: 4,
        ms: expect.any(Number),
        stored: 2,
        repeated: 1,
        rejected: 1,
      }),
    ])
  })

  it('logs the claimed sender and the recipient of a private message that is rejected', async () => {
    const recordedLog = openRecordedLog()
    const { ann } = await pod.localUsers('ann')
    const forged = { ...remy, address: quin.address }

    await receiveBatch({ ...pod, log: recordedLog.log }, [
      privateMessage(forged, ann, postBy(forged, { public: false })),
    ])

    expect(recordedLog.entries()).toContainEqual(
      expect.objectContaining({
        msg: 'inbound message rejected',
        fault: 'InvalidSignature',
        sender: quin.address,
        recipientGuid: ann.guid,
      }),
    )
  })

  it('of two hundred posts needs no more statements than one of two', async () => {
    // The first message of a person adds a statement.
    await pod.db('people').whereIn('address', [quin.address, remy.address]).update({ provenAt: new Date() })
    const entities = Array.from({ length: 200 }, (_, index) =>
      postBy(index % 2 === 0 ? quin : remy, {
        text: `#tag${index} and @{${remy.address}}`,
        photos: [],
        poll: pollWith(['Yes', 'No']),
      }),
    )
    const statements = await statementsDuring(() => receive(...messagesOf(...entities)), 'worker')
    const others = await statementsDuring(
      () =>
        receive(
          ...messagesOf(postBy(quin, { text: `#one @{${remy.address}}`, poll: pollWith(['a', 'b']) }), postBy(remy)),
        ),
      'worker',
    )

    expect(await pod.rows('posts', 'polls', 'poll_answers', 'taggings', 'mentions')).toEqual([202, 201, 402, 201, 201])
    expect(others).toBeGreaterThan(0)
    expect(statements).toBe(others)
  })

  it('is stored once when it arrives repeatedly and in parallel', async () => {
    const root = postBy(quin, { text: '#again', poll: pollWith(['Yes', 'No']), photos: [photoBy(quin), photoBy(quin)] })
    await receive(...messagesOf(root))
    const entities = [root, ...Array.from({ length: 10 }, () => postBy(remy)), reshareBy(remy, root)]
    const rotatedMessages = (turn: number) => messagesOf(...entities.slice(turn), ...entities.slice(0, turn))

    const results = await Promise.all(
      [0, 3, 7, 11].map((turn) => receive(...rotatedMessages(turn), ...rotatedMessages(turn))),
    )

    expect(results).toEqual([nothing, nothing, nothing, nothing])
    expect(await pod.rows('posts', 'photos', 'polls', 'taggings')).toEqual([12, 2, 1, 1])
    expect(await Post.query(pod.db).findOne({ guid: root.guid })).toMatchObject({ resharesCount: 1 })
  })
})

describe('a post', () => {
  it('is not changed by a second post with its guid', async () => {
    const entity = postBy(quin, { text: 'First' })
    await receive(...messagesOf(entity))

    expect(await receive(...messagesOf({ ...entity, text: 'Second #tag', photos: [photoBy(quin)] }))).toEqual(nothing)
    expect(await receive(...messagesOf({ ...entity, author: remy.address, text: 'Mine' }))).toEqual({
      ...nothing,
      rejected: ['InvalidAuthor'],
    })

    expect(await Post.query(pod.db)).toMatchObject([{ text: 'First' }])
    expect(await pod.rows('photos', 'taggings')).toEqual([0, 0])
  })

  it('belongs to one author when two use its guid at the same time', async () => {
    const entity = postBy(quin)

    const { rejected } = await receive(...messagesOf(entity, { ...entity, author: remy.address }))

    expect(rejected).toEqual(['InvalidAuthor'])
    expect(await pod.rows('posts')).toEqual([1])
  })

  it.each([
    [
      'of tomorrow is of now',
      () => new Date(Date.now() + 86_400_000),
      () => expect.toSatisfy((date: Date) => Math.abs(date.getTime() - Date.now()) < 60_000),
    ],
    ['of another century is of when it was accepted', () => new Date('1999-12-31T23:59:59Z'), () => acceptedAt],
    [
      'a little ahead of us is left as it is',
      () => new Date(Math.floor(Date.now() / 1_000) * 1_000 + 120_000),
      undefined,
    ],
  ])('%s', async (_what, write, read) => {
    const created = write()
    await receive(...messagesOf(postBy(quin, { created_at: created })))

    const [post] = await Post.query(pod.db)
    expect(post?.createdAt).toEqual(read === undefined ? created : read())
  })

  it('by a local person is never stored, even with the original envelope', async () => {
    const account = await createUser(pod, { username: 'ann', password: 'a long enough password' })
    const ann = await Person.query(pod.db).findOne({ guid: account.guid }).throwIfNotFound()
    const key = await loadPrivateKey(pod, ann.id)
    const person = { address: ann.address, guid: ann.guid, publicKey: ann.publicKey, privateKey: key }

    expect(await receive(message(envelopeOf(person, postBy(person))))).toEqual({ ...nothing, ignored: 1 })
    expect(await pod.rows('posts')).toEqual([0])
  })

  it.each([
    ['has left', () => Person.query(pod.db).patch({ closedAt: new Date() }).where({ address: quin.address })],
    [
      'lives on a blocked pod',
      () => RemotePod.query(pod.db).patch({ blockedAt: new Date() }).where({ host: 'q.example' }),
    ],
  ])('a message by a person who %s is ignored', async (_what, change) => {
    await change()

    expect(await receive(...messagesOf(postBy(quin)))).toEqual({ ...nothing, ignored: 1 })
    expect(await pod.rows('posts')).toEqual([0])
  })

  it.each(['Post', 'StatusMessage'])(
    'that its author has taken back as a %s does not come any more',
    async (targetType) => {
      const [mine, other] = [postBy(quin), postBy(quin)]
      const people = await Person.byAddresses(pod.db, [quin.address, remy.address])
      const idOf = (person: FakePerson) => people.find(({ address }) => address === person.address)?.id
      await pod.db('tombstones').insert([
        { targetType, guid: mine.guid, deletedById: idOf(quin) },
        // Tombstones by another person, or for another guid, have no effect.
        { targetType, guid: other.guid, deletedById: idOf(remy) },
        { targetType: 'Comment', guid: other.guid, deletedById: idOf(quin) },
      ])

      expect(await receive(...messagesOf(mine, other))).toEqual({ ...nothing, ignored: 1 })
      expect(await guids()).toEqual([other.guid])
    },
  )
})

describe('a photo in a post', () => {
  it('that arrived before its post becomes part of it', async () => {
    const photo = photoBy(quin, { remote_photo_name: 'new.jpg' })
    const { id: authorId } = await Person.byAddress(pod.db, quin.address).throwIfNotFound()
    await pod
      .db('photos')
      .insert({ guid: photo.guid, authorId, postGuid: newGuid(), name: 'old.jpg', remotePath: 'https://old.example/' })
    const entity = postBy(quin, { photos: [photo] })

    expect(await receive(...messagesOf(entity))).toEqual(nothing)

    const post = await Post.query(pod.db).findOne({ guid: entity.guid }).throwIfNotFound()
    expect(await pod.db('photos')).toMatchObject([{ postId: post.id, postGuid: null, name: 'new.jpg', public: true }])
  })

  it('stays with its first post', async () => {
    const photo = photoBy(quin)
    const [one, two] = [postBy(quin, { photos: [photo, photo] }), postBy(quin, { photos: [photo, photo] })]

    await receive(...messagesOf(one))
    await receive(...messagesOf(two))

    const post = await Post.query(pod.db).findOne({ guid: one.guid }).throwIfNotFound()
    expect(await pod.db('photos')).toMatchObject([{ guid: photo.guid, postId: post.id }])
  })

  it('that was retracted before its post is left out', async () => {
    const [gone, here] = [photoBy(quin), photoBy(quin)]
    const { id: deletedById } = await Person.byAddress(pod.db, quin.address).throwIfNotFound()
    await pod.db('tombstones').insert({ targetType: 'Photo', guid: gone.guid, deletedById })

    await receive(...messagesOf(postBy(quin, { photos: [gone, here] })))

    expect(await pod.db('photos').pluck('guid')).toEqual([here.guid])
  })

  it.each([
    ['a script', 'javascript:alert(1)/'],
    ['data', 'data:image/png;base64,'],
    ['a path', '/uploads/images/'],
    ['a host without a scheme', '//x.example/'],
    ['an address without end', `https://x.example/${'x'.repeat(2_048)}/`],
  ])('at %s counts as none', async (_what, path) => {
    const photos = [photoBy(quin, { remote_photo_path: path })]

    expect(await receive(...messagesOf(postBy(quin, { photos }), postBy(quin, { photos, text: '' })))).toEqual({
      ...nothing,
      rejected: ['ValidationError'],
    })
    expect(await pod.rows('posts', 'photos')).toEqual([1, 0])
  })
})

describe('a post with a part whose guid another author has used before', () => {
  it.each([
    ['photo', (theirs: StatusMessageEntity) => ({ photos: [photoBy(remy, { guid: theirs.photos[0]?.guid ?? '' })] })],
    ['poll', (theirs: StatusMessageEntity) => ({ poll: pollWith(['Yes', 'No'], theirs.poll?.guid) })],
  ])('is stored without this part: a %s', async (_what, steal) => {
    const theirs = postBy(quin, { photos: [photoBy(quin)], poll: pollWith(['Yes', 'No']) })
    await receive(...messagesOf(theirs))
    const before = await pod.db('photos').first()

    expect(await receive(...messagesOf(postBy(remy, steal(theirs))))).toEqual(nothing)

    expect(await pod.rows('posts', 'photos', 'polls', 'poll_answers')).toEqual([2, 1, 1, 2])
    expect(await pod.db('photos').first()).toEqual(before)
  })

  it('is stored although the part was its only content', async () => {
    const photo = photoBy(quin)
    await receive(...messagesOf(postBy(quin, { photos: [photo] })))
    const onlyPhoto = postBy(remy, { text: '', photos: [photoBy(remy, { guid: photo.guid })] })

    expect(await receive(...messagesOf(onlyPhoto))).toEqual(nothing)

    expect(await pod.db('posts').pluck('guid')).toContain(onlyPhoto.guid)
  })

  it('keeps its poll when only answers have guids that another poll has', async () => {
    const theirs = postBy(quin, { poll: pollWith(['Yes', 'No']) })
    const poll = { ...pollWith(['Yes', 'No']), poll_answers: theirs.poll?.poll_answers ?? [] }

    expect(await receive(...messagesOf(theirs, postBy(remy, { poll })))).toEqual(nothing)

    expect(await pod.rows('posts', 'polls', 'poll_answers')).toEqual([2, 2, 4])
  })
})

describe('a reshare', () => {
  it('waits for an unknown root', async () => {
    const root = postBy(quin)

    expect(await receive(...messagesOf(reshareBy(remy, root)))).toEqual({ ...nothing, waiting: [`post:${root.guid}`] })
    expect(await pod.rows('posts')).toEqual([0])
  })

  it.each([
    [
      'is signed by another person',
      async () => message(envelopeOf(quin, reshareBy(remy, postBy(quin)))),
      { rejected: ['InvalidSender'] },
    ],
    [
      'is by a person with a closed account',
      async () => {
        await Person.query(pod.db).patch({ closedAt: new Date() }).where({ address: remy.address })
        return message(envelopeOf(remy, reshareBy(remy, postBy(quin))))
      },
      { ignored: 1 },
    ],
    [
      'was taken back',
      async () => {
        const reshare = reshareBy(remy, postBy(quin))
        const { id: deletedById } = await Person.byAddress(pod.db, remy.address).throwIfNotFound()
        await pod.db('tombstones').insert({ targetType: 'Reshare', guid: reshare.guid, deletedById })
        return message(envelopeOf(remy, reshare))
      },
      { ignored: 1 },
    ],
  ])('that %s causes no request of its root', async (_what, make, end) => {
    expect(await receive(await make())).toEqual({ ...nothing, ...end })
  })

  it('of a private post is rejected', async () => {
    const root = postBy(quin)
    await receive(...messagesOf(root))
    await pod.db('posts').update({ public: false })

    expect(await receive(...messagesOf(reshareBy(remy, root)))).toEqual({ ...nothing, rejected: ['NotAllowed'] })
  })

  it('of a local post raises its counter', async () => {
    const account = await createUser(pod, { username: 'ann', password: 'a long enough password' })
    const ann = await Person.query(pod.db).findOne({ guid: account.guid }).throwIfNotFound()
    const root = await Post.query(pod.db)
      .insert({ guid: newGuid(), authorId: ann.id, type: 'StatusMessage', public: true, text: 'Ours' })
      .returning('*')

    expect(await receive(...messagesOf(reshareBy(remy, { guid: root.guid, author: ann.address })))).toEqual(nothing)
    expect(await Post.query(pod.db).findById(root.id)).toMatchObject({ resharesCount: 1 })
  })
})
