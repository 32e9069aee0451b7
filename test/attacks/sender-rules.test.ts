import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { blockForUser } from '../../src/domain/people/blocks.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Person } from '../../src/persistence/models/person.js'
import { Poll } from '../../src/persistence/models/poll.js'
import { Post } from '../../src/persistence/models/post.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import {
  commentBy,
  likeBy,
  participationBy,
  photoBy,
  pollWith,
  postBy,
  profileOf,
  reshareBy,
  voteBy,
} from '../support/federation/entities.js'
import { encryptEnvelopeFor, envelopeOf, signedBy } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import type { TestPerson } from '../support/people/local-users.js'
import { viewerOf } from '../support/people/local-users.js'
import { type AttackedPod, dropped, type Sent, startAttackedPod, TAKEN } from './attacked-pod.js'
import { dataElement, forgedEnvelope } from './forged-envelope.js'

let fakePods: FakePods
let pod: AttackedPod
let ann: TestPerson
let ben: TestPerson
let quin: FakePerson
let mallory: FakePerson
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({ fakePods })
  ;({ ann, ben } = await pod.people('ann', 'ben'))
  quin = fakePods.person('quin@q.example')
  mallory = fakePods.person('mallory@m.example')
  await pod.addRemotePerson(quin)
  await pod.addRemotePerson(mallory)
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})
beforeEach(async () => {
  await pod.waitUntilIdle()
  await pod.db.raw(
    'truncate posts, notifications, blocks, conversations, contacts, outbox, waiting, tombstones cascade',
  )
})

async function postOfAnn(fields: { readonly public?: boolean; readonly poll?: readonly string[] } = {}): Promise<Post> {
  const { guid } = await publishPost(pod, await viewerOf(pod, ann), {
    text: 'By Ann',
    public: fields.public ?? true,
    ...(fields.poll && { poll: { question: '?', answers: fields.poll } }),
  })
  return Post.query(pod.db).findOne({ guid }).throwIfNotFound()
}

/** As the signer would send it to one of our people alone. */
async function sealedFor({ account }: TestPerson, envelope: string): Promise<Sent> {
  const { publicKey } = await Person.query(pod.db).findOne({ guid: account.guid }).throwIfNotFound()
  return { path: `/receive/users/${account.guid}`, body: encryptEnvelopeFor(publicKey, envelope) }
}

