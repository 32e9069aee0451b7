import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { InjectOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limitFiles, limitsPage } from '../../scripts/limits-page.js'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { TEXT_LIMITS } from '../../src/domain/limits.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { INBOUND_LIMITS } from '../../src/federation/inbound/limits.js'
import { DELIVERY_LIMITS } from '../../src/federation/outbound/limits.js'
import { REMOTE_LIMITS } from '../../src/federation/remote-pod/limits.js'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { UNDELIVERED_LIMITS } from '../../src/persistence/outbound/limits.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Elements } from '../../src/protocol/entities/relayables.js'
import { OIDC_LIMITS } from '../../src/web/oidc/limits.js'
import { HTTP_LIMITS } from '../../src/web/server/limits.js'
import { commentBy, photoBy, pollWith, postBy } from '../support/federation/entities.js'
import { signedBy } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { register } from '../support/http/oidc-client.js'
import { type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'
import { forgedEnvelope } from './forged-envelope.js'

it('docs/limits.md matches the limits in the code', () => {
  const root = new URL('../../', import.meta.url)
  const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

  expect(read('docs/limits.md')).toBe(limitsPage(read))
})

it('docs/limits.md contains each file of fixed limits', () => {
  const files = ['src', 'workers'].flatMap((folder) =>
    readdirSync(new URL(`../../${folder}/`, import.meta.url), { recursive: true, encoding: 'utf8' }).map((path) =>
      join(folder, path),
    ),
  )

  expect(Object.keys(limitFiles).toSorted()).toEqual(files.filter((path) => path.endsWith('/limits.ts')).toSorted())
})

describe('of a client', () => {
  let api: SampleApiPod
  beforeAll(async () => {
    api = await startSampleApiPod()
  })
  afterAll(() => api.close())

  type Call = (size: number) => Promise<number>

  const send = (options: InjectOptions) => api.app.inject(options).then(({ statusCode }) => statusCode)
  const authorization = () => `Bearer ${api.alice.token}`
  const patch = (payload: string, type = 'application/json') =>
    send({
      method: 'PATCH',
      url: '/api/v1/user',
      payload,
      headers: { authorization: authorization(), 'content-type': type },
    })
  const asText = (size: number) => 'é'.repeat(size)
  const answersOf = (count: number) => Array.from({ length: count }, (_, index) => `answer ${index}`)
  const publish = (post: object) =>
    api.alice.post('/posts', { public: true, body: 'x', ...post }).then(({ status }) => status)
  const profile = (change: object) => api.alice.patch('/user', change).then(({ status }) => status)
  const makeUser = async (password: string) =>
    createUser(api.pod, { username: `u${newGuid().slice(0, 8)}`, password }).then(
      () => 201,
      () => 422,
    )

  it.each<[what: string, max: number, beyond: number, call: Call]>([
    ['bytes of a body', HTTP_LIMITS.apiBodyBytes, 413, (size) => patch('{"bio":"x"}'.padEnd(size))],
    [
      'bytes of a body of OpenID Connect',
      OIDC_LIMITS.bodyBytes,
      413,
      (size) =>
        send({
          method: 'POST',
          url: '/api/openid_connect/clients',
          payload: '{"redirect_uris":["https://c.example/"]}'.padEnd(size),
          headers: { 'content-type': 'application/json' },
        }),
    ],
    [
      'bytes of a form for tokens',
      OIDC_LIMITS.bodyBytes,
      413,
      (size) =>
        send({
          method: 'POST',
          url: '/users/sign_in',
          payload: 'a='.padEnd(size, 'x'),
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        }).then((status) => (status === 413 ? 413 : 200)),
    ],
    [
      'characters of an address',
      HTTP_LIMITS.urlBytes,
      414,
      (size) =>
        send({ url: `/api/v1/user?${'a&'.repeat(size)}`.slice(0, size), headers: { authorization: authorization() } }),
    ],
    [
      'characters of a parameter',
      HTTP_LIMITS.queryParameterCharacters,
      422,
      (size) =>
        send({ url: `/api/v1/search/tags?query=${'x'.repeat(size)}`, headers: { authorization: authorization() } }),
    ],
    [
      'fields of a form',
      HTTP_LIMITS.formFields,
      400,
      (size) =>
        patch('bio=x&'.repeat(size).slice(0, -1), 'application/x-www-form-urlencoded').then((status) =>
          status === 400 ? 400 : 200,
        ),
    ],
    [
      'characters of a comment',
      65_535,
      422,
      (size) => api.alice.post(`/posts/${api.alicePost}/comments`, { body: asText(size) }).then(({ status }) => status),
    ],
    ['characters of a post', 65_535, 422, (size) => publish({ body: asText(size) })],
    [
      'characters of a question',
      255,
      422,
      (size) => publish({ poll: { question: asText(size), poll_answers: ['y', 'n'] } }),
    ],
    [
      'characters of an answer',
      255,
      422,
      (size) => publish({ poll: { question: '?', poll_answers: ['y', asText(size)] } }),
    ],
    ['answers of a poll', 100, 422, (size) => publish({ poll: { question: '?', poll_answers: answersOf(size) } })],
    ['characters of a bio', 65_535, 400, (size) => profile({ bio: asText(size) })],
    ['characters of a name', 32, 400, (size) => profile({ name: asText(size) })],
    ['characters of a place', 255, 400, (size) => profile({ location: asText(size) })],
    ['characters of a gender', 255, 400, (size) => profile({ gender: asText(size) })],
    ['tags of a person', 5, 400, (size) => profile({ tags: answersOf(size).map((_, index) => `tag${index}`) })],
    [
      'characters of a subject',
      255,
      422,
      (size) =>
        api.alice
          .post('/conversations', { subject: asText(size), body: 'x', recipients: [api.bob.guid] })
          .then(({ status }) => status),
    ],
    [
      'characters of a message',
      65_535,
      422,
      (size) =>
        api.alice
          .post('/conversations', { subject: 'x', body: asText(size), recipients: [api.bob.guid] })
          .then(({ status }) => status),
    ],
    ['bytes of a password', 128, 422, (size) => makeUser('x'.repeat(size))],
    [
      'redirect addresses of a client',
      50,
      400,
      (size) =>
        register(api.app, { redirect_uris: answersOf(size).map((_, index) => `https://c.example/${index}`) }).then(
          ({ statusCode }) => statusCode,
        ),
    ],
    [
      'characters of the name of a client',
      255,
      400,
      (size) => register(api.app, { client_name: 'x'.repeat(size) }).then(({ statusCode }) => statusCode),
    ],
  ])('%s: %i, and not one more', async (_what, max, beyond, call) => {
    expect(await call(max)).toBeLessThan(300)
    expect(await call(max + 1)).toBe(beyond)
  })

  it('characters of a password: ten, and not one less', async () => {
    expect([await makeUser('x'.repeat(10)), await makeUser('x'.repeat(9))]).toEqual([201, 422])
  })

  it('answers of a poll: two, and not one less', async () => {
    const poll = (count: number) => publish({ poll: { question: '?', poll_answers: answersOf(count) } })

    expect([await poll(2), await poll(1)]).toEqual([200, 422])
  })

  it('tags that are kept with a text: a hundred, and the others are only shown', async () => {
    const text = Array.from({ length: TEXT_LIMITS.tagsOfText + 1 }, (_, index) => `#t${index}`).join(' ')

    const { status, body } = await api.alice.post(`/posts/${api.alicePost}/comments`, { body: text })

    expect(status).toBe(201)
    const { id } = await api.pod.db('comments').where({ guid: body.guid }).first('id')
    expect(await api.pod.db('taggings').where({ commentId: id })).toHaveLength(TEXT_LIMITS.tagsOfText)
  })
})

describe('of another pod', () => {
  let fakePods: FakePods
  let pod: AttackedPod
  let quin: FakePerson
  beforeAll(async () => {
    fakePods = await startFakePods()
    pod = await startAttackedPod({ fakePods })
    quin = fakePods.person('quin@q.example')
    await pod.addRemotePerson(quin)
  })
  afterAll(async () => {
    await pod.close()
    await fakePods.close()
  })

  const outcomes = async (make: (size: number) => string, max: number) => {
    const stored: boolean[] = []
    for (const size of [max, max + 1]) stored.push(((await pod.send(make(size))).changes['posts'] ?? 0) === 1)
    return stored
  }
  const post = (fields: Parameters<typeof postBy>[1]) => forgedEnvelope(quin, writeEntity(postBy(quin, fields)))

  it.each<[what: string, max: number, make: (size: number) => string]>([
    ['characters of a text', 65_535, (size) => post({ text: '🦊'.repeat(size) })],
    ['characters of a guid', 255, (size) => post({ guid: newGuid().padEnd(size, 'a') })],
    ['characters of a question', 255, (size) => post({ poll: { ...pollWith('y', 'n'), question: 'é'.repeat(size) } })],
    ['characters of an answer', 255, (size) => post({ poll: pollWith('y', 'é'.repeat(size)) })],
    [
      'answers of a poll',
      100,
      (size) => post({ poll: pollWith(...Array.from({ length: size }, (_, index) => `${index}`)) }),
    ],
    ['photos of a post', 100, (size) => post({ photos: Array.from({ length: size }, () => photoBy(quin)) })],
    [
      'levels of XML',
      32,
      (size) =>
        forgedEnvelope(
          quin,
          writeEntity(postBy(quin)).replace('<text>', `${'<a>'.repeat(size - 1)}${'</a>'.repeat(size - 1)}<text>`),
        ),
    ],
    [
      'elements of XML',
      20_000,
      (size) => {
        const xml = writeEntity(postBy(quin))
        return forgedEnvelope(
          quin,
          xml.replace('<text>', `${'<a/>'.repeat(size - (xml.match(/<[a-z]/g) ?? []).length)}<text>`),
        )
      },
    ],
  ])('%s: %i, and not one more', async (_what, max, make) => {
    expect(await outcomes(make, max)).toEqual([true, false])
  })

  it('characters of the program a post was written with: 255, and the others are cut off', async () => {
    const entity = postBy(quin, { provider_display_name: `${'x'.repeat(255)}y` })

    await pod.send(forgedEnvelope(quin, writeEntity(entity)))

    const { providerDisplayName: kept } = await pod
      .db('posts')
      .where({ guid: entity.guid })
      .first('providerDisplayName')
    expect(kept).toBe('x'.repeat(255))
  })

  it('bytes of a message: eight megabytes, and not one more', async () => {
    const statusOf = (size: number) =>
      pod.app
        .inject({ method: 'POST', url: '/receive/public', payload: Buffer.alloc(size, 'x') })
        .then(({ statusCode }) => statusCode)

    expect([await statusOf(RECEIVE_LIMITS.bodyBytes), await statusOf(RECEIVE_LIMITS.bodyBytes + 1)]).toEqual([202, 413])
    await pod.waitUntilIdle()
  })

  it.each<[what: string, max: number, extra: (size: number) => Elements]>([
    ['unknown elements', 32, (size) => Array.from({ length: size }, (_, index) => [`x${index}`, 'y'] as const)],
    ['bytes of such an element', 4_096, (size) => [['x', 'y'.repeat(size)]]],
    ['characters of its name', 64, (size) => [['x'.repeat(size), 'y']]],
  ])('%s in a comment: %i, and not one more', async (_what, max, extra) => {
    const parent = postBy(quin)
    await pod.send(forgedEnvelope(quin, writeEntity(parent)))
    const fatesOfComments: (readonly string[])[] = []
    for (const size of [max, max + 1]) {
      const { author, guid, parent_guid, text, created_at, ...rest } = commentBy(quin, parent)
      const own: Elements = [
        ['author', author],
        ['guid', guid],
        ['parent_guid', parent_guid],
        ['text', text],
        ['created_at', '2024-05-08T07:08:09Z'],
      ]
      const elements: Elements = [...own, ...extra(size)]
      const comment = signedBy(quin, { ...rest, author, guid, parent_guid, text, created_at, elements })
      const { changes, faults } = await pod.send(forgedEnvelope(quin, writeEntity(comment)))
      fatesOfComments.push(changes['comments'] === 1 ? ['stored'] : faults.map(String))
    }
    expect(fatesOfComments).toEqual([['stored'], ['ValidationError']])
  })

  it('how far ahead a clock may be, and how old a post', async () => {
    const writeAt = async (time: Date) => {
      const entity = postBy(quin, { created_at: time })
      await pod.send(forgedEnvelope(quin, writeEntity(entity)))
      return (await pod.db('posts').where({ guid: entity.guid }).first('createdAt')).createdAt.getTime() as number
    }
    const seconds = (time: number) => Math.floor(time / 1_000) * 1_000
    const soon = seconds(Date.now() + INBOUND_LIMITS.clockSkewMs - 60_000)
    expect(await writeAt(new Date(soon))).toBe(soon)
    expect(await writeAt(new Date(soon + 3_600_000))).toBeLessThan(soon)
    const old = INBOUND_LIMITS.oldestPost.getTime()
    expect(await writeAt(new Date(old))).toBe(old)
    expect(await writeAt(new Date(old - 1_000))).toBeGreaterThan(soon - 3_600_000)
  })

  it('mentions that are kept with a text: a hundred', async () => {
    const { ann } = await pod.people('ann')
    const names = Array.from({ length: TEXT_LIMITS.mentionsOfText }, (_, index) => `@{nobody${index}@pod.example}`)
    const root = postBy(quin, { text: `${names.join(' ')} @{${ann.account.address}}` })
    const within = postBy(quin, { text: `${names.slice(1).join(' ')} @{${ann.account.address}}` })

    await pod.send(...[root, within].map((entity) => forgedEnvelope(quin, writeEntity(entity))))

    const told = await pod.db('mentions').join('posts', 'posts.id', 'mentions.postId').pluck('posts.guid')
    expect(told).toEqual([within.guid])
  })
})

it('are those of the design', () => {
  expect(HTTP_LIMITS).toMatchObject({
    headerBytes: 16_384,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 30_000,
    idleTimeoutMs: 60_000,
    connections: 2_000,
    requestsPerSocket: 1_000,
  })
  expect(REMOTE_LIMITS).toMatchObject({
    connectMs: 5_000,
    exchangeMs: 30_000,
    redirects: 4,
    maxConcurrent: 768,
    fetchesPerHost: 8,
    deliveriesPerHost: 4,
    fetchesPerHostPerMinute: 600,
  })
  expect(DELIVERY_LIMITS).toMatchObject({ maxRefusals: 10, maxRefusalsOfContact: 20, maxConcurrent: 4 })
  expect(UNDELIVERED_LIMITS).toMatchObject({ asleepAfterDays: 14, expiresAfterDays: 14 })
  expect(RECEIVE_LIMITS).toMatchObject({
    bodyBytes: 8_388_608,
    messagesPerJob: 128,
    bytesPerJob: 262_144,
    queuedMessages: 500_000,
    fairFromMessages: 1_000,
    messagesOfSource: 100_000,
  })
})
