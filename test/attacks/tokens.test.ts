import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openBrowser } from '../support/browser/scriptless-browser.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  POD,
  pkce,
  postForm,
  register,
  registerTestClient,
} from '../support/http/oidc-client.js'
import type { TestPerson } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let pod: TestPod
let alice: TestPerson
/** Moves the clock of the web process. */
let later = 0
beforeAll(async () => {
  pod = await buildPod({
    environment: { REGISTRATIONS: 'open' },
    change: (opened) => ({ ...opened, now: () => new Date(Date.now() + later) }),
  })
  ;({ alice } = await pod.people('alice'))
})
afterAll(() => pod.close())

const TOKENS = '/api/openid_connect/access_tokens'
const statusOf = async (token: string) =>
  (await pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${token}` } })).statusCode

describe('S70: a dump of the database', () => {
  it('contains no usable token, code, secret, session or password', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    const code = codeIn(
      await approveClient(pod.app, client, 'alice', { parameters: { scope: 'openid profile' }, browser }),
    )
    const given = (await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json()
    const unused = codeIn(
      await approveClient(pod.app, client, 'alice', { parameters: { scope: 'openid profile' }, browser }),
    )
    expect(await statusOf(given.access_token)).toBe(200)
    const secrets = [given.access_token, given.refresh_token, given.id_token, code, unused, client.secret, alice.token]
    // The cookies of single requests hold a time.
    const cookies = [...browser.cookies].filter(([name]) => !name.startsWith('pod_request_'))
    secrets.push('the password of alice', ...cookies.map(([, value]) => value.split('.')[0] ?? value))

    const dump = await readEverything()

    expect(dump.length).toBeGreaterThan(10_000)
    for (const secret of secrets) {
      expect(secret?.length).toBeGreaterThan(15)
      expect(dump.includes(String(secret))).toBe(false)
      expect(dump.includes(Buffer.from(String(secret)).toString('hex'))).toBe(false)
    }
    // The stored values are not usable as tokens.
    expect(await statusOf(createHash('sha256').update(given.access_token).digest('hex'))).toBe(401)
  })

  it('shows 256 bits of chance in every token', async () => {
    expect(alice.token).toMatch(/^[0-9a-f]{64}$/)
  })

  async function readEverything(): Promise<string> {
    const tables = await pod.pod.db('pg_tables').where({ schemaname: 'public' }).pluck('tablename')
    const rows = await Promise.all(
      tables.map((table) =>
        pod.pod.db.raw(`select coalesce(string_agg(row::text, E'\n'), '') as text from "${table}" as row`),
      ),
    )
    return rows.map((result) => result.rows[0].text).join('\n')
  }
})

describe('S71: a code', () => {
  const begin = async (parameters: Record<string, string | undefined> = {}, metadata = {}) => {
    const client = await registerTestClient(pod.app, metadata)
    return {
      client,
      code: codeIn(await approveClient(pod.app, client, 'alice', { parameters: { scope: 'profile', ...parameters } })),
    }
  }

  it('comes back with the state of the client and the name of the pod', async () => {
    const client = await registerTestClient(pod.app)

    const url = await approveClient(pod.app, client, 'alice', { parameters: { state: 'of the client' } })

    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      state: 'of the client',
      iss: expect.stringContaining('pod.example'),
    })
  })

  it('is of no use to another client, at another address, with another verifier, or without one', async () => {
    const { verifier, parameters } = pkce()
    const { client, code } = await begin(parameters)
    const other = await registerTestClient(pod.app)
    const request = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK }

    const answers = [
      await other.token({ ...request, code_verifier: verifier }),
      await client.token({ ...request, code_verifier: verifier, redirect_uri: 'https://client.example/callback/' }),
      await client.token({ ...request, code_verifier: 'a'.repeat(43) }),
      await client.token(request),
    ]

    expect(answers.map(({ statusCode }) => statusCode)).toEqual([400, 400, 400, 400])
  })

  it('that is used twice revokes the tokens issued for it', async () => {
    const { client, code } = await begin()
    const request = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK }
    const { access_token: token } = (await client.token(request)).json()
    expect(await statusOf(token)).toBe(200)

    expect((await client.token(request)).json().error).toBe('invalid_grant')
    expect(await statusOf(token)).toBe(401)
  })

  it('after ten minutes is too old', async () => {
    const { client, code } = await begin()
    const past = `jsonb_set(payload, '{exp}', to_jsonb(extract(epoch from now())::int - 1))`
    await pod.pod.db('authorization_codes').update({ payload: pod.pod.db.raw(past) })

    expect((await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json().error).toBe(
      'invalid_grant',
    )
  })

  it.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc',
    'https://a.example/#x',
    'https://u@a.example/',
    'nowhere',
    '//a.example/',
    '',
  ])('is never sent to %j', async (uri) => {
    expect((await register(pod.app, { redirect_uris: [uri] })).statusCode).toBe(400)
  })

  it.each([
    'https://client.example/callback/../evil',
    'https://client.example/callback?x=1',
    'https://client.example.evil.example/callback',
    'https://client.example:444/callback',
    'http://client.example/callback',
    'HTTPS://CLIENT.EXAMPLE/callback',
    'https://client.example/Callback',
    'https://client.example/callback%2e',
  ])('is not sent to %s, which is not registered', async (redirectUri) => {
    const client = await registerTestClient(pod.app)

    const answer = await pod.inject(client.address({ redirect_uri: redirectUri }))

    expect([answer.statusCode, answer.headers.location]).toEqual([400, undefined])
  })

  it('for a client without a secret needs PKCE, with SHA-256', async () => {
    const metadata = { token_endpoint_auth_method: 'none' }
    const client = await registerTestClient(pod.app, metadata)
    for (const parameters of [
      {},
      { code_challenge: 'a'.repeat(43), code_challenge_method: 'plain' },
      { code_challenge: 'a'.repeat(43) },
    ]) {
      const { headers } = await pod.inject(client.address(parameters))
      expect(String(headers.location)).toContain('error=invalid_request')
    }
  })

  it.each(['token', 'id_token', 'code token', 'none'])(
    'is the only response type, and never %s',
    async (responseType) => {
      const client = await registerTestClient(pod.app)

      const { headers, statusCode } = await pod.inject(client.address({ response_type: responseType, nonce: 'n' }))

      expect(`${statusCode} ${headers.location}`).toMatch(/error=|^400/)
      expect(String(headers.location)).not.toContain('access_token')
    },
  )
})

describe('S72: registering', () => {
  it('ends at twenty an hour from one address', async () => {
    const statuses: number[] = []
    for (let turn = 0; turn < 21; turn += 1) {
      const answer = await pod.inject({
        method: 'POST',
        url: '/api/openid_connect/clients',
        remoteAddress: '198.51.100.72',
        payload: { redirect_uris: [CALLBACK] },
      })
      statuses.push(answer.statusCode)
    }

    expect(statuses).toEqual([...Array(20).fill(201), 429])
  })

  it('takes no more than sixteen kilobytes', async () => {
    expect((await register(pod.app, { redirect_uris: [CALLBACK], contacts: ['x'.repeat(17_000)] })).statusCode).toBe(
      413,
    )
  })

  it('a client registered under a famous name is shown with the host that gets the code', async () => {
    const client = await registerTestClient(pod.app, {
      client_name: '<b>The pod itself</b>',
      redirect_uris: ['https://evil.example/cb'],
    })
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address())

    const page = await browser.submit({ username: 'alice', password: 'the password of alice' })

    expect(page.body).toContain('evil.example')
    expect(page.body).not.toContain('<b>The pod')
  })
})

describe('S73: guessing a password', () => {
  it('delays the same address longer and longer, and no other address', async () => {
    const guesser = openBrowser(pod.app, POD, '198.51.100.73')
    const guess = async (password: string) => {
      await guesser.visit('/users/sign_in')
      return (await guesser.submit({ username: 'alice', password })).statusCode
    }
    for (let turn = 0; turn < 5; turn += 1) expect(await guess('wrong')).toBe(422)

    expect(await guess('wrong')).toBe(429)
    expect(await guess('the password of alice')).toBe(429)
    const other = openBrowser(pod.app, POD)
    await other.visit('/users/sign_in')
    expect((await other.submit({ username: 'alice', password: 'the password of alice' })).statusCode).toBe(200)
    later = 6_000
    expect(await guess('the password of alice')).toBe(200)
    later = 0
  })

  it('costs the same work for known and unknown names, and has the same response', async () => {
    const answers = await Promise.all(
      ['alice', 'nobody-here', 'root', "alice' --", 'alice@elsewhere.example'].map(async (username) => {
        const browser = openBrowser(pod.app, POD)
        await browser.visit('/users/sign_in')
        const { statusCode, body } = await browser.submit({ username, password: 'wrong' })
        return [statusCode, body.replace(/value="[^"]*"/g, '')]
      }),
    )

    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  })

  it('weak passwords are rejected at registration', async () => {
    const choose = async (password: string) => {
      const browser = openBrowser(pod.app, POD)
      await browser.visit('/users/sign_up')
      return (await browser.submit({ username: 'frank', password, password_again: password, repeated: password }))
        .statusCode
    }
    expect(await choose('ninechars')).toBe(422)
    expect(await choose('x'.repeat(129))).toBe(422)
    expect(await choose('é'.repeat(65))).toBe(422)
  })

  it('is no use with a megabyte', async () => {
    const answer = await postForm(pod.app, '/users/sign_in', { username: 'alice', password: 'x'.repeat(1_000_000) })

    expect(answer.statusCode).toBe(413)
  })
})

describe('S74: cookies', () => {
  it('are for this pod over https, and for no script or other site', async () => {
    const answer = await pod.inject('/users/sign_in')
    const cookies = [answer.headers['set-cookie'] ?? []].flat()

    expect(cookies.length).toBeGreaterThan(0)
    for (const cookie of cookies) expect(cookie).toMatch(/(?=.*; *httponly)(?=.*; *secure)(?=.*; *samesite=lax)/i)
  })

  it('give no access to the API', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_in')
    await browser.submit({ username: 'alice', password: 'the password of alice' })
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')

    const answer = await pod.inject({ url: '/api/v1/user', headers: { cookie, origin: 'https://evil.example' } })

    expect(answer.statusCode).toBe(401)
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
  })

  it.each(['/users/sign_in', '/users/sign_up', '/users/sign_out', '/api/openid_connect/authorizations'])(
    'with a form of another site change nothing at %s',
    async (url) => {
      const browser = openBrowser(pod.app, POD)
      await browser.visit('/users/sign_in')
      const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')

      for (const form of ['', 'guessed']) {
        const answer = await postForm(
          pod.app,
          url,
          { form, username: 'alice', password: 'the password of alice', approve: 'true' },
          { cookie },
        )
        expect([url, answer.statusCode >= 400]).toEqual([url, true])
      }
    },
  )
})

it('S73: token requests are limited to a hundred and twenty a minute per address, and continue afterwards', async () => {
  const ask = async () =>
    (
      await pod.inject({
        method: 'POST',
        url: TOKENS,
        remoteAddress: '198.51.100.120',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: 'grant_type=x',
      })
    ).statusCode
  for (let turn = 0; turn < 120; turn += 1) expect(await ask()).not.toBe(429)

  expect(await ask()).toBe(429)
  later = 61_000
  expect(await ask()).not.toBe(429)
  later = 0
})
