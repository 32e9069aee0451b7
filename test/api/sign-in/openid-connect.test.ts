import { createLocalJWKSet, jwtVerify } from 'jose'
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
} from '../../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let pod: TestPod
beforeAll(async () => {
  pod = await buildPod()
  await pod.people('alice', 'bob')
})
afterAll(() => pod.close())

describe('the discovery document of the issuer', () => {
  it('describes the issuer with absolute addresses', async () => {
    const answer = await pod.inject('/.well-known/openid-configuration')

    expect(answer.statusCode).toBe(200)
    const document = answer.json()
    expect(document).toMatchObject({
      issuer: POD,
      registration_endpoint: `${POD}/api/openid_connect/clients`,
      authorization_endpoint: `${POD}/api/openid_connect/authorizations/new`,
      token_endpoint: `${POD}/api/openid_connect/access_tokens`,
      userinfo_endpoint: `${POD}/api/openid_connect/user_info`,
      jwks_uri: `${POD}/api/openid_connect/jwks.json`,
      revocation_endpoint: `${POD}/api/openid_connect/revoke`,
      response_types_supported: ['code'],
      subject_types_supported: ['public', 'pairwise'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      request_uri_parameter_supported: false,
    })
    for (const [name, value] of Object.entries(document)) {
      if (name.endsWith('_endpoint') || name.endsWith('_uri')) expect(URL.canParse(String(value))).toBe(true)
    }
    expect(answer.headers['access-control-allow-origin']).toBe('*')
  })

  it('refuses a registration without redirect URIs', async () => {
    const answer = await pod.inject({
      method: 'POST',
      url: '/api/openid_connect/clients',
      payload: { client_name: 'None' },
    })

    expect(answer.statusCode).toBe(400)
    expect(answer.json().error).toBe('invalid_client_metadata')
  })

  it.each([
    'https://client.example/#part',
    'javascript:alert(1)',
    'data:text/html,hi',
    'file:///etc/passwd',
    'nowhere',
  ])('refuses the redirect URI %s', async (uri) => {
    const answer = await register(pod.app, { redirect_uris: [uri] })

    expect(answer.statusCode).toBe(400)
    expect(answer.json().error).toBe('invalid_redirect_uri')
  })

  it('registers a new client each time, with a secret that does not expire', async () => {
    const [one, other] = await Promise.all([register(pod.app, {}), register(pod.app, {})])

    expect(one.statusCode).toBe(201)
    expect(one.json()).toMatchObject({
      client_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      client_secret: expect.stringMatching(/^[0-9a-f]{64}$/),
      client_secret_expires_at: 0,
      token_endpoint_auth_method: 'client_secret_post',
      redirect_uris: [CALLBACK],
      application_type: 'web',
      logo_uri: null,
      ppid: false,
    })
    expect(other.json().client_id).not.toBe(one.json().client_id)
    const stored = await pod.pod.db('clients').where({ clientId: one.json().client_id }).first()
    expect(JSON.stringify(stored)).not.toContain(one.json().client_secret)
  })

  it('accepts the custom scheme of a native client, as JSON and as a form', async () => {
    const uri = 'eu.jhass.insporation://callback'

    const json = await register(pod.app, { redirect_uris: [uri], application_type: 'native' })
    const form = await postForm(pod.app, '/api/openid_connect/clients', {
      'redirect_uris[]': uri,
      client_name: 'Phone',
    })

    expect(json.json().redirect_uris).toEqual([uri])
    expect(form.json()).toMatchObject({ redirect_uris: [uri], client_name: 'Phone' })
  })

  it('gives no secret to a public client', async () => {
    const answer = await register(pod.app, { token_endpoint_auth_method: 'none' })

    expect(answer.json()).not.toHaveProperty('client_secret')
    expect(answer.json().token_endpoint_auth_method).toBe('none')
  })
})

describe('the code flow', () => {
  it('gives tokens for a code with PKCE, and an ID token that verifies against the keys of the pod', async () => {
    const client = await registerTestClient(pod.app)
    const { verifier, parameters } = pkce()
    const before = Math.floor(Date.now() / 1000)

    const back = await approveClient(pod.app, client, 'alice', {
      parameters: { nonce: 'n-1', ...parameters, scope: 'openid profile' },
    })
    const answer = await client.token({
      grant_type: 'authorization_code',
      code: codeIn(back),
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    })

    expect(back.origin + back.pathname).toBe(CALLBACK)
    expect(back.searchParams.get('state')).toBe('xyz')
    expect(back.searchParams.get('iss')).toBe(POD)
    expect(codeIn(back)).toMatch(/^[0-9a-f]{64}$/)
    expect(answer.statusCode).toBe(200)
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' })
    expect(answer.json()).toEqual({
      access_token: expect.stringMatching(/^[0-9a-f]{64}$/),
      refresh_token: expect.stringMatching(/^[0-9a-f]{64}$/),
      token_type: 'bearer',
      expires_in: 86_400,
      scope: 'openid profile public:read',
      id_token: expect.any(String),
    })
    const keys = (await pod.inject('/api/openid_connect/jwks.json')).json()
    expect(keys).toEqual({
      keys: [{ kty: 'RSA', use: 'sig', kid: 'default', alg: 'RS256', n: expect.any(String), e: 'AQAB' }],
    })
    const { payload, protectedHeader } = await jwtVerify(answer.json().id_token, createLocalJWKSet(keys), {
      issuer: POD,
      audience: client.id,
    })
    expect(protectedHeader).toMatchObject({ alg: 'RS256', kid: 'default' })
    expect(payload).toMatchObject({ sub: 'alice@pod.example', nonce: 'n-1', acr: '0', at_hash: expect.any(String) })
    expect(payload['auth_time']).toBeGreaterThanOrEqual(before)
    const { claims_supported: supported } = (await pod.inject('/.well-known/openid-configuration')).json()
    const ofUserInfo = ['name', 'nickname', 'profile', 'picture', 'email']
    expect(supported.toSorted()).toEqual([...Object.keys(payload), ...ofUserInfo].toSorted())
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(1_800)
  })

  it('refuses a wrong verifier', async () => {
    const client = await registerTestClient(pod.app)
    const back = await approveClient(pod.app, client, 'alice', { parameters: pkce().parameters })

    const answer = await client.token({
      grant_type: 'authorization_code',
      code: codeIn(back),
      redirect_uri: CALLBACK,
      code_verifier: pkce().verifier,
    })

    expect(answer.statusCode).toBe(400)
    expect(answer.json().error).toBe('invalid_grant')
  })

  it('ends all grants when a code is used twice', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice', { parameters: { scope: 'profile' } }))
    const use = () => client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
    const first = await use()
    const token = first.json().access_token
    expect((await callWith(token)).statusCode).toBe(200)

    const second = await use()

    expect(second.statusCode).toBe(400)
    expect(second.json().error).toBe('invalid_grant')
    expect((await callWith(token)).statusCode).toBe(401)
  })

  it('at most one of two concurrent requests with one code succeeds', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice'))

    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })),
    )

    expect(answers.filter(({ statusCode }) => statusCode === 200).length).toBeLessThanOrEqual(1)
    for (const answer of answers) expect([200, 400]).toContain(answer.statusCode)
  })
})

