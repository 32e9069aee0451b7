import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashToken } from '../../src/domain/accounts/token-hash.js'
import { revokeToken } from '../../src/domain/accounts/tokens.js'
import { AccessToken } from '../../src/persistence/models/access-token.js'
import { type ApiPerson, type ApiPod, expectError, startApiPod } from '../support/pods/api-pod.js'
import { publish } from '../support/pods/sample-api-pod.js'

let api: ApiPod
let alice: ApiPerson
beforeAll(async () => {
  api = await startApiPod()
  ;({ alice } = await api.people('alice'))
})
afterAll(() => api.close())

const INVALID = { error: 'invalid_token', error_description: expect.any(String) }

it('refuses requests without a token', async () => {
  const answer = await api.call({ path: '/user' })

  expectError(answer, 401)
  expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
})

it('an unknown token is rejected with a reason', async () => {
  const answer = await api.call({ path: '/user', token: 'x'.repeat(64) })

  expectError(answer, 401)
  expect(answer.headers['www-authenticate']).toContain('error="invalid_token"')
  expect(answer.body).toMatchObject(INVALID)
})

describe('a token that is no longer valid', () => {
  it('has expired', async () => {
    const { token } = await alice.with('profile', 'email')
    expect((await api.call({ path: '/user', token })).status).toBe(200)

    await AccessToken.query(api.pod.db)
      .patch({ expiresAt: new Date(Date.now() - 1_000) })
      .where({ tokenHash: hashToken(token) })

    const answer = await api.call({ path: '/user', token })
    expectError(answer, 401)
    expect(answer.body).toMatchObject(INVALID)
  })

  it('is of an authorization that was revoked', async () => {
    const { token } = await alice.with('profile', 'nickname')
    expect((await api.call({ path: '/user', token })).status).toBe(200)

    await revokeToken(api.pod, token)

    const answer = await api.call({ path: '/user', token })
    expectError(answer, 401)
    expect(answer.body).toMatchObject(INVALID)
  })
})

it('answers a missing scope with 403 and its name, never with 401', async () => {
  const answer = await (await alice.with()).get('/user')

  expectError(answer, 403)
  expect(answer.headers['www-authenticate']).toMatch(/^Bearer .*error="insufficient_scope".*scope="profile"/)
  expect(Object.keys(answer.body).sort()).toEqual(['code', 'message', 'reason'])
  expect(answer.body.message).toContain('insufficient_scope')
})

it('takes a token from the query, and from a form', async () => {
  expect((await api.call({ path: `/user?access_token=${alice.token}` })).status).toBe(200)

  const form = await api.call({
    method: 'PATCH',
    path: '/user',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `bio=mine&access_token=${alice.token}`,
  })
  expect(form).toMatchObject({ status: 200, body: { bio: 'mine' } })

  const post = await publish(api, alice, { text: 'Like me', public: true })
  const like = await api.call({
    method: 'POST',
    path: `/posts/${post}/likes`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `access_token=${alice.token}`,
  })
  expect(like.status).toBe(204)
})

it('refuses a request with two tokens', async () => {
  const answer = await api.call({ path: `/user?access_token=${alice.token}`, token: alice.token })

  expectError(answer, 400)
  expect(answer.body.error).toBe('invalid_request')
})

it('answers JSON', async () => {
  const answer = await api.call({ path: '/user', token: alice.token, headers: { accept: 'text/html' } })

  expect(answer.headers['content-type']).toMatch(/^application\/json/)
})

it('answers 404 for unknown paths and unknown methods', async () => {
  expectError(await alice.get('/nonsense'), 404)
  expectError(await alice.delete('/user'), 404)
})

it('ignores duplicate slashes and the ending .json', async () => {
  for (const path of ['//user', '/user/', '///user.json']) expect((await alice.get(path)).status).toBe(200)
  expect((await alice.post('//posts', { body: 'Two slashes', public: true })).status).toBe(200)
})

describe('a body that cannot be read', () => {
  it.each(['{', '[]', '5', 'null', '"text"'])('%s is malformed', async (body) => {
    const headers = { 'content-type': 'application/json' }

    expectError(await api.call({ method: 'PATCH', path: '/user', token: alice.token, headers, body }), 400)
  })

  it('has an unsupported media type', async () => {
    const headers = { 'content-type': 'text/xml' }

    expectError(await api.call({ method: 'PATCH', path: '/user', token: alice.token, headers, body: '<a/>' }), 415)
  })

  it('is too large', async () => {
    expectError(await alice.patch('/user', { bio: 'x'.repeat(1024 * 1024) }), 413)
  })
})

it('web apps of other origins may send requests and read the paging links', async () => {
  const origin = 'https://app.example'

  const preflight = await api.app.inject({
    method: 'OPTIONS',
    url: '/api/v1/user',
    headers: {
      origin,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'authorization, content-type',
    },
  })
  const answer = await api.call({ path: '/user', token: alice.token, headers: { origin } })

  expect(preflight.statusCode).toBeLessThan(300)
  expect(preflight.headers['access-control-allow-origin']).toBe('*')
  expect(preflight.headers['access-control-allow-methods']).toContain('PATCH')
  expect(String(preflight.headers['access-control-allow-headers']).toLowerCase()).toContain('authorization')
  expect(answer.headers['access-control-allow-origin']).toBe('*')
  expect(answer.headers['access-control-expose-headers']).toContain('Link')
  expect(answer.headers['access-control-allow-credentials']).toBe(undefined)
})

// Both are looked at in every answer of every test as well, wherever they stand in it.
it('writes times with three decimals, in UTC', async () => {
  await publish(api, alice, { text: 'now', public: true })

  const [post] = (await alice.get(`/users/${alice.guid}/posts`)).body

  expect(post.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

it('describes a person with guid, address and picture', async () => {
  await publish(api, alice, { text: `@{${alice.address}}`, public: true })

  const [post] = (await alice.get(`/users/${alice.guid}/posts`)).body

  for (const person of [post.author, ...post.mentioned_people]) {
    expect(person).toMatchObject({ network_id: alice.address, diaspora_id: alice.address })
    expect(new URL(person.avatar).href).toBe(person.avatar)
  }
  expect(post.mentioned_people).toHaveLength(1)
})
