import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { authorizeClient } from '../../../src/domain/accounts/authorizations.js'
import { loadSigningKey } from '../../../src/domain/accounts/signing-keys.js'
import { openDatabase } from '../../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../../src/persistence/database/limits.js'
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
import { buildPod } from '../../support/pods/build-pod.js'

it('logs contain no credentials and no user input', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line) => void lines.push(line) })
  await using pod = await buildPod({ log })
  await pod.people('alice')
  const client = await registerTestClient(pod.app)
  const browser = openBrowser(pod.app, POD)
  const { verifier, parameters } = pkce()

  const code = codeIn(
    await approveClient(pod.app, client, 'alice', { parameters: { nonce: 'a-nonce', ...parameters }, browser }),
  )
  const answer = await client.token({
    grant_type: 'authorization_code',
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  })
  await client.token({ grant_type: 'refresh_token', refresh_token: answer.json().refresh_token })
  await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: verifier })

  const { access_token: access, refresh_token: refresh, id_token: id } = answer.json()
  const written = lines.join('')
  expect(written).toContain('/api/openid_connect/access_tokens')
  const secrets = [
    code,
    access,
    refresh,
    id,
    verifier,
    client.secret,
    'a-nonce',
    'the password of alice',
    ...browser.cookies.values(),
  ]
  for (const secret of secrets) {
    expect(secret).toEqual(expect.any(String))
    expect(written).not.toContain(secret)
  }
})

it('binds the ID token to the access token of the same response', async () => {
  await using pod = await buildPod()
  await pod.people('alice')
  const client = await registerTestClient(pod.app)
  const code = codeIn(await approveClient(pod.app, client, 'alice'))

  const { access_token: token, id_token: id } = (
    await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
  ).json()

  const half = createHash('sha256').update(token).digest().subarray(0, 16)
  expect(decodeJwt(id)['at_hash']).toBe(half.toString('base64url'))
})

it('creates one sealed key when processes start concurrently', async () => {
  await using pod = await buildPod()

  const keys = await Promise.all([loadSigningKey(pod.pod), loadSigningKey(pod.pod), loadSigningKey(pod.pod)])

  expect(new Set(keys.map(({ n }) => n)).size).toBe(1)
  const [row, ...others] = await pod.pod.db('signing_keys')
  expect(others).toEqual([])
  expect(row.publicJwk).toEqual({ kty: 'RSA', kid: 'default', use: 'sig', alg: 'RS256', n: keys[0]?.n, e: 'AQAB' })
  expect(String(row.sealedPrivateKey)).not.toContain('PRIVATE KEY')
})

it('concurrent consents create one authorization', async () => {
  await using pod = await buildPod()
  await pod.people('alice')
  const client = await registerTestClient(pod.app)
  const who = { address: 'alice@pod.example', clientId: client.id }

  const grants = await Promise.all(
    Array.from({ length: 20 }, () => authorizeClient(pod.pod, who, ['openid', 'public:read'])),
  )

  expect(new Set(grants).size).toBe(1)
  expect(await pod.pod.db('authorizations').where({ grantId: grants[0] })).toHaveLength(1)
})

describe('while the database is away', () => {
  it('answers 503 with Retry-After', async () => {
    const nowhere = openDatabase({
      ...WEB_DATABASE_LIMITS,
      url: 'postgres://127.0.0.1:1/nothing',
      applicationName: 'nobody',
    })
    let isAway = false
    await using pod = await buildPod({
      change: (opened) => Object.defineProperty({ ...opened }, 'db', { get: () => (isAway ? nowhere : opened.db) }),
    })
    const client = await registerTestClient(pod.app)
    await pod.inject('/api/openid_connect/jwks.json') // the authorization server is there

    isAway = true
    const token = await client.token({ grant_type: 'refresh_token', refresh_token: 'x' })
    const page = await pod.inject({ url: client.address(), headers: { accept: 'text/html' } })
    const form = await pod.inject('/users/sign_in')
    await nowhere.destroy()

    expect(token.statusCode).toBe(503)
    expect(token.headers['retry-after']).toBe('10')
    expect(token.json()).toEqual({ error: 'temporarily_unavailable', error_description: expect.any(String) })
    expect(page.statusCode).toBe(503)
    expect(page.headers['content-type']).toContain('text/html')
    expect(page.body).toContain('Please try again soon.')
    expect(form.statusCode).toBe(200) // rendering the form needs no database query
  })
})

