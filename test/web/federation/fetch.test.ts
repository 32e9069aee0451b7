import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { createReshare } from '../../../src/domain/posts/reshares.js'
import { Aspect } from '../../../src/persistence/models/aspect.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Photo } from '../../../src/persistence/models/photo.js'
import { Poll } from '../../../src/persistence/models/poll.js'
import { Post } from '../../../src/persistence/models/post.js'
import type { CommentEntity } from '../../../src/protocol/entities/relayables.js'
import { peekEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { type EnvelopeVerification, verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { signRelayable } from '../../../src/protocol/signatures/relayable-signature.js'
import type { OpenServices } from '../../../src/services/open-services.js'
import { addPost } from '../../support/databases/rows.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'
import { readKey } from '../../support/pods/fixed-key-crypto.js'

describe('GET /fetch/:type/:guid', () => {
  let pod: TestPod
  let ann: TestPerson
  let ben: TestPerson
  let quin: Person
  let seals = 0
  let keys: Map<string, KeyObject>

  beforeAll(async () => {
    const countSeals = (opened: OpenServices): OpenServices => ({
      ...opened,
      crypto: {
        ...opened.crypto,
        signEnvelope(...rest) {
          seals += 1
          return opened.crypto.signEnvelope(...rest)
        },
      },
    })
    pod = await buildPod({ environment: { POD_URL: 'https://p.example' }, change: countSeals })
    ;({ ann, ben } = await pod.people('ann', 'ben'))
    quin = await addRemotePerson(pod.pod, 'quin@q.example', { publicKey: readKey('4.public.pem') })
    const people = await Person.query(pod.pod.db)
    keys = new Map(people.map(({ address, publicKey }) => [address, createPublicKey(publicKey)]))
  })
  afterAll(() => pod.close())

  const fetch = (path: string) => pod.inject(`/fetch/${path}`)
  const publish = async (input: Partial<Parameters<typeof publishPost>[2]> = {}) =>
    publishPost(pod.pod, await viewerOf(pod.pod, ann), { text: 'Good morning', public: true, ...input })
  const annsPerson = () => Person.query(pod.pod.db).findOne({ guid: ann.account.guid }).throwIfNotFound()

  async function openFetched(path: string): Promise<Extract<EnvelopeVerification, { state: 'verified' }>> {
    const { body, statusCode } = await fetch(path)
    expect([path, statusCode]).toEqual([path, 200])
    const result = verifyEnvelope(body, keys, new Date())
    if (result.state !== 'verified') throw new Error(`The envelope is ${JSON.stringify(result)}.`)
    return result
  }

  it.each(['post', 'status_message', 'reshare'])('gives a public post as %s, signed by its author', async (type) => {
    const post = await publish({ text: 'Good\r\nmorning <b>&amp; all' })

    const response = await fetch(`${type}/${post.guid}`)

    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('application/magic-envelope+xml; charset=utf-8')
    expect(peekEnvelope(response.body)).toEqual({ sender: 'ann@p.example', author: 'ann@p.example' })
    const { sender, entity } = await openFetched(`${type}/${post.guid}`)
    expect(sender).toBe('ann@p.example')
    expect(entity).toEqual({
      type: 'status_message',
      author: 'ann@p.example',
      guid: post.guid,
      created_at: new Date(Math.floor(post.createdAt.getTime() / 1000) * 1000),
      public: true,
      text: 'Good\r\nmorning <b>&amp; all',
      photos: [],
    })
  })

  it('serves a post with all of its parts', async () => {
    const { id: authorId } = await annsPerson()
    const photo = await Photo.query(pod.pod.db)
      .insert({ guid: newGuid(), authorId, pending: true, name: 'a.png', text: 'A tree', height: 20, width: 10 })
      .returning('*')
    const post = await publish({
      text: '',
      photoGuids: [photo.guid],
      location: { address: 'Berlin', lat: '52.50', lng: '13.4' },
      poll: { question: 'Tea?', answers: ['Yes', 'No'] },
    })

    const { entity } = await openFetched(`post/${post.guid}`)

    expect(entity).toMatchObject({
      text: '',
      location: { type: 'location', address: 'Berlin', lat: '52.50', lng: '13.4' },
      poll: { question: 'Tea?', poll_answers: [{ answer: 'Yes' }, { answer: 'No' }] },
      photos: [
        {
          guid: photo.guid,
          author: 'ann@p.example',
          public: true,
          remote_photo_path: 'https://p.example/uploads/images/',
          remote_photo_name: 'a.png',
          text: 'A tree',
          status_message_guid: post.guid,
          height: 20,
          width: 10,
        },
      ],
    })
  })

  it('does not serve private posts', async () => {
    const { id } = await Aspect.query(pod.pod.db).findOne({ name: 'Family' }).throwIfNotFound()
    const viewer = await viewerOf(pod.pod, ann)
    const aspects = await Aspect.query(pod.pod.db).where({ userId: viewer.userId })
    const post = await publish({ public: false, aspectIds: [id, ...aspects.map((aspect) => aspect.id)] })

    expect((await fetch(`post/${post.guid}`)).statusCode).toBe(404)
  })

  it('answers 404 for an unknown entity', async () => {
    for (const type of ['post', 'comment', 'poll']) expect((await fetch(`${type}/${newGuid()}`)).statusCode).toBe(404)
  })

  it('answers 404 for types that are not served, and for invalid guids', async () => {
    const post = await publish()
    const paths = [
      `profile/${ann.account.guid}`,
      `like/${post.guid}`,
      `photo/${post.guid}`,
      `Post/${post.guid}`,
      `constructor/${post.guid}`,
      '../x',
      '%2e%2e/x',
      `post/..%2f${post.guid}`,
      `post/${post.guid}%0d%0aset-cookie:a`,
      `post/${post.guid}%00`,
      'post/short',
      `post/${'a'.repeat(300)}`,
      'post/%E0%A4%A',
    ]

    for (const path of paths) expect([path, (await fetch(path)).statusCode]).toEqual([path, 404])
  })

  it('answers the same to a raw request line on the socket', async () => {
    const origin = await pod.app.listen({ host: '127.0.0.1', port: 0 })
    const ask = async (path: string) => {
      const [answer] = await once(request(new URL(origin), { path }).end(), 'response')
      answer.resume()
      return answer.statusCode
    }
    const { guid } = await publish()

    expect(await ask('/fetch/../x')).toBe(404)
    expect(await ask(`/fetch/../posts/${guid}`)).toBe(404)
    expect(await ask(`/fetch/post/${guid}`)).toBe(200)
  })

  it('redirects to the pod of a remote post', async () => {
    const post = await addPost(pod.pod, quin)

    for (const type of ['post', 'status_message']) {
      const response = await fetch(`${type}/${post.guid}`)
      expect([response.statusCode, response.headers.location]).toEqual([
        302,
        `https://q.example/fetch/${type}/${post.guid}`,
      ])
    }
  })

  it.each([
    ['a port of its own', 'w.example', { port: 8443, ssl: true }, 'https://w.example:8443'],
    ['plain http on a port', 'x.example', { port: 3001, ssl: false }, 'http://x.example:3001'],
    ['no https seen yet', 'y.example', { ssl: false }, 'https://y.example'],
  ])('knows where a pod is with %s', async (_with, host, home, origin) => {
    const post = await addPost(pod.pod, await addRemotePerson(pod.pod, `zoe@${host}`, { pod: home }))

    expect((await fetch(`post/${post.guid}`)).headers.location).toBe(`${origin}/fetch/post/${post.guid}`)
  })

  it.each(['evil.example/x', 'a@evil.example', 'evil.example?', 'evil example', 'evil.example#'])(
    'does not redirect to an invalid host recorded for a pod: %s',
    async (host) => {
      const person = await addRemotePerson(pod.pod, `zoe@${newGuid()}.example`)
      await pod.pod.db('pods').where({ id: person.podId }).update({ host })

      const post = await addPost(pod.pod, person)

      expect((await fetch(`post/${post.guid}`)).statusCode).toBe(404)
    },
  )

  it('serves the post of a poll', async () => {
    const post = await publish({ poll: { question: 'Tea?', answers: ['Yes', 'No'] } })
    const poll = await Poll.query(pod.pod.db).findOne({ postId: post.id }).throwIfNotFound()

    const { entity } = await openFetched(`poll/${poll.guid}`)

    expect(entity).toMatchObject({ type: 'status_message', guid: post.guid, poll: { guid: poll.guid } })
  })

  it('serves a reshare with its root and without a public flag', async () => {
    const root = await addPost(pod.pod, quin)
    const reshare = await createReshare(pod.pod, await viewerOf(pod.pod, ann), root.guid)

    const { entity } = await openFetched(`reshare/${reshare.guid}`)

    expect(entity).toEqual({
      type: 'reshare',
      author: 'ann@p.example',
      guid: reshare.guid,
      created_at: expect.any(Date),
      root_author: 'quin@q.example',
      root_guid: root.guid,
    })
    const { body } = await fetch(`reshare/${reshare.guid}`)
    const [, data = ''] = /<me:data[^>]*>([^<]*)/.exec(body) ?? []
    expect(Buffer.from(data, 'base64url').toString()).not.toContain('<public>')
  })

  describe('of a comment', () => {
    const quinsKey = createPrivateKey(readKey('4.private.pem'))

    /** As it came from another pod, with an order and an element of its own. */
    async function quinComments(post: Post): Promise<CommentEntity> {
      const guid = newGuid()
      const createdAt = new Date('2024-05-06T07:08:09Z')
      const elements = [
        ['guid', guid],
        ['mood', 'fine'],
        ['author', 'quin@q.example'],
        ['text', ' Hello; \r\nann '],
        ['parent_guid', post.guid],
        ['created_at', '2024-05-06T07:08:09Z'],
      ] as const
      const entity: CommentEntity = {
        type: 'comment',
        author: 'quin@q.example',
        guid,
        parent_guid: post.guid,
        text: ' Hello; \r\nann ',
        created_at: createdAt,
        elements,
      }
      const authorSignature = signRelayable(entity, quinsKey)
      await Comment.query(pod.pod.db).insert({
        guid,
        postId: post.id,
        authorId: quin.id,
        text: 'Hello; \r\nann',
        authorSignature,
        signedElements: elements,
        createdAt,
      })
      return { ...entity, author_signature: authorSignature }
    }

    it('of another pod on a local post is fetched with the signature of the post author and all signed elements', async () => {
      const comment = await quinComments(await publish())

      const result = await openFetched(`comment/${comment.guid}`)

      expect(result).toEqual({ state: 'verified', sender: 'ann@p.example', entity: comment, signature: 'valid' })
    })

    it('of a local user on a local post is fetched with two signatures', async () => {
      const post = await publish()
      const comment = await createComment(pod.pod, await viewerOf(pod.pod, ben), { postGuid: post.guid, text: ' Hi ' })

      const result = await openFetched(`comment/${comment.guid}`)

      expect(result).toMatchObject({ sender: 'ann@p.example', signature: 'valid' })
      expect(result.entity).toMatchObject({ author: 'ben@p.example', text: 'Hi', parent_guid: post.guid })
    })

    it('of the author of the post is fetched with the envelope signature only', async () => {
      const post = await publish()
      const comment = await createComment(pod.pod, await viewerOf(pod.pod, ann), { postGuid: post.guid, text: 'Hi' })

      const result = await openFetched(`comment/${comment.guid}`)

      expect(result).toMatchObject({
        sender: 'ann@p.example',
        signature: 'absent',
        entity: { author: 'ann@p.example' },
      })
    })

    it('of a local user on a remote post is fetched with the signature of its author', async () => {
      const post = await addPost(pod.pod, quin)
      const comment = await createComment(pod.pod, await viewerOf(pod.pod, ben), { postGuid: post.guid, text: 'Hi' })

      const result = await openFetched(`comment/${comment.guid}`)

      expect(result).toMatchObject({ sender: 'ben@p.example', signature: 'valid', entity: { author: 'ben@p.example' } })
    })

    it('of another pod on a remote post is redirected to its author', async () => {
      const remy = await addRemotePerson(pod.pod, 'remy@r.example')
      const comment = await quinComments(await addPost(pod.pod, remy))

      const response = await fetch(`comment/${comment.guid}`)

      expect([response.statusCode, response.headers.location]).toEqual([
        302,
        `https://q.example/fetch/comment/${comment.guid}`,
      ])
    })

    it('on a private post cannot be fetched', async () => {
      const { id } = await annsPerson()
      const comment = await quinComments(await addPost(pod.pod, { id }, { public: false }))

      expect((await fetch(`comment/${comment.guid}`)).statusCode).toBe(404)
    })
  })

  it.each(['abcdef0123456789@hub.example', 'a.b:c-d_0123456789'])(
    'takes the guid %s, percent-encoded or not',
    async (guid) => {
      await addPost(pod.pod, await annsPerson(), { guid })
      const encoded = encodeURIComponent(guid).replaceAll('.', '%2E').replaceAll('_', '%5f').replaceAll('-', '%2d')

      expect((await openFetched(`post/${guid}`)).entity).toMatchObject({ guid })
      expect((await openFetched(`post/${encoded}`)).entity).toMatchObject({ guid })
    },
  )

  it('signs an entity once for all requests, and checks each time that it is still public', async () => {
    const post = await publish()
    seals = 0

    const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`post/${post.guid}`)))
    const later = await fetch(`status_message/${post.guid}`)

    expect(seals).toBe(1)
    expect(new Set([...answers, later].map(({ body }) => body)).size).toBe(1)
    expect(later.statusCode).toBe(200)
    await Post.query(pod.pod.db).deleteById(post.id)
    expect((await fetch(`post/${post.guid}`)).statusCode).toBe(404)
    expect(seals).toBe(1)
  })

  it('serves no content of closed accounts', async () => {
    const { gone } = await pod.people('gone')
    const viewer = await viewerOf(pod.pod, gone)
    const post = await publishPost(pod.pod, viewer, { text: 'Bye', public: true })
    const elsewhere = await addPost(pod.pod, quin)
    const comment = await createComment(pod.pod, viewer, { postGuid: elsewhere.guid, text: 'Bye' })
    const before = await Promise.all([fetch(`post/${post.guid}`), fetch(`comment/${comment.guid}`)])
    await closeUser(pod.pod, 'gone')

    const after = await Promise.all([fetch(`post/${post.guid}`), fetch(`comment/${comment.guid}`)])

    expect(before.map(({ statusCode }) => statusCode)).toEqual([200, 200])
    expect(after.map(({ statusCode }) => statusCode)).toEqual([404, 404])
  })

  it('serves no comments on posts of closed accounts', async () => {
    const remy = await addRemotePerson(pod.pod, 'leaving@r.example')
    const post = await addPost(pod.pod, remy)
    const { guid } = await createComment(pod.pod, await viewerOf(pod.pod, ben), { postGuid: post.guid, text: 'Hi' })
    const before = await fetch(`comment/${guid}`)

    await remy.$query(pod.pod.db).patch({ closedAt: new Date() })

    expect([before.statusCode, (await fetch(`comment/${guid}`)).statusCode]).toEqual([200, 404])
  })

  it('names this pod regardless of the requested host', async () => {
    const post = await publish()

    const { body } = await pod.inject({ url: `/fetch/post/${post.guid}`, headers: { host: 'evil.example' } })

    expect(verifyEnvelope(body, keys, new Date())).toMatchObject({ state: 'verified', sender: 'ann@p.example' })
  })
})