describe('S01: an envelope', () => {
  it('is accepted if nothing is forged', async () => {
    const post = postBy(quin)

    expect(await pod.send(forgedEnvelope(quin, writeEntity(post)))).toMatchObject({ ...TAKEN, changes: { posts: 1 } })
  })

  it('with other data than the signed data is dropped', async () => {
    const [signed, other] = [writeEntity(postBy(quin)), writeEntity(postBy(quin, { text: 'Forged' }))]
    const envelope = envelopeOf(quin, postBy(quin))
    const stolen = /<me:sig[^>]*>([^<]+)</.exec(envelope)?.[1] ?? ''

    expect(await pod.send(forgedEnvelope(quin, other, { signature: stolen }))).toEqual(dropped('InvalidSignature'))
    expect(await pod.send(forgedEnvelope(quin, signed, { before: dataElement(other) }))).toEqual(
      dropped('InvalidSignature'),
    )
  })

  it.each([
    ['a second data', { after: dataElement('<status_message><text>Forged</text></status_message>') }],
    ['a second signature', { after: '<me:sig key_id="bWFsbG9yeUBtLmV4YW1wbGU">AAAA</me:sig>' }],
    ['comments everywhere', { before: '<!-- <me:data>x</me:data> -->', after: '<!-- -->' }],
    ['data of no namespace', { before: '<data>AAAA</data>' }],
  ])('with %s is read as it was signed', async (_what, forgery) => {
    const post = postBy(quin, { text: 'As it was signed' })

    expect(await pod.send(forgedEnvelope(quin, writeEntity(post), forgery))).toMatchObject({
      ...TAKEN,
      changes: { posts: 1 },
    })
    expect(await pod.db('posts').where({ guid: post.guid }).pluck('text')).toEqual(['As it was signed'])
  })

  it('of another namespace is rejected', async () => {
    const envelope = forgedEnvelope(quin, writeEntity(postBy(quin)), { namespace: 'http://evil.example/ns' })

    expect(await pod.send(envelope)).toEqual(dropped('InvalidEnvelope'))
  })

  it('with a broken entity is rejected by its signature first', async () => {
    const envelope = forgedEnvelope(quin, '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    const mallorys = forgedEnvelope({ ...mallory, address: quin.address }, '<!DOCTYPE a><a/>')

    expect(await pod.send(envelope)).toEqual(dropped('InvalidPayload'))
    expect(await pod.send(mallorys)).toEqual(dropped('InvalidSignature'))
  })
})

describe('S02: an envelope that chooses how it is verified', () => {
  it.each([
    ...['none', 'HMAC-SHA256', 'RSA-SHA1', 'rsa-sha256', 'RSA-SHA256 '].map(
      (algorithm) => [{ algorithm }, 'InvalidAlgorithm'] as const,
    ),
    ...['base64', 'BASE64URL', ''].map((encoding) => [{ encoding }, 'InvalidEncoding'] as const),
    ...['text/xml', 'application/json', 'APPLICATION/XML'].map((type) => [{ type }, 'InvalidDataType'] as const),
    [{ algorithm: 'none', signature: 'AAAA' }, 'InvalidAlgorithm'] as const,
  ])('is dropped: %j', async (forgery, fault) => {
    expect(await pod.send(forgedEnvelope(quin, writeEntity(postBy(quin)), forgery))).toEqual(dropped(fault))
  })
})

describe('S03: mallory', () => {
  const alien = 'quin@q.example'
  const conversation = () => ({
    type: 'conversation' as const,
    author: alien,
    guid: newGuid(),
    subject: 'Tea',
    created_at: new Date(),
    participants: [alien, ann.account.address],
    messages: [],
  })
  const contact = (): Entity => ({
    type: 'contact',
    author: alien,
    recipient: ann.account.address,
    following: true,
    sharing: true,
    blocking: false,
  })
  const profile = (): Entity => profileOf({ address: alien }, { first_name: 'Mallory was here' })

  it.each<[string, () => Entity | Promise<Entity>]>([
    ['a post', () => postBy(quin)],
    ['a photo', () => photoBy(quin)],
    ['a reshare without a root', () => reshareBy(quin)],
    ['a profile', profile],
    ['a participation', async () => participationBy(quin, await postOfAnn())],
    ['the end of an account', () => ({ type: 'account_deletion', author: alien })],
  ])('sends %s of another person: dropped at both inbound endpoints', async (_what, make) => {
    const envelope = envelopeOf(mallory, await make())

    expect(await pod.send(envelope)).toEqual(dropped('InvalidSender'))
    expect(await pod.send(await sealedFor(ann, envelope))).toEqual(dropped('InvalidSender'))
  })

  it.each<[string, () => Entity]>([
    ['a conversation', conversation],
    ['a contact', contact],
  ])('sends %s of another person, and the real author sends it publicly: both dropped', async (_what, make) => {
    expect(await pod.send(await sealedFor(ann, envelopeOf(mallory, make())))).toEqual(dropped('InvalidSender'))
    expect(await pod.send(envelopeOf(quin, make()))).toEqual(dropped('NotPublic'))
  })

  it('forwards to Ben a message encrypted for Ann: dropped', async () => {
    expect(await pod.send(await sealedFor(ben, envelopeOf(quin, contact())))).toEqual(dropped('RecipientMismatch'))
    expect(await pod.send(await sealedFor(ben, envelopeOf(quin, conversation())))).toEqual(dropped('RecipientMismatch'))
  })

  it('relays signed entities of others under a post that is not hers: dropped', async () => {
    const post = await postOfAnn()
    for (const entity of [commentBy(quin, post), likeBy(quin, post)]) {
      expect(await pod.send(envelopeOf(mallory, entity))).toEqual(dropped('InvalidSender'))
    }
  })

  it('retracts a post of another person: dropped', async () => {
    const post = postBy(quin)
    await pod.send(envelopeOf(quin, post))
    const retraction = (author: string): Entity => ({
      type: 'retraction',
      author,
      target_guid: post.guid,
      target_type: 'Post',
    })

    for (const author of [alien, mallory.address]) {
      expect(await pod.send(envelopeOf(mallory, retraction(author)))).toEqual(dropped('InvalidSender'))
    }
  })

  it('sends a private post to the public endpoint: dropped', async () => {
    expect(await pod.send(envelopeOf(quin, postBy(quin, { public: false })))).toEqual(dropped('NotPublic'))
  })

  it.each(['Quin@q.example', 'QUIN@Q.EXAMPLE'])('signs as %s: dropped, because the case differs', async (keyId) => {
    const envelope = forgedEnvelope(quin, writeEntity(postBy(quin)), { keyId })

    expect(await pod.send(envelope)).toEqual(dropped('InvalidSender'))
  })

  it.each(['acct:quin@q.example', 'quin@q.example ', 'quin', 'quin@q.example/x', 'quin@evil@q.example', ''])(
    'signs with an invalid address: %j',
    async (keyId) => {
      const envelope = forgedEnvelope(quin, writeEntity(postBy(quin)), { keyId })

      expect(await pod.send(envelope)).toEqual(dropped('InvalidEnvelope'))
    },
  )
})

describe('S04: a comment that was changed on its way', () => {
  const rewrite = (xml: string, change: (elements: string[]) => string[]) => {
    const [, inside = ''] = /^<comment>(.*)<\/comment>$/s.exec(xml.replace(/<\?xml[^>]*\?>/, '').trim()) ?? []
    return `<comment>${change(inside.match(/<(\w+)>[^<]*<\/\1>/g) ?? []).join('')}</comment>`
  }

  it.each<[string, (elements: string[]) => string[]]>([
    ['its elements turned round', (elements) => elements.toReversed()],
    ['two texts exchanged', (elements) => elements.map((one) => one.replace('Well said', 'Badly said'))],
    ['an element more', (elements) => [...elements.slice(0, 4), '<new>x</new>', ...elements.slice(4)]],
    ['an element less', (elements) => elements.filter((one) => !one.startsWith('<created_at'))],
    ['its text twice', (elements) => [...elements, '<text>Another</text>'].toReversed()],
  ])('is dropped: %s', async (_what, change) => {
    const comment = commentBy(quin, await postOfAnn())
    const xml = writeEntity(comment)
    expect(rewrite(xml, (elements) => elements)).toContain('<text>Well said</text>')

    expect(await pod.send(forgedEnvelope(quin, rewrite(xml, change)))).toEqual(dropped('SignatureVerificationFailed'))
  })

  it('a comment with another text appended is the signed comment', async () => {
    const comment = commentBy(quin, await postOfAnn())
    const xml = rewrite(writeEntity(comment), (elements) => [...elements, '<text>Another</text>'])

    await pod.send(forgedEnvelope(quin, xml))

    expect(await pod.db('comments').pluck('text')).toEqual(['Well said'])
  })

  it.each(['guid', 'parent_guid', 'author', 'text'])('is dropped without its %s', async (name) => {
    const comment = commentBy(quin, await postOfAnn())
    const xml = rewrite(writeEntity(comment), (elements) => elements.filter((one) => !one.startsWith(`<${name}>`)))

    expect((await pod.send(forgedEnvelope(quin, xml))).changes).toEqual({})
  })
})

describe('S05: a guid that is taken', () => {
  it('a guid taken by a post stays with its author', async () => {
    const post = postBy(quin, { text: 'Mine' })
    await pod.send(envelopeOf(quin, post))

    const { changes } = await pod.send(
      envelopeOf(mallory, postBy(mallory, { guid: post.guid, text: 'Taken' })),
      envelopeOf(quin, { ...post, text: 'Second thoughts' }),
    )

    expect(changes).toEqual({})
    expect(await pod.db('posts').pluck('text')).toEqual(['Mine'])
  })

  it('a guid taken by a local post stays with that post', async () => {
    const { guid } = await postOfAnn()

    expect((await pod.send(envelopeOf(mallory, postBy(mallory, { guid })))).changes).toEqual({})
    expect(await pod.db('posts').pluck('text')).toEqual(['By Ann'])
  })

  it('a guid taken by a photo or a poll of another person cannot arrive with a post', async () => {
    const poll = pollWith('y', 'n')
    const photo = photoBy(quin)
    await pod.send(envelopeOf(quin, postBy(quin, { poll, photos: [photo] })))

    for (const theft of [
      { poll: { ...pollWith('y', 'n'), guid: poll.guid } },
      { photos: [photoBy(mallory, { guid: photo.guid })] },
    ]) {
      const { changes } = await pod.send(envelopeOf(mallory, postBy(mallory, theft)))
      expect(changes).toMatchObject({ posts: 1 }) // without the part
    }
    expect(await pod.db('polls').pluck('guid')).toEqual([poll.guid])
    expect(await pod.db('photos').count()).toEqual([{ count: 1 }])
  })
})

it('S06: a message of this pod, sent back after its post was deleted, restores nothing', async () => {
  const { guid } = await postOfAnn()
  const response = await pod.app.inject({ method: 'GET', url: `/fetch/post/${guid}` })
  expect(response.statusCode).toBe(200)
  await pod.db('posts').where({ guid }).delete()

  expect((await pod.send(response.body)).changes).toEqual({})
  expect((await pod.send(await sealedFor(ben, response.body))).changes).toEqual({})
})

describe('S07: a name that every object has', () => {
  it.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'status_message_'])(
    '%s is neither an entity nor a target, and is never fetched',
    async (name) => {
      const entity = `<${name}><author>${quin.address}</author><guid>${newGuid()}</guid></${name}>`
      const { guid } = await postOfAnn()
      const retraction = `<retraction><author>${quin.address}</author><target_guid>${guid}</target_guid><target_type>${name}</target_type></retraction>`
      const like = writeEntity(likeBy(quin, { guid })).replace('<parent_type>Post<', `<parent_type>${name}<`)

      for (const xml of [entity, retraction]) {
        expect(await pod.send(forgedEnvelope(quin, xml))).toEqual(dropped('UnknownEntity'))
      }
      expect(await pod.send(forgedEnvelope(quin, like))).toEqual(dropped('ValidationError'))
      expect((await pod.app.inject(`/fetch/${name}/${guid}`)).statusCode).toBe(404)
    },
  )
})

