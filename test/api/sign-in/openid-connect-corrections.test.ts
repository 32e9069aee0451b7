import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OIDC_LIMITS } from '../../../src/web/oidc/limits.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  POD,
  register,
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

const password = { username: 'alice', password: 'the password of alice' }

function exchange(client: TestOidcClient, code: string, fields: Readonly<Record<string, string>> = {}) {
  return client.token({ grant_type: 'authorization_code', code, redirect_uri: client.redirectUri, ...fields })
}

async function statusWith(token: string, url = '/api/v1/user'): Promise<number> {
  return (await pod.inject({ url, headers: { authorization: `Bearer ${token}` } })).statusCode
}

describe('authorization requests in one browser', () => {
  it('are handled in parallel: the second does not end the first', async () => {
    const [one, other] = [await registerTestClient(pod.app), await registerTestClient(pod.app)]
    const browser = openBrowser(pod.app, POD)
    await browser.visit(one.address({ state: 'first' }))
    const first = browser.url
    await browser.visit(other.address({ state: 'second' }))
    await browser.submit(password)
    await browser.submit({ approve: 'true' })
    expect(browser.url.searchParams.get('state')).toBe('second')
    const second = codeIn(browser.url)

    await browser.visit(`${first.pathname}${first.search}`)
    await browser.submit(password)
    await browser.submit({ approve: 'true' })

    expect(browser.url.searchParams.get('state')).toBe('first')
    expect((await exchange(one, codeIn(browser.url))).statusCode).toBe(200)
    expect((await exchange(other, second)).statusCode).toBe(200)
  })

  it('are handled in parallel also while both wait for consent', async () => {
    const [one, other] = [await registerTestClient(pod.app), await registerTestClient(pod.app)]
    const browser = openBrowser(pod.app, POD)
    await browser.visit(one.address({ state: 'first' }))
    await browser.submit(password)
    const first = browser.url
    await browser.visit(other.address({ state: 'second' }))
    expect([first.pathname, browser.url.pathname]).toEqual([CONSENT, CONSENT])

    await browser.visit(`${first.pathname}${first.search}`)
    await browser.submit({ approve: 'true' })

    expect((await exchange(one, codeIn(browser.url))).statusCode).toBe(200)
  })

  it('are limited in number: the oldest is deleted', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    const begun: URL[] = []
    for (let count = 0; count <= OIDC_LIMITS.requestsOfBrowser; count += 1) {
      await browser.visit(client.address())
      begun.push(browser.url)
    }

    const statuses = await Promise.all(
      [begun[0], begun[1]].map((url) =>
        pod.inject({
          url: `${url?.pathname}${url?.search}`,
          headers: { cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
        }),
      ),
    )

    expect(statuses.map(({ statusCode }) => statusCode)).toEqual([400, 200])
  })
})

describe('a code that was used', () => {
  it('ends nothing when another client presents it', async () => {
    const [victim, mallory] = [await registerTestClient(pod.app), await registerTestClient(pod.app)]
    const code = codeIn(await approveClient(pod.app, victim, 'alice', { parameters: { scope: 'openid profile' } }))
    const { access_token: token, refresh_token: refresh } = (await exchange(victim, code)).json()

    const stolen = await exchange(mallory, code)

    expect([stolen.statusCode, stolen.json().error]).toEqual([400, 'invalid_grant'])
    expect(await statusWith(token)).toBe(200)
    expect((await victim.token({ grant_type: 'refresh_token', refresh_token: refresh })).statusCode).toBe(200)
    expect((await exchange(victim, code)).json().error).toBe('invalid_grant')
    expect(await statusWith(token)).toBe(401)
  })
})

