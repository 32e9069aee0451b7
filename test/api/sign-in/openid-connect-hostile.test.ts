import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  POD,
  pkce,
  postForm,
  register,
  registerTestClient,
  type TestOidcClient,
} from '../../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let pod: TestPod
beforeAll(async () => {
  pod = await buildPod()
  await pod.people('alice')
})
afterAll(() => pod.close())

/** The final URL of an authorization request by a browser without a session. */
async function visit(client: TestOidcClient, parameters: Record<string, string>) {
  const browser = openBrowser(pod.app, POD)
  await browser.visit(client.address(parameters))
  return browser
}

const statusWith = async (token: string) =>
  (await pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${token}` } })).statusCode

describe('a redirect URI', () => {
  it.each([
    'https://client\n.example/',
    ' https://client.example/',
    'https://client.example/a b',
    'https://client.example/ü',
  ])('is refused that would be read as another one: %o', async (uri) => {
    const answer = await register(pod.app, { redirect_uris: [uri] })

    expect([answer.statusCode, answer.json().error]).toEqual([400, 'invalid_redirect_uri'])
  })

  it('that contains an unstorable character registers no client', async () => {
    const answer = await register(pod.app, { redirect_uris: ['https://client.example/\0'] })

    expect([answer.statusCode, answer.json().error]).toEqual([400, 'invalid_client_metadata'])
  })

  it.each(['http://127.0.0.1:8080/', 'http://127.0.0.1/?', 'http://localhost/'])(
    'on the loopback host is compared exactly, too: %s',
    async (redirectUri) => {
      const metadata = { application_type: 'native', redirect_uris: ['http://127.0.0.1/'] }
      const client = await registerTestClient(pod.app, metadata)

      const { page } = await visit(client, { redirect_uri: redirectUri })

      expect([page.statusCode, page.headers.location]).toEqual([400, undefined])
    },
  )
})

describe('a request', () => {
  it.each([
    [{ response_mode: 'form_post' }, 'unsupported_response_mode'],
    [{ response_mode: 'form_post', prompt: 'none' }, 'unsupported_response_mode'],
    [{ claims: '{' }, 'invalid_request'],
  ])('an invalid authorization request is answered at the address of the client: %o with %s', async (given, error) => {
    const { url } = await visit(await registerTestClient(pod.app), given)

    expect([url.host, url.searchParams.get('error')]).toEqual(['client.example', error])
  })

  it.each(['client_id', 'state', 'nonce', 'login_hint', 'other'])(
    'with an unstorable character in %s gets an error page',
    async (name) => {
      const { page } = await visit(await registerTestClient(pod.app), { [name]: 'a\0b' })

      expect(page.statusCode).toBe(400)
      expect(page.headers['content-type']).toContain('text/html')
    },
  )

  it('adds no part of the redirect URI to the policy of a page', async () => {
    const redirectUri = 'https://a;sandbox,b.example/callback'
    const client = await registerTestClient(pod.app, { redirect_uris: [redirectUri] })

    const { page } = await visit(client, { redirect_uri: redirectUri })

    expect(page.statusCode).toBe(200)
    expect(page.headers['content-security-policy']).not.toMatch(/sandbox|b\.example/)
  })

  it('a token request with an unstorable client id is refused as an invalid client', async () => {
    const fields = { grant_type: 'refresh_token', refresh_token: 'x', client_id: 'a\0b', client_secret: 'x' }

    const answer = await postForm(pod.app, '/api/openid_connect/access_tokens', fields)

    expect([answer.statusCode, answer.json().error]).toEqual([401, 'invalid_client'])
  })
})

it('ends all grants when a used code is sent again, regardless of other parameters', async () => {
  const client = await registerTestClient(pod.app)
  const { verifier, parameters } = pkce()
  const code = codeIn(
    await approveClient(pod.app, client, 'alice', { parameters: { scope: 'profile', ...parameters } }),
  )
  const use = (code_verifier: string) =>
    client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier })
  const { access_token: token } = (await use(verifier)).json()
  expect(await statusWith(token)).toBe(200)

  const again = await use('a'.repeat(43))

  expect([again.statusCode, again.json().error]).toEqual([400, 'invalid_grant'])
  expect(await statusWith(token)).toBe(401)
})

it.each(['wrong', 'w w'.padEnd(43, 'w'), 'w'.repeat(129), 'ü'.repeat(43)])(
  'refuses an invalid verifier like a wrong one: %s',
  async (verifier) => {
    const client = await registerTestClient(pod.app)
    const { parameters } = pkce()
    const code = codeIn(
      await approveClient(pod.app, client, 'alice', { parameters: { scope: 'profile', ...parameters } }),
    )

    const fields = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: verifier }
    const answer = await client.token(fields)

    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      { error: 'invalid_grant', error_description: expect.any(String) },
    ])
  },
)

it.each(['access_tokens', 'revoke'])('responds with JSON at %s, regardless of the Accept header', async (name) => {
  const answer = await pod.app.inject({
    method: 'POST',
    url: `/api/openid_connect/${name}`,
    headers: { accept: 'text/html,*/*;q=0.8', 'content-type': 'application/x-www-form-urlencoded' },
    payload: 'grant_type=authorization_code&code=x&token=x&client_id=nobody',
  })

  expect([answer.statusCode, answer.json()]).toEqual([401, expect.objectContaining({ error: 'invalid_client' })])
})

it.each([
  { scope: ' openid  profile ' },
  { scope: 'profile', nonce: 'n' },
  { scope: 'profile', max_age: '100', claims_locales: 'de' },
  { scope: 'profile', claims: '{"userinfo":{"name":null}}' },
])('harmless parameters are accepted: %o', async (parameters) => {
  const client = await registerTestClient(pod.app)

  const { searchParams } = await approveClient(pod.app, client, 'alice', { parameters })

  expect([searchParams.get('error'), searchParams.get('code')]).toEqual([null, expect.any(String)])
})

it('a refresh with fewer scopes returns a token with these, a refresh with more scopes is refused', async () => {
  const client = await registerTestClient(pod.app)
  const code = codeIn(await approveClient(pod.app, client, 'alice', { parameters: { scope: 'openid profile' } }))
  const first = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
  const refresh = { grant_type: 'refresh_token', refresh_token: first.json().refresh_token }

  const fewer = await client.token({ ...refresh, scope: 'openid' })
  const more = await client.token({ ...refresh, scope: 'openid conversations' })

  expect(fewer.json().scope).toBe('openid')
  expect(await statusWith(fewer.json().access_token)).toBe(403)
  expect(await statusWith(first.json().access_token)).toBe(200)
  expect([more.statusCode, more.json().error]).toEqual([400, 'invalid_scope'])
})
