import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { pino } from 'pino'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { AccessToken, Authorization } from '../../../src/persistence/models/access-token.js'
import { User } from '../../../src/persistence/models/user.js'
import { apiRoutes } from '../../../src/web/routes/api/api-routes.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

/** The form of a call that takes a body, before there is one in the API itself. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  await apiRoutes(app, {})
  app.post(
    '/echo',
    { schema: { body: Type.Object({}) }, config: { scopes: ['interactions', 'public:read'] } },
    async (request) => ({ personId: request.viewer.personId }),
  )
  app.get('/open', { config: { public: true } }, async (request) => ({ personId: request.viewer.personId }))
}

const UNKNOWN = 'f'.repeat(64)
const form = { 'content-type': 'application/x-www-form-urlencoded' }

describe('authentication', () => {
  const lines: string[] = []
  let pod: TestPod
  beforeAll(async () => {
    const log = pino(
      { level: 'trace' },
      new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) }),
    )
    pod = await buildPod({ api: routes, log })
  })
  afterAll(() => pod.close())

  async function tokenOf(name: string): Promise<string> {
    return (await pod.people(name))[name]?.token ?? ''
  }

  it('answers 401 without a token', async () => {
    const response = await pod.inject('/api/v1/user')

    expect(response.statusCode).toBe(401)
    expect(response.headers['www-authenticate']).toBe('Bearer realm="pod.example"')
    expect(response.json()).toMatchObject({ code: 401, message: expect.any(String), error: expect.any(String) })
  })

  it.each(['Basic YWxpY2U6c2VjcmV0', 'Bearer', 'Bearer ', `Token ${UNKNOWN}`])(
    'treats the header "%s" as a missing token',
    async (authorization) => {
      const response = await pod.inject({ url: '/api/v1/user', headers: { authorization } })

      expect(response.statusCode).toBe(401)
      expect(response.headers['www-authenticate']).toBe('Bearer realm="pod.example"')
    },
  )

  it('refuses an unknown token with an OAuth error', async () => {
    const response = await pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${UNKNOWN}` } })

    expect(response.statusCode).toBe(401)
    expect(response.headers['www-authenticate']).toMatch(
      /^Bearer realm="pod\.example", error="invalid_token", error_description="[^"]+"$/,
    )
    expect(response.json()).toEqual({
      code: 401,
      message: expect.any(String),
      reason: 'token_invalid',
      error: 'invalid_token',
      error_description: expect.any(String),
    })
  })

  it('refuses a token that has expired by the clock of the database', async () => {
    const { alice } = await pod.people('alice')
    const client = await alice.with('profile')
    const [latest] = await AccessToken.query(pod.pod.db).orderBy('id', 'desc').limit(1)
    await AccessToken.query(pod.pod.db)
      .findById(latest?.id ?? 0)
      .patch({ expiresAt: pod.pod.db.fn.now() as unknown as Date })

    const response = await client.get('/api/v1/user')

    expect(response.statusCode).toBe(401)
    expect(response.json()).toMatchObject({ error: 'invalid_token' })
  })

  it('refuses a token whose authorization is revoked', async () => {
    const { alice } = await pod.people('alice')
    const client = await alice.with('profile')
    expect((await client.get('/api/v1/user')).statusCode).toBe(200)
    const [latest] = await Authorization.query(pod.pod.db).orderBy('id', 'desc').limit(1)
    await Authorization.query(pod.pod.db).deleteById(latest?.id ?? 0)

    expect((await client.get('/api/v1/user')).statusCode).toBe(401)
  })

  it('refuses the tokens of a closed account', async () => {
    const { closing } = await pod.people('closing')
    await closeUser(pod.pod, 'closing')

    expect((await closing.get('/api/v1/user')).statusCode).toBe(401)
  })

  it('refuses the tokens of an account that is marked closed but still has them', async () => {
    const { leaving } = await pod.people('leaving')
    await User.query(pod.pod.db).where({ username: 'leaving' }).patch({ closedAt: new Date() })

    expect((await leaving.get('/api/v1/user')).json()).toMatchObject({ code: 401, error: 'invalid_token' })
  })

  it('refuses the tokens of a locked account', async () => {
    const { locked } = await pod.people('locked')
    await User.query(pod.pod.db).where({ username: 'locked' }).patch({ lockedAt: new Date() })

    expect((await locked.get('/api/v1/user')).json()).toMatchObject({ code: 401, error: 'invalid_token' })
  })

  it('refuses a token without the scope, and never with a 401', async () => {
    const { alice } = await pod.people('alice')

    const response = await (await alice.with()).get('/api/v1/user')

    expect(response.statusCode).toBe(403)
    expect(response.headers['www-authenticate']).toBe(
      'Bearer realm="pod.example", error="insufficient_scope", scope="profile"',
    )
    expect(response.json()).toEqual({
      code: 403,
      message: expect.stringContaining('insufficient_scope'),
      reason: 'insufficient_scope',
    })
  })

  it('gives public:read to every token, requested or not', async () => {
    const { alice } = await pod.people('alice')
    const client = await alice.with('interactions')
    await Authorization.query(pod.pod.db)
      .where('scopes', '@>', ['interactions'])
      .patch({ scopes: ['interactions'] })

    expect((await client.post('/api/v1/echo', {})).statusCode).toBe(200)
  })

  it('follows the authorization when its scopes change', async () => {
    const { alice } = await pod.people('alice')
    const client = await alice.with('profile')
    const [latest] = await Authorization.query(pod.pod.db).orderBy('id', 'desc').limit(1)

    await latest?.$query(pod.pod.db).patch({ scopes: ['openid'] })

    expect((await client.get('/api/v1/user')).statusCode).toBe(403)
  })

  it('reads a token from the query', async () => {
    const response = await pod.inject(`/api/v1/user?access_token=${await tokenOf('bob')}`)

    expect(response.statusCode).toBe(200)
  })

  it('reads a token from a form', async () => {
    const payload = `access_token=${await tokenOf('bob')}`
    const response = await pod.inject({ method: 'POST', url: '/api/v1/echo', headers: form, payload })

    expect(response.statusCode).toBe(200)
  })

  it('treats access_token in JSON as an ordinary field', async () => {
    const payload = { access_token: await tokenOf('bob') }
    const response = await pod.inject({ method: 'POST', url: '/api/v1/echo', payload })

    expect(response.statusCode).toBe(401)
  })

  it('accepts the name of the scheme in any case', async () => {
    const authorization = `bearer ${await tokenOf('bob')}`

    expect((await pod.inject({ url: '/api/v1/user', headers: { authorization } })).statusCode).toBe(200)
  })

  it.each<[string, (token: string) => object]>([
    ['header and query', (t) => ({ url: `/api/v1/echo?access_token=${t}`, headers: bearer(t) })],
    ['query twice', (t) => ({ url: `/api/v1/echo?access_token=${t}&access_token=${t}` })],
    ['header and form', (t) => ({ headers: { ...bearer(t), ...form }, payload: `access_token=${t}` })],
    ['query and form', (t) => ({ url: `/api/v1/echo?access_token=${t}`, headers: form, payload: `access_token=${t}` })],
    ['form twice', (t) => ({ headers: form, payload: `access_token[]=${t}&access_token[]=${t}` })],
  ])('refuses a token that is given in %s', async (_name, request) => {
    const response = await pod.inject({ method: 'POST', url: '/api/v1/echo', ...request(await tokenOf('bob')) })

    expect(response.statusCode).toBe(400)
    expect(response.json()).toMatchObject({ code: 400, error: 'invalid_request' })
  })

  it('refuses tokens in two headers, of which Node shows only the first', async () => {
    await pod.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = pod.app.server.address() as AddressInfo // it listens on a port
    const token = `Bearer ${await tokenOf('bob')}`
    const headers = ['Host', 'pod.example', 'Authorization', token, 'authorization', `Bearer ${UNKNOWN}`]

    const asked = get({ port, host: '127.0.0.1', path: '/api/v1/user', headers })
    const [response] = (await once(asked, 'response')) as [IncomingMessage] // the only argument of this event
    response.resume()

    expect(response.statusCode).toBe(400)
  })

  it('refuses requests without a valid token before it reads their body', async () => {
    const payload = 'x'.repeat(2 * 1024 * 1024)
    const headers = { 'content-type': 'application/json' }

    expect((await pod.inject({ method: 'POST', url: '/api/v1/echo', headers, payload })).statusCode).toBe(401)
  })

  it('has no viewer on a public route, and throws when one is read', async () => {
    const { bob } = await pod.people('bob')

    expect((await bob.get('/api/v1/open')).statusCode).toBe(500)
  })

  it('never writes a token, a query or a header into the log', async () => {
    const token = await tokenOf('bob')
    await pod.inject(`/api/v1/user?access_token=${token}`)
    await pod.inject(`/api/v1/nonsense?access_token=${token}`)
    await pod.inject({ url: '/api/v1/user', headers: { ...bearer(token), cookie: 'a-cookie-of-somebody' } })

    expect(lines.filter((line) => line.includes('request completed')).length).toBeGreaterThan(3)
    const all = lines.join('')
    for (const secret of [token, UNKNOWN, 'access_token', 'a-cookie-of-somebody', 'Bearer']) {
      expect(all).not.toContain(secret)
    }
  })
})

function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` }
}