describe('a refresh', () => {
  it('with a narrower scope returns a token with that scope', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(
      await approveClient(pod.app, client, 'alice', { parameters: { scope: 'openid profile notifications' } }),
    )
    const { access_token: wide, refresh_token: refresh } = (await exchange(client, code)).json()

    const answer = await client.token({ grant_type: 'refresh_token', refresh_token: refresh, scope: 'openid profile' })

    const { access_token: narrow, scope } = answer.json()
    expect(scope).toBe('openid profile')
    expect(await statusWith(narrow)).toBe(200)
    expect(await statusWith(narrow, '/api/v1/notifications')).toBe(403)
    expect(await statusWith(narrow, '/api/v1/streams/main')).toBe(403)
    expect(await statusWith(wide, '/api/v1/notifications')).toBe(200)
    const whole = await client.token({ grant_type: 'refresh_token', refresh_token: refresh })
    expect(whole.json().scope).toBe('openid profile notifications public:read')
  })

  it('returns no scope that the authorization has lost', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(
      await approveClient(pod.app, client, 'bob', { parameters: { scope: 'openid profile notifications' } }),
    )
    const { refresh_token: refresh } = (await exchange(client, code)).json()
    const answer = await client.token({ grant_type: 'refresh_token', refresh_token: refresh, scope: 'notifications' })
    const { access_token: narrow } = answer.json()
    expect(await statusWith(narrow, '/api/v1/notifications')).toBe(200)

    await approveClient(pod.app, client, 'bob', { parameters: { scope: 'openid profile' } })

    expect(await statusWith(narrow, '/api/v1/notifications')).toBe(403)
    const wider = { grant_type: 'refresh_token', refresh_token: refresh, scope: 'openid notifications' }
    expect((await client.token(wider)).json().error).toBe('invalid_scope')
  })
})

describe('the redirect URI of a code', () => {
  it('is required at the token endpoint if the request had one, also with a single registered one', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice'))

    const without = await client.token({ grant_type: 'authorization_code', code })
    const other = await exchange(client, code, { redirect_uri: `${CALLBACK}/other` })
    const same = await exchange(client, code)

    expect([without.statusCode, without.json().error]).toEqual([400, 'invalid_request'])
    expect([other.statusCode, other.json().error]).toEqual([400, 'invalid_grant'])
    expect(same.statusCode).toBe(200)
  })

  it('is required, although the client sends redirect_uri_omitted', async () => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice', { parameters: { redirect_uri_omitted: 'true' } }))

    expect((await client.token({ grant_type: 'authorization_code', code })).statusCode).toBe(400)
  })
})

describe('unknown scopes', () => {
  it.each(['openid offline_access', 'openid everything profile:everything'])('are ignored in %o', async (scope) => {
    const client = await registerTestClient(pod.app)
    const code = codeIn(await approveClient(pod.app, client, 'alice', { parameters: { scope } }))

    const answer = await exchange(client, code)

    expect(answer.json()).toMatchObject({ scope: 'openid public:read', refresh_token: expect.any(String) })
  })

  it.each(['offline_access', 'everything'])('are refused if no scope remains: %o', async (scope) => {
    const client = await registerTestClient(pod.app)

    const back = await approveClient(pod.app, client, 'alice', { parameters: { scope } })

    expect(back.searchParams.get('error')).toBe('invalid_scope')
  })
})

it('registers a client with an empty list of response types', async () => {
  const answer = await register(pod.app, { response_types: [] })

  expect([answer.statusCode, answer.json().response_types]).toEqual([201, ['code']])
  expect((await register(pod.app, { response_types: ['token'] })).statusCode).toBe(400)
})

describe('unsupported parameters', () => {
  it.each([
    [{ request: 'eyJhbGciOiJub25lIn0.e30.' }, 'request_not_supported'],
    [{ request_uri: 'https://elsewhere.example/request' }, 'request_uri_not_supported'],
    [{ request_uri: 'https://elsewhere.example/request', response_mode: 'fragment' }, 'request_uri_not_supported'],
  ])('is described: %o', async (parameters, error) => {
    const client = await registerTestClient(pod.app, { redirect_uris: [`${CALLBACK}?kept=mine`] })

    const back = await approveClient(pod.app, client, 'alice', { parameters })

    const query = new URLSearchParams(back.search)
    const said = 'response_mode' in parameters ? new URLSearchParams(back.hash.slice(1)) : query
    expect(query.get('kept')).toBe('mine')
    expect(said.get('error')).toBe(error)
    expect(said.get('error_description')).toContain('request objects are not supported')
    expect(said.get('state')).toBe('xyz')
  })
})
