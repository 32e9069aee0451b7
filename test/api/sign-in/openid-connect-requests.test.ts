import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { User } from '../../../src/persistence/models/user.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  POD,
  pkce,
  postForm,
  registerTestClient,
  type TestOidcClient,
} from '../../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const CONSENT = '/api/openid_connect/authorizations'

let pod: TestPod
beforeAll(async () => {
  pod = await buildPod()
  await pod.people('alice', 'bob')
})
afterAll(() => pod.close())

async function tokensOf(client: TestOidcClient, username: string, parameters: Record<string, string> = {}) {
  const code = codeIn(await approveClient(pod.app, client, username, { parameters }))
  const answer = await client.token({ grant_type: 'authorization_code', code, redirect_uri: client.redirectUri })
  expect(answer.statusCode).toBe(200)
  return answer.json()
}

function callWith(token: string, url = '/api/v1/user') {
  return pod.inject({ url, headers: { authorization: `Bearer ${token}` } })
}

describe('requests that a client may send', () => {
  it.each([
    [{ response_type: 'id_token' }, 'unsupported_response_type'],
    [{ scope: 'everything' }, 'invalid_scope'],
    [{ scope: 'openid private:modify' }, 'invalid_scope'],
    [{ code_challenge: 'a'.repeat(43), code_challenge_method: 'plain' }, 'invalid_request'],
    [{ prompt: 'none' }, 'login_required'],
    [{ prompt: 'none login' }, 'invalid_request'],
    [{ prompt: 'select_account' }, 'account_selection_required'],
    [{ request_uri: 'https://elsewhere.example/request' }, 'request_uri_not_supported'],
  ])('is answered at its address: %o with %s', async (parameters, error) => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)

    await browser.visit(client.address(parameters))

    expect(browser.url.host).toBe('client.example')
    const said = new URLSearchParams(browser.url.search || browser.url.hash.slice(1))
    expect(said.get('error')).toBe(error)
    expect(said.get('state')).toBe('xyz')
  })

  it('needs PKCE from a client without a secret', async () => {
    const client = await registerTestClient(pod.app, { token_endpoint_auth_method: 'none' })
    const browser = openBrowser(pod.app, POD)

    await browser.visit(client.address())

    expect(browser.url.searchParams.get('error')).toBe('invalid_request')
  })

  it('gives tokens to a client without a secret that keeps its verifier', async () => {
    const client = await registerTestClient(pod.app, { token_endpoint_auth_method: 'none' })
    const { verifier, parameters } = pkce()
    const code = codeIn(await approveClient(pod.app, client, 'alice', { parameters }))

    const answer = await client.token({
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    })

    expect(answer.statusCode).toBe(200)
  })

  it('an unknown client gets an error page', async () => {
    const answer = await pod.inject(
      `/api/openid_connect/authorizations/new?client_id=nobody&redirect_uri=${CALLBACK}&response_type=code`,
    )

    expect(answer.statusCode).toBe(400)
    expect(answer.headers['content-type']).toContain('text/html')
    expect(answer.body).toContain('This application is not registered on this pod.')
  })

  it('uses the only registered redirect URI if the request has none', async () => {
    const client = await registerTestClient(pod.app)
    const other = await registerTestClient(pod.app, { redirect_uris: [CALLBACK, 'https://client.example/other'] })

    const back = await approveClient(pod.app, client, 'alice', { parameters: { redirect_uri: undefined } })
    const answer = await client.token({ grant_type: 'authorization_code', code: codeIn(back) })
    const page = await pod.inject(other.address({ redirect_uri: undefined }))

    expect(answer.statusCode).toBe(200)
    expect(page.statusCode).toBe(400)
    expect(page.headers['content-type']).toContain('text/html')
  })

  it('POST is accepted', async () => {
    const client = await registerTestClient(pod.app)
    const fields = {
      client_id: client.id,
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: 'openid',
      prompt: 'none',
      state: 'p',
    }

    const answer = await postForm(pod.app, '/api/openid_connect/authorizations/new', fields)
    const browser = openBrowser(pod.app, POD)
    await browser.visit(String(answer.headers.location))

    expect(browser.url.searchParams.get('error')).toBe('login_required')
    expect(browser.url.searchParams.get('state')).toBe('p')
  })

  it('counts the members of claims.userinfo as scopes', async () => {
    const client = await registerTestClient(pod.app)

    const tokens = await tokensOf(client, 'alice', {
      claims: JSON.stringify({ userinfo: { nickname: null, unheard: null } }),
    })

    expect(tokens.scope).toBe('openid nickname public:read')
  })
})