describe('a sector identifier', () => {
  const asked: string[] = []
  const start = (answer: () => Promise<unknown>) =>
    buildPod({
      change: (pod) => ({
        ...pod,
        remotePods: {
          ...pod.remotePods,
          async get(url) {
            asked.push(String(url))
            const body = Buffer.from(JSON.stringify(await answer()))
            return { status: 200, url: new URL(url), contentType: 'application/json', body }
          },
        },
      }),
    })
  const uris = ['https://one.example/callback', 'https://two.example/callback']
  const metadata = { redirect_uris: uris, subject_type: 'pairwise' }

  it('is required for several hosts, must list them all, and is fetched with the outbound rules for pods', async () => {
    await using pod = await start(async () => uris)

    const without = await register(pod.app, metadata)
    const insecure = await register(pod.app, { ...metadata, sector_identifier_uri: 'http://one.example/sector' })
    expect(asked).toEqual([])
    const good = await register(pod.app, { ...metadata, sector_identifier_uri: 'https://one.example/sector' })
    const foreign = await register(pod.app, {
      ...metadata,
      redirect_uris: [...uris, 'https://three.example/'],
      sector_identifier_uri: 'https://one.example/sector',
    })

    expect([without, insecure, good, foreign].map(({ statusCode }) => statusCode)).toEqual([400, 400, 201, 400])
    expect(good.json()).toMatchObject({ ppid: true, sector_identifier_uri: 'https://one.example/sector' })
    expect(asked).toEqual(['https://one.example/sector', 'https://one.example/sector'])
  })

  it('an unreadable one gives the same error, for every cause', async () => {
    await using pod = await start(async () => {
      throw new Error('connect ECONNREFUSED 10.0.0.1:443')
    })

    const answer = await register(pod.app, { ...metadata, sector_identifier_uri: 'https://inside.example/sector' })

    expect(answer.statusCode).toBe(400)
    expect(answer.json()).toEqual({
      error: 'invalid_client_metadata',
      error_description: 'The document at sector_identifier_uri cannot be read.',
    })
  })
})

it('fetches no key, logo or page URL that a client has registered', async () => {
  await using pod = await buildPod({
    change: (opened) => ({
      ...opened,
      remotePods: {
        ...opened.remotePods,
        get: async () => {
          throw new Error('No request is expected.')
        },
      },
    }),
  })
  await pod.people('alice')
  const elsewhere = 'https://10.0.0.1/inside'
  const client = await registerTestClient(pod.app, {
    jwks_uri: elsewhere,
    logo_uri: elsewhere,
    client_uri: elsewhere,
    policy_uri: elsewhere,
    tos_uri: elsewhere,
  })

  const browser = openBrowser(pod.app, POD)
  const code = codeIn(await approveClient(pod.app, client, 'alice', { browser }))
  const answer = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })

  expect(answer.statusCode).toBe(200)
})

it('answers with URLs of the pod, for every Host header', async () => {
  await using pod = await buildPod()
  const client = await registerTestClient(pod.app)
  const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' }

  const answer = await pod.inject({ url: client.address(), headers })
  const cookies = answer.cookies.map(({ secure }) => secure)
  const form = await postForm(pod.app, '/api/openid_connect/authorizations/new', { client_id: client.id }, headers)

  expect(answer.statusCode).toBe(303)
  expect(JSON.stringify([answer.headers, form.headers])).not.toContain('evil.example')
  expect(cookies.length).toBeGreaterThan(0)
  expect(new Set(cookies)).toEqual(new Set([true]))
})