describe('clients and scopes', () => {
  it('rejects a client that requests private posts without contacts', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)

    await browser.visit(client.address({ scope: 'openid private:read' }))

    expect(browser.url.origin + browser.url.pathname).toBe(CALLBACK)
    expect(browser.url.searchParams.get('error')).toBe('invalid_scope')
    expect(browser.url.searchParams.get('state')).toBe('xyz')
  })

  it('an unregistered redirect URI gets an error page and no redirect', async () => {
    const client = await registerTestClient(pod.app)

    const answer = await pod.inject(client.address({ redirect_uri: 'https://client.example/callback/' }))

    expect(answer.statusCode).toBe(400)
    expect(answer.headers['content-type']).toContain('text/html')
    expect(answer.headers.location).toBeUndefined()
    expect(answer.headers['content-security-policy']).toContain("default-src 'none'")
  })

  it('answers access_denied when the user denies', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address())
    await browser.submit({ username: 'alice', password: 'the password of alice' })

    await browser.submit({ approve: 'false' })

    expect(browser.url.searchParams.get('error')).toBe('access_denied')
    expect(browser.url.searchParams.get('state')).toBe('xyz')
  })

  it('gives a new access token for a refresh token that stays valid', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice', { parameters: { scope: 'openid profile' } }))
    const first = (await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json()
    const refresh = () => client.token({ grant_type: 'refresh_token', refresh_token: first.refresh_token })

    const second = await refresh()
    const third = await refresh()

    expect(second.statusCode).toBe(200)
    expect(second.json()).toEqual({
      access_token: expect.stringMatching(/^[0-9a-f]{64}$/),
      token_type: 'bearer',
      expires_in: 86_400,
      scope: 'openid profile public:read',
    })
    expect(third.statusCode).toBe(200)
    const tokens = [first, second.json(), third.json()].map(({ access_token }) => access_token)
    expect(new Set(tokens).size).toBe(3)
    for (const token of tokens) expect((await callWith(token)).statusCode).toBe(200)
  })

  it('refuses a wrong secret', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice'))

    const answer = await client.token({
      client_secret: 'f'.repeat(64),
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
    })

    expect(answer.statusCode).toBe(401)
    expect(answer.json().error).toBe('invalid_client')
  })
})

function callWith(token: string) {
  return pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${token}` } })
}