describe('the consent page', () => {
  it('fills in the username of login_hint', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)

    await browser.visit(client.address({ login_hint: 'alice@pod.example' }))

    expect(browser.page.body).toMatch(/name="username"[^>]*value="alice"/)
  })

  it('shows the client, the scopes and the redirect host, escaped as text', async () => {
    const client = await registerTestClient(pod.app, { client_name: '<script>alert(1)</script>' })
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address({ scope: 'openid conversations contacts:read' }))
    await browser.submit({ username: 'alice', password: 'the password of alice' })

    expect(browser.url.pathname).toBe(CONSENT)
    expect(browser.page.body).toContain('&#60;script&#62;')
    expect(browser.page.body).not.toContain('<script')
    expect(browser.page.body).toContain('Read and write private messages')
    expect(browser.page.body).toContain('client.example')
    expect(browser.page.body).toContain('alice@pod.example')
    expect(browser.page.headers).toMatchObject({ 'x-frame-options': 'DENY', 'cache-control': 'private, no-store' })
    expect(browser.page.headers['content-security-policy']).toContain("default-src 'none'")
    expect(browser.page.headers['content-security-policy']).not.toContain('form-action') // it may lead anywhere
    expect(browser.page.headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect(browser.page.headers['access-control-allow-origin']).toBeUndefined()
  })

  it('is skipped for granted scopes, but not for new scopes or prompt=consent', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    await approveClient(pod.app, client, 'alice', { parameters: { scope: 'openid profile' }, browser })

    await browser.visit(client.address({ scope: 'profile openid' }))
    expect(browser.url.searchParams.has('code')).toBe(true)
    await browser.visit(client.address({ scope: 'openid' }))
    expect(browser.url.pathname).toBe(CONSENT)
    await browser.visit(client.address({ scope: 'openid profile', prompt: 'consent' }))
    expect(browser.url.pathname).toBe(CONSENT)
    await browser.visit(client.address({ scope: 'openid', prompt: 'none' }))
    expect(browser.url.searchParams.get('error')).toBe('interaction_required')
  })

  it.each([
    ['without a secret', { token_endpoint_auth_method: 'none' }],
    ['with a scheme of its own', { redirect_uris: ['org.example.app://callback'] }],
  ])('is shown for each request of a client %s', async (_name, metadata) => {
    const client = await registerTestClient(pod.app, metadata)
    const browser = openBrowser(pod.app, POD)
    await approveClient(pod.app, client, 'alice', { parameters: pkce().parameters, browser })
    expect(browser.url.searchParams.has('code')).toBe(true)

    await browser.visit(client.address(pkce().parameters))

    expect(browser.url.origin).toBe(POD)
    expect(browser.url.pathname).toBe(CONSENT)
  })

  it('requires the password again for prompt=login and after max_age, once', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    await approveClient(pod.app, client, 'alice', { browser })

    await browser.visit(client.address({ prompt: 'login' }))
    expect(browser.url.pathname).toBe('/users/sign_in')
    await browser.submit({ username: 'alice', password: 'the password of alice' })
    expect(browser.url.searchParams.has('code')).toBe(true)

    await browser.visit(client.address({ max_age: '3600' }))
    expect(browser.url.searchParams.has('code')).toBe(true)
  })

  it('continues with another user who signs in at the same browser', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    await approveClient(pod.app, client, 'alice', { browser })

    await browser.visit(client.address({ prompt: 'login' }))
    await browser.submit({ username: 'bob', password: 'the password of bob' })
    expect(browser.url.pathname).toBe(CONSENT)
    expect(browser.page.body).toContain('bob@pod.example')
    await browser.submit({ approve: 'true' })
    const code = codeIn(browser.url)
    const answer = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })

    expect(decodeJwt(answer.json().id_token).sub).toBe('bob@pod.example')
  })

  it('refuses decisions of another browser, and sign-ins for requests of another browser', async () => {
    const client = await registerTestClient(pod.app)
    const [mallory, alice] = [openBrowser(pod.app, POD), openBrowser(pod.app, POD)]
    await mallory.visit(client.address())

    await alice.visit(`${mallory.url.pathname}${mallory.url.search}`)

    expect(alice.page.statusCode).toBe(400)
    expect(alice.page.body).toContain('go back to the application')
  })

  it('refuses decisions without the form token', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address())
    await browser.submit({ username: 'alice', password: 'the password of alice' })

    await browser.submit({ approve: 'true', form: 'guessed' })

    expect(browser.page.statusCode).toBe(403)
    const { id } = await pod.pod.db('clients').where({ clientId: client.id }).first()
    expect(await pod.pod.db('authorizations').where({ clientId: id })).toEqual([])
  })
})

