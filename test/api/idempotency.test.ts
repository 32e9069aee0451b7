import type { FastifyPluginAsync } from 'fastify'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/domain/accounts/scopes.js'
import { hashToken } from '../../src/domain/accounts/token-hash.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { inRequestTransaction } from '../../src/persistence/database/transactions.js'
import { AccessToken } from '../../src/persistence/models/access-token.js'
import type { Services } from '../../src/services/services.js'
import { addIdempotency } from '../../src/web/api/idempotency.js'
import { buildApp } from '../../src/web/server/app.js'
import { addBodyReaders } from '../../src/web/server/bodies.js'
import { prune } from '../../workers/handlers/maintenance.js'
import { noise } from '../support/files/pictures.js'
import type { ApiPerson, ApiResponse } from '../support/pods/api-pod.js'
import { expectError } from '../support/pods/api-pod.js'
import { buildPod, NO_EVENT_LOOP_LIMIT, type TestPod } from '../support/pods/build-pod.js'
import { formOf, type PhotoPod, pictureField, startPhotoPod } from '../support/pods/photo-pod.js'
import { type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'

const CONCURRENT_REQUESTS = 50
const A_DAY = 86_400_000

describe('a POST with an Idempotency-Key', () => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  beforeAll(async () => {
    api = await startSampleApiPod({ environment: { DATABASE_POOL: '20' } })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())
  beforeEach(() => api.pod.db('posts').where({ authorId: alice.viewer.personId }).delete())

  interface Request {
    readonly token?: string
    readonly path?: string
    readonly body?: object | string
    readonly headers?: Readonly<Record<string, string>>
  }
  const hello = { public: true, body: 'Hello' }
  const post = (key: string, { path = '/posts', body = hello, token = alice.token, headers = {} }: Request = {}) =>
    api.call({
      method: 'POST',
      path,
      body,
      ...(token !== '' && { token }),
      headers: { 'idempotency-key': key, ...headers },
    })
  const posts = (): Promise<string[]> => api.pod.db('posts').where({ authorId: alice.viewer.personId }).pluck('guid')

  function expectReplay(again: ApiResponse, first: ApiResponse): void {
    expect(first.headers['idempotency-replayed']).toBeUndefined()
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect([again.status, again.text, again.headers['content-type']]).toEqual([
      first.status,
      first.text,
      first.headers['content-type'],
    ])
    expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
  }

  it('has one effect, and a repeated request gets the same response', async () => {
    const first = await post('once')
    const again = await post('once')

    expect(first.status).toBe(200)
    expectReplay(again, first)
    expect(await posts()).toEqual([first.body.guid])
  })

  it.each<readonly [string, () => Request]>([
    ['a post', () => ({ body: { ...hello, body: 'Marked' } })],
    ['a comment', () => ({ path: `/posts/${api.bobPoll}/comments`, body: { body: 'Hello' } })],
    ['a like', () => ({ path: `/posts/${api.bobPoll}/likes`, body: {} })],
    ['a reshare', () => ({ path: `/posts/${api.bobPoll}/reshares`, body: {} })],
    ['a subscription', () => ({ path: `/posts/${api.carolPoll}/subscribe`, body: {} })],
    ['an aspect', () => ({ path: '/aspects', body: { name: 'Marked' } })],
    ['a conversation', () => ({ path: '/conversations', body: { subject: 'S', body: 'B', recipients: [bob.guid] } })],
  ])('is marked as done in the transaction of its effect: %s', async (what, request) => {
    const key = `marked-${what.replace(' ', '-')}`
    expect((await post(key, request())).status).toBeLessThan(300)
    expect(await api.pod.db('idempotencyKeys').where({ key }).pluck('done')).toEqual([true])
  })

  it('a repeated request gets the stored response, regardless of later changes', async () => {
    const first = await post('then')
    expect((await alice.delete(`/posts/${first.body.guid}`)).status).toBe(204)

    expectReplay(await post('then'), first)
  })

  it.each([
    ['nothing in its answer', () => `/posts/${api.bobPost}/likes`, 204, 409],
    ['a status without a body', () => `/users/${api.eve.guid}/block`, 201, 409],
  ])('has one effect also with %s', async (_what, path, status, otherwise) => {
    const first = await post(path(), { path: path(), body: {} })
    expect(first.status).toBe(status)
    expectReplay(await post(path(), { path: path(), body: {} }), first)
    expectError(await post(`another-${status}`, { path: path(), body: {} }), otherwise)
  })

  it('returns the stored refusal, also when the request would now succeed', async () => {
    const tag = { name: 'tea' }
    expect((await alice.post('/tag_followings', tag)).status).toBe(204)
    const first = await post('refused', { path: '/tag_followings', body: tag })
    expectError(first, 409)
    expect((await alice.delete('/tag_followings/tea')).status).toBe(204)

    expectReplay(await post('refused', { path: '/tag_followings', body: tag }), first)
  })

  it('returns the same response also for a request with coordinates', async () => {
    const request = { body: { ...hello, location: { address: 'Home', lat: 1, lng: -2 } } }
    const first = await post('home', request)
    expect([first.status, first.text]).toEqual([200, expect.stringContaining('"lat":1.0')])

    expectReplay(await post('home', request), first)
  })

  it.each<readonly [string, Request]>([
    ['body', { body: { public: true, body: 'Goodbye' } }],
    ['path', { path: '/tag_followings', body: hello }],
    ['query', { path: '/posts?a=b' }],
  ])('is refused with another %s than in the first request', async (part, request) => {
    const first = await post(`another ${part}`.replace(' ', '-'))

    expectError(await post(`another-${part}`, request), 422)
    expect(await posts()).toEqual([first.body.guid])
  })

  it.each(['with a blank', 'x'.repeat(256), 'schlüssel', '', '\t'])('refuses an invalid key: %j', async (key) => {
    expectError(await post(key), 400)
    expect(await posts()).toEqual([])
  })

  it('accepts keys of every allowed length', async () => {
    expect((await post('!')).status).toBe(200)
    expect((await post('~'.repeat(255))).status).toBe(200)
  })

  it('authentication comes first', async () => {
    expectError(await post('a b', { token: 'f'.repeat(64) }), 401)
    expectError(await post('a b', { token: (await alice.with()).token }), 403)
  })

  it('keys of other users and other clients are independent', async () => {
    const { token } = await alice.with('public:modify')
    const answers = [await post('shared'), await post('shared', { token }), await post('shared', { token: bob.token })]

    expect(answers.map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, undefined, undefined])
    expect(new Set(answers.map(({ body }) => body.guid)).size).toBe(3)
  })

  it('a later token of the same client has the same keys', async () => {
    const first = await post('later')
    const { authorizationId } = await AccessToken.query(api.pod.db)
      .findOne({ tokenHash: hashToken(alice.token) })
      .throwIfNotFound()
    await AccessToken.query(api.pod.db).insert({ authorizationId, tokenHash: hashToken('the-next-token') })

    expectReplay(await post('later', { token: 'the-next-token' }), first)
    expectReplay(await post('later', { token: '', path: `/posts?access_token=${alice.token}` }), first)
  })

  it('accepts a form that contains the token', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const form = (token: string, text = 'Form') => ({
      token: '',
      headers,
      body: `public=true&body=${text}&access_token=${token}`,
    })
    const first = await post('form', form(alice.token))
    expect([first.status, first.body.body]).toEqual([200, 'Form'])

    expectReplay(await post('form', form(alice.token)), first)
    expectError(await post('form', form(alice.token, 'Other')), 422)
    expect(await posts()).toEqual([first.body.guid])
  })

  it(`is done once by ${CONCURRENT_REQUESTS} at the same moment, at two web processes`, async () => {
    const second = await buildApp(api.pod, { limits: NO_EVENT_LOOP_LIMIT })
    const ask = async (number: number): Promise<number> => {
      const app = number % 2 === 0 ? api.app : second
      const headers = { authorization: `Bearer ${alice.token}`, 'idempotency-key': 'together' }
      const answer = await app.inject({ method: 'POST', url: '/api/v1/posts', payload: hello, headers })
      expect(answer.statusCode === 200 || answer.headers['retry-after'] !== undefined).toBe(true)
      return answer.statusCode
    }

    const statuses = await Promise.all(Array.from({ length: CONCURRENT_REQUESTS }, (_, number) => ask(number)))

    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0)
    expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([])
    expect(await ask(1)).toBe(200)
    expect(await posts()).toHaveLength(1)
    await second.close()
  })

  it('a key is reusable after a day, before and after cleanup', async () => {
    const [cleared, kept] = [await post('cleared'), await post('kept')]
    const old = (key: string) =>
      api.pod
        .db('idempotencyKeys')
        .where({ key })
        .update({ createdAt: new Date(Date.now() - A_DAY - 1_000) })
    await post('young')
    await old('cleared')
    await prune(api.pod)
    await old('kept')
    const keys = await api.pod.db('idempotencyKeys').whereIn('key', ['cleared', 'kept', 'young']).pluck('key')
    expect(keys.toSorted()).toEqual(['kept', 'young'])

    for (const [key, first] of [['cleared', cleared] as const, ['kept', kept] as const]) {
      const again = await post(key)
      expect([again.status, again.headers['idempotency-replayed']]).toEqual([200, undefined])
      expect(again.body.guid).not.toBe(first.body.guid)
      expectReplay(await post(key), again)
    }
  })

  it('has no second effect after the response was lost', async () => {
    const { db } = api.pod
    await db.raw(`alter table idempotency_keys add constraint no_answer check (key <> 'no-answer' or status is null)`)
    const first = await post('no-answer')
    await db.raw('alter table idempotency_keys drop constraint no_answer')
    expect(first.status).toBe(200)
    const soon = await post('no-answer')
    expectError(soon, 409)
    expect(soon.headers['retry-after']).toBe('2')

    await db('idempotencyKeys')
      .where({ key: 'no-answer' })
      .update({ claimedAt: new Date(Date.now() - 241_000) })

    const late = await post('no-answer')
    expectError(late, 409)
    expect(late.headers['retry-after']).toBeUndefined()
    expect(await posts()).toEqual([first.body.guid])
  })

  it('is the same request with its fields in another order', async () => {
    const location = { address: 'Home', lat: 1, lng: 2 }
    const first = await post('order', { body: { public: true, body: 'Hello', location } })

    const turned = { location: { lng: 2, lat: 1, address: 'Home' }, body: 'Hello', public: true }
    expectReplay(await post('order', { body: turned }), first)
    expectError(await post('order', { body: { ...turned, location: { ...location, lat: 2, lng: 1 } } }), 422)
  })

  it('is another request with a list in another order', async () => {
    const poll = (...answers: string[]) => ({ body: { ...hello, poll: { question: '?', poll_answers: answers } } })
    expect((await post('list', poll('yes', 'no'))).status).toBe(200)

    expectError(await post('list', poll('no', 'yes')), 422)
  })

  it.each([
    ['where a body is needed', () => '/posts', 422],
    ['where none is needed', () => `/users/${api.dan.guid}/block`, 201],
  ])('is the same request with any form of an empty body, %s', async (_where, path, status) => {
    const send = (type?: string, payload = '') =>
      api.app.inject({
        method: 'POST',
        url: `/api/v1${path()}`,
        payload,
        headers: {
          authorization: `Bearer ${alice.token}`,
          'idempotency-key': `nothing-${status}`,
          ...(type && { 'content-type': type }),
        },
      })
    const first = await send()
    const others = [
      await send('application/json'),
      await send('application/json', '{}'),
      await send('application/x-www-form-urlencoded'),
    ]

    expect([first.statusCode, first.headers['idempotency-replayed']]).toEqual([status, undefined])
    for (const { statusCode, headers } of others) {
      expect([statusCode, headers['idempotency-replayed']]).toEqual([status, 'true'])
    }
  })

  it('a body nested too deeply to compare is rejected', async () => {
    const body = `{"public":true,"body":"Deep","more":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
    const headers = { 'content-type': 'application/json' }

    expectError(await post('deep', { body, headers }), 422)
    expect((await post('flat')).status).toBe(200)
  })

  it('is ignored for other methods', async () => {
    const headers = { 'idempotency-key': 'not a key' }
    const answer = await api.call({ path: '/user', token: alice.token, headers })

    expect(answer.status).toBe(200)
  })
})

describe('an upload with an Idempotency-Key', () => {
  let api: PhotoPod
  let alice: ApiPerson
  let photo: Buffer
  beforeAll(async () => {
    api = await startPhotoPod()
    ;({ alice } = api)
    api.startWorkers()
    photo = await noise(300, 300).jpeg().toBuffer()
  })
  afterAll(() => api.close())

  const upload = (key: string, image: Buffer, boundary: string, pending = 'true') => {
    const { body, type } = formOf([{ name: 'pending', value: pending }, pictureField(image)], boundary)
    const headers = { 'content-type': type, 'idempotency-key': key }
    return api.call({ method: 'POST', path: '/photos', token: alice.token, body, headers })
  }
  const photos = async () => (await alice.get('/photos')).body.length

  it('has one effect, also if a client sends the form again with another boundary', async () => {
    const first = await upload('photo', photo, 'one-boundary')
    const before = await photos()
    const again = await upload('photo', photo, 'quite-another-boundary')

    expect(first.status).toBe(200)
    expect([again.status, again.text, again.headers['idempotency-replayed']]).toEqual([200, first.text, 'true'])
    expect(await photos()).toBe(before)
  })

  it('is refused with another picture or another field', async () => {
    expect((await upload('other', photo, 'b')).status).toBe(200)
    const before = await photos()
    const changed = Buffer.from(photo)
    changed[changed.length - 1] = 0

    expectError(await upload('other', changed, 'b'), 422)
    expectError(await upload('other', photo.subarray(1), 'b'), 422)
    expectError(await upload('other', photo, 'b', 'false'), 422)
    expect(await photos()).toBe(before)
  })
})

describe('a POST with an Idempotency-Key after a failure', () => {
  let pod: TestPod
  let token: string
  let calls = 0
  /** What the route does; it writes with the pod of its request. */
  let answer: (pod: Services) => Promise<unknown> = async () => ({ calls })
  const api: FastifyPluginAsync = async (app) => {
    await addBodyReaders(app)
    addIdempotency(app)
    app.post('/try', { config: { scopes: ['public:modify'] } }, async (request) => {
      calls += 1
      return answer(request.services)
    })
  }
  beforeAll(async () => {
    pod = await buildPod({ api })
    await pod.people('alice')
    ;({ accessToken: token } = await mintToken(pod.pod, 'alice', { scopes: SCOPES, lifetime: 3_600 }))
  })
  afterAll(() => pod.close())
  beforeEach(() => {
    calls = 0
    answer = async () => ({ calls })
  })

  const attempt = (key: string) =>
    pod.inject({
      method: 'POST',
      url: '/api/v1/try',
      headers: { authorization: `Bearer ${token}`, 'idempotency-key': key },
    })

  /** A request that is in the middle of its work, and the way to let it end. */
  async function begin(key: string, then: (value: unknown, pod: Services) => unknown = (value) => value) {
    let end: (value: unknown) => void = () => undefined
    const under = new Promise<unknown>((resolve) => {
      end = resolve
    })
    const begun = new Promise<void>((resolve) => {
      answer = (pod) => {
        resolve()
        return under.then((value) => then(value, pod))
      }
    })
    const answered = attempt(key)
    await begun
    answer = async () => ({ calls })
    return { end, answered }
  }

  it('an internal error is not stored, and the next attempt runs the request', async () => {
    answer = () => Promise.reject(new Error('a bug'))
    expect((await attempt('fault')).statusCode).toBe(500)
    answer = async () => ({ calls })

    expect((await attempt('fault')).json()).toEqual({ calls: 2 })
    expect((await attempt('fault')).json()).toEqual({ calls: 2 })
  })

  it('a concurrent request with the same key is a 409 with Retry-After', async () => {
    const { end, answered } = await begin('slow')

    const meanwhile = await attempt('slow')
    expect([meanwhile.statusCode, meanwhile.headers['retry-after']]).toEqual([409, '2'])
    end({ calls: 'one' })
    expect((await answered).json()).toEqual({ calls: 'one' })
    expect((await attempt('slow')).json()).toEqual({ calls: 'one' })
    expect(calls).toBe(1)
  })

  it('a request interrupted by a process crash is run again after a while', async () => {
    const { end, answered } = await begin('crash')
    expect((await attempt('crash')).statusCode).toBe(409)

    await passTime('crash', 239)
    expect((await attempt('crash')).statusCode).toBe(409)
    await passTime('crash', 241)
    expect((await attempt('crash')).json()).toEqual({ calls: 2 })

    // The process was slow, not dead: the response stored in the meantime stays.
    end({ calls: 'late' })
    expect((await answered).json()).toEqual({ calls: 'late' })
    expect((await attempt('crash')).json()).toEqual({ calls: 2 })
  })

  describe('a completed effect is never repeated:', () => {
    const done = () => pod.pod.db('periodic').where({ name: 'done' })
    const doIt = (pod: Services) =>
      inRequestTransaction(pod, (transaction) =>
        transaction('periodic').insert({ name: 'done', lastRunAt: new Date() }),
      )
    beforeEach(() => done().delete())

    it('a crash before the response was stored does not repeat the effect', async () => {
      answer = doIt
      await attempt('half-done')
      // As if the answer had not been kept.
      await pod.pod
        .db('idempotencyKeys')
        .where({ key: 'half-done' })
        .update({ status: null, fingerprint: null, headers: null, body: null })
      const soon = await attempt('half-done')
      expect([soon.statusCode, soon.headers['retry-after']]).toEqual([409, '2'])

      await passTime('half-done', 241)
      const late = await attempt('half-done')
      expect([late.statusCode, late.headers['retry-after']]).toEqual([409, undefined])
      expect(late.json()).toMatchObject({ reason: 'idempotency_result_lost' })
      expect(calls).toBe(1)
    })

    it('an error after the effect does not repeat the effect', async () => {
      answer = async (pod) => {
        await doIt(pod)
        throw new Error('a bug')
      }
      expect((await attempt('bug-after')).statusCode).toBe(500)

      expect((await attempt('bug-after')).statusCode).toBe(409)
      await passTime('bug-after', 241)
      expect((await attempt('bug-after')).statusCode).toBe(409)
      expect(await done()).toHaveLength(1)
      expect(calls).toBe(1)
    })

    it('an effect that was rolled back is repeated', async () => {
      answer = (pod) =>
        inRequestTransaction(pod, async () => {
          throw new Error('a bug')
        })
      expect((await attempt('bug-within')).statusCode).toBe(500)
      answer = doIt

      expect((await attempt('bug-within')).statusCode).toBe(200)
      expect(await done()).toHaveLength(1)
    })

    it('a request that counts as dead has no effect after another one has claimed its key', async () => {
      const { end, answered } = await begin('asleep', (_value, pod) => doIt(pod))
      await passTime('asleep', 241)
      expect((await attempt('asleep')).json()).toEqual({ calls: 2 })

      end({})

      expect((await answered).statusCode).toBe(500)
      expect(await done()).toEqual([])
      expect((await attempt('asleep')).json()).toEqual({ calls: 2 })
    })
  })

  it('the key is deleted with the authorization', async () => {
    await attempt('mine')
    expect(await pod.pod.db('idempotencyKeys').where({ key: 'mine' })).toHaveLength(1)

    await pod.pod.db('authorizations').delete()

    expect(await pod.pod.db('idempotencyKeys')).toEqual([])
  })

  function passTime(key: string, seconds: number) {
    return pod.pod
      .db('idempotencyKeys')
      .where({ key })
      .update({ claimedAt: new Date(Date.now() - seconds * 1_000) })
  }
})