describe('S08: a child of something else', () => {
  it('is not stored: a vote for an answer of another poll', async () => {
    const [one, other] = [await postOfAnn({ poll: ['a', 'b'] }), await postOfAnn({ poll: ['c', 'd'] })]
    const pollOf = (post: Post) =>
      Poll.query(pod.db).findOne({ postId: post.id }).withGraphFetched('answers').throwIfNotFound()
    const [poll, otherPoll] = [await pollOf(one), await pollOf(other)]
    const answer = otherPoll.answers?.[0]
    if (answer === undefined) throw new Error('A poll has answers.')

    expect((await pod.send(envelopeOf(quin, voteBy(quin, poll, answer)))).changes).toEqual({})
    expect((await pod.send(envelopeOf(quin, voteBy(quin, otherPoll, answer)))).changes).toMatchObject({
      poll_participations: 1,
    })
  })

  it('is not stored: a like that names a comment as a post, or a post as a comment', async () => {
    const post = await postOfAnn()
    const comment = commentBy(quin, post)
    await pod.send(envelopeOf(quin, comment))

    for (const like of [likeBy(quin, comment), likeBy(quin, post, { parent_type: 'Comment' })]) {
      expect((await pod.send(envelopeOf(quin, like))).changes['likes']).toBeUndefined()
    }
  })
})