describe('scopes', () => {
  it('belong to the authorization: a new consent changes existing tokens', async () => {
    const client = await registerTestClient(pod.app)
    const { access_token: token, refresh_token: refresh } = await tokensOf(client, 'alice', { scope: 'openid profile' })
    expect((await callWith(token)).statusCode).toBe(200)

    const later = await tokensOf(client, 'alice', { scope: 'openid tags:read' })

    expect(later.scope).toBe('openid tags:read public:read')
    expect((await callWith(token)).statusCode).toBe(403)
    const again = await client.token({ grant_type: 'refresh_token', refresh_token: refresh })
    expect(again.json().scope).toBe('openid tags:read public:read')
  })
})

describe('the token endpoint', () => {
  it.each([
    [{ grant_type: 'password', username: 'alice', password: 'the password of alice' }, 'unsupported_grant_type'],
    [{ grant_type: 'authorization_code' }, 'invalid_request'],
    [{ grant_type: 'authorization_code', code: 'nonsense', redirect_uri: CALLBACK }, 'invalid_grant'],
    [{ grant_type: 'refresh_token', refresh_token: 'f'.repeat(64) }, 'invalid_grant'],
    [{}, 'invalid_request'],
  ])('refuses %o with %s', async (fields, error) => {
    const client = await registerTestClient(pod.app)

    const answer = await client.token(fields)

    expect(answer.statusCode).toBe(400)
    expect(answer.json().error).toBe(error)
    expect(answer.json().error_description).toEqual(expect.any(String))
    expect(answer.headers['access-control-allow-origin']).toBe('*')
  })

  it('accepts the secret in Basic and in the body', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice'))
    const basic = Buffer.from(`${client.id}:${client.secret}`).toString('base64')
    const fields = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK }

    const answer = await postForm(pod.app, '/api/openid_connect/access_tokens', fields, {
      authorization: `Basic ${basic}`,
    })

    expect(answer.statusCode).toBe(200)
  })

  it('refuses a client that names two ids', async () => {
    const [one, other] = [await registerTestClient(pod.app), await registerTestClient(pod.app)]
    const basic = Buffer.from(`${one.id}:${one.secret}`).toString('base64')
    const fields = { grant_type: 'refresh_token', refresh_token: 'x', client_id: other.id }

    const answer = await postForm(pod.app, '/api/openid_connect/access_tokens', fields, {
      authorization: `Basic ${basic}`,
    })

    expect(answer.statusCode).toBe(400)
    expect(answer.json().error).toBe('invalid_request')
  })

  it('refuses the code and the refresh token of another client', async () => {
    const [one, other] = [await registerTestClient(pod.app), await registerTestClient(pod.app)]
    const code = codeIn(await approveClient(pod.app, one, 'alice'))
    const { refresh_token: refresh } = await tokensOf(one, 'alice')

    const byCode = await other.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
    const byRefresh = await other.token({ grant_type: 'refresh_token', refresh_token: refresh })

    expect(byCode.json().error).toBe('invalid_grant')
    expect(byRefresh.json().error).toBe('invalid_grant')
  })

  it('refuses an expired code', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice'))
    const codeHash = createHash('sha256').update(code).digest()
    await pod.pod
      .db('authorization_codes')
      .where({ codeHash })
      .update({
        payload: pod.pod.db.raw(`jsonb_set(payload, '{exp}', to_jsonb(extract(epoch from now())::int - 1))`),
      })

    const answer = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })

    expect(answer.json().error).toBe('invalid_grant')
  })

  it('refuses tokens for a locked account', async () => {
    await pod.people('dan')
    const client = await registerTestClient(pod.app)
    const { refresh_token: refresh } = await tokensOf(client, 'dan')
    await User.query(pod.pod.db).where({ username: 'dan' }).patch({ lockedAt: new Date() })

    const answer = await client.token({ grant_type: 'refresh_token', refresh_token: refresh })

    expect(answer.json().error).toBe('invalid_grant')
  })

  it('refuses a body that is too large', async () => {
    const client = await registerTestClient(pod.app)

    const answer = await client.token({ grant_type: 'authorization_code', code: 'x'.repeat(17_000) })

    expect(answer.statusCode).toBe(413)
  })

  it('stores no usable secret', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    const code = codeIn(await approveClient(pod.app, client, 'alice', { browser }))
    const tokens = (await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json()

    const tables = [
      'access_tokens',
      'refresh_tokens',
      'authorization_codes',
      'oidc_records',
      'clients',
      'authorizations',
    ]
    const rows = await Promise.all(tables.map((table) => pod.pod.db(table)))
    const dump = JSON.stringify(rows)

    for (const secret of [
      code,
      tokens.access_token,
      tokens.refresh_token,
      client.secret,
      browser.cookies.get('pod_session'),
    ]) {
      expect(secret).toEqual(expect.any(String))
      expect(dump).not.toContain(secret)
    }
  })
})