it('S09: a comment or a like by a person whom the author blocks is retracted, and no notification is created', async () => {
  const post = await postOfAnn()
  const { guid } = await Person.query(pod.db).findOne({ address: quin.address }).throwIfNotFound()
  await blockForUser(pod, await viewerOf(pod, ann), guid)

  for (const entity of [commentBy(quin, post, { text: `@{${ann.account.address}}` }), likeBy(quin, post)]) {
    const { changes } = await pod.send(envelopeOf(quin, entity))

    expect(changes).toEqual({ outbound_messages: 1, deliveries: 1 })
    const answer = await pod.db('outbound_messages').orderBy('id', 'desc').first('verb', 'guid')
    expect(answer).toEqual({ verb: 'retract', guid: entity.guid })
  }
})

describe('S10: a private message', () => {
  it('for an unknown recipient is a 404, for every guid', async () => {
    const { body } = (await sealedFor(ann, envelopeOf(quin, postBy(quin)))) as { readonly body: string }

    for (const guid of [newGuid(), quin.guid, 'x', '..', '%00', "'"]) {
      expect(await pod.post(`/receive/users/${encodeURIComponent(guid)}`, body)).toBe(404)
    }
  })

  it('gives no trust beyond the inner signature', async () => {
    const post = postBy(quin, { public: false })
    const forged = forgedEnvelope({ ...mallory, address: quin.address }, writeEntity(post))

    expect(await pod.send(await sealedFor(ann, forged))).toEqual(dropped('InvalidSignature'))
    expect(await pod.send(await sealedFor(ann, writeEntity(post)))).toMatchObject({ changes: {} })
  })

  it('needs the author signature: a relayed entity without it is dropped', async () => {
    const { author_signature: _, ...unsigned } = signedBy(quin, commentBy(quin, await postOfAnn()))

    expect(await pod.send(await sealedFor(ann, envelopeOf(quin, unsigned)))).toEqual(
      dropped('SignatureVerificationFailed'),
    )
  })
})