describe('user info', () => {
  it('returns the claims of the scopes', async () => {
    const client = await registerTestClient(pod.app)
    const { alice } = await pod.people('alice')
    await alice.editProfile({ firstName: 'Alice', lastName: 'Liddell' })
    const tell = async (scope: string) => {
      const { access_token: token } = await tokensOf(client, 'alice', { scope })
      return (await callWith(token, '/api/openid_connect/user_info')).json()
    }

    expect(await tell('openid')).toEqual({ sub: 'alice@pod.example' })
    expect(await tell('openid nickname')).toEqual({ sub: 'alice@pod.example', nickname: 'alice' })
    expect(await tell('openid profile')).toEqual({
      sub: 'alice@pod.example',
      name: 'Alice Liddell',
      nickname: 'alice',
      profile: `${POD}/api/v1/user`,
    })
    await alice.editProfile({ imageUrl: '/uploads/images/alice.png' })
    await User.query(pod.pod.db).where({ username: 'alice' }).patch({ email: 'alice@mail.example' })
    expect(await tell('openid picture email')).toEqual({
      sub: 'alice@pod.example',
      picture: `${POD}/uploads/images/alice.png`,
      email: 'alice@mail.example',
    })
  })

  it('is for tokens with the scope openid, in the header or in a form', async () => {
    const { alice } = await pod.people('alice')
    const client = await registerTestClient(pod.app)
    const { access_token: without } = await tokensOf(client, 'alice', { scope: 'profile' })

    const none = await pod.inject('/api/openid_connect/user_info')
    const limited = await callWith(without, '/api/openid_connect/user_info')
    const form = await postForm(pod.app, '/api/openid_connect/user_info', { access_token: alice.token })

    expect(none.statusCode).toBe(401)
    expect(none.headers['www-authenticate']).toContain('Bearer')
    expect(limited.statusCode).toBe(403)
    expect(form.statusCode).toBe(200)
    expect(form.json().sub).toBe('alice@pod.example')
  })

  it('returns a pairwise subject for each sector', async () => {
    const metadata = (host: string) => ({ subject_type: 'pairwise', redirect_uris: [`https://${host}/callback`] })
    const subjectFor = async (host: string) => {
      const client = await registerTestClient(pod.app, metadata(host))
      const tokens = await tokensOf(client, 'alice')
      const { sub } = (await callWith(tokens.access_token, '/api/openid_connect/user_info')).json()
      expect(decodeJwt(tokens.id_token).sub).toBe(sub)
      return sub
    }

    const [one, same, other] = [
      await subjectFor('one.example'),
      await subjectFor('one.example'),
      await subjectFor('two.example'),
    ]

    expect(one).toMatch(/^[0-9a-f]{32}$/)
    expect(same).toBe(one)
    expect(other).not.toBe(one)
  })
})

describe('revocation', () => {
  const revoke = (client: TestOidcClient, token: string, secret = client.secret) =>
    postForm(pod.app, '/api/openid_connect/revoke', { token, client_id: client.id, client_secret: secret ?? '' })

  it('of an access token ends that one alone', async () => {
    const client = await registerTestClient(pod.app)
    const first = await tokensOf(client, 'alice', { scope: 'profile' })
    const second = (await client.token({ grant_type: 'refresh_token', refresh_token: first.refresh_token })).json()

    const answer = await revoke(client, first.access_token)

    expect(answer.statusCode).toBe(200)
    expect((await callWith(first.access_token)).statusCode).toBe(401)
    expect((await callWith(second.access_token)).statusCode).toBe(200)
  })

  it('of a refresh token ends the authorization with all its tokens', async () => {
    const client = await registerTestClient(pod.app)
    const tokens = await tokensOf(client, 'alice', { scope: 'profile' })

    const answer = await revoke(client, tokens.refresh_token)

    expect(answer.statusCode).toBe(200)
    expect((await callWith(tokens.access_token)).statusCode).toBe(401)
    const again = await client.token({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
    expect(again.json().error).toBe('invalid_grant')
  })

  it('a client may revoke its own tokens only; every other token gets a 200', async () => {
    const [one, other] = [await registerTestClient(pod.app), await registerTestClient(pod.app)]
    const tokens = await tokensOf(one, 'alice', { scope: 'profile' })

    expect((await revoke(one, tokens.access_token, 'wrong')).statusCode).toBe(401)
    expect((await revoke(other, tokens.access_token)).statusCode).toBe(200)
    expect((await revoke(one, 'never heard of')).statusCode).toBe(200)

    expect((await callWith(tokens.access_token)).statusCode).toBe(200)
  })
})

it('accepts the requests of a known native client', async () => {
  const registered = await pod.inject({
    method: 'POST',
    url: '/api/openid_connect/clients',
    remoteAddress: '10.10.0.1',
    payload: {
      application_type: 'native',
      redirect_uris: ['eu.jhass.insporation://callback'],
      client_name: 'insporation',
    },
  })
  const { client_id: id, client_secret: secret, client_secret_expires_at: expires } = registered.json()
  expect(registered.json().token_endpoint_auth_method).toBe('client_secret_post')
  expect(expires).toBe(0)
  const { verifier, parameters } = pkce()
  const scope =
    'openid nickname profile name picture profile:modify contacts:read contacts:modify conversations interactions notifications private:read private:modify public:modify tags:read'
  const request = {
    client_id: id,
    redirect_uri: 'eu.jhass.insporation://callback',
    response_type: 'code',
    scope,
    state: 's',
    nonce: 'n',
    prompt: 'login',
    login_hint: 'bob',
    ...parameters,
  }
  const browser = openBrowser(pod.app, POD)

  await browser.visit(`/api/openid_connect/authorizations/new?${new URLSearchParams(request)}`)
  await browser.submit({ username: 'bob', password: 'the password of bob' })
  expect(browser.page.headers['content-security-policy']).not.toContain('form-action')
  await browser.submit({ approve: 'true' })
  expect(browser.url.href).toMatch(/^eu\.jhass\.insporation:\/\/callback\?code=[0-9a-f]{64}&state=s&iss=/)
  const answer = await postForm(pod.app, '/api/openid_connect/access_tokens', {
    grant_type: 'authorization_code',
    code: codeIn(browser.url),
    redirect_uri: 'eu.jhass.insporation://callback',
    code_verifier: verifier,
    client_id: id,
    client_secret: secret,
  })

  expect(answer.statusCode).toBe(200)
  expect(decodeJwt(answer.json().id_token)).toMatchObject({ iss: POD, aud: id, nonce: 'n', sub: 'bob@pod.example' })
  expect(answer.json().scope.split(' ').sort()).toEqual([...scope.split(' '), 'public:read'].sort())
})

it('requires a new sign-in when the account of a session is deleted', async () => {
  await pod.people('carol')
  const client = await registerTestClient(pod.app)
  const browser = openBrowser(pod.app, POD)
  await approveClient(pod.app, client, 'carol', { browser })
  await closeUser(pod.pod, 'carol')

  await browser.visit(client.address())
  expect(browser.url.pathname).toBe('/users/sign_in')
  await browser.submit({ username: 'carol', password: 'the password of carol' })
  expect(browser.page.statusCode).toBe(422)
  await browser.submit({ username: 'bob', password: 'the password of bob' })

  expect(browser.url.pathname).toBe(CONSENT)
})
