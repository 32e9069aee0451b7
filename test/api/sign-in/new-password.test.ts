import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { resetPassword } from '../../../src/domain/accounts/accounts.js'
import { endSessionsIfRevoked, signIn } from '../../../src/domain/accounts/sign-in.js'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import { openEventStream } from '../../support/http/event-stream.js'
import {
  approveClient,
  codeIn,
  POD,
  postForm,
  registerTestClient,
  type TestOidcClient,
} from '../../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const APPLICATIONS = '/settings/applications'
const NEW = 'something new to keep'
const SCOPE = { scope: 'openid profile' }

let pod: TestPod
let client: TestOidcClient
beforeAll(async () => {
  pod = await buildPod()
  await pod.people('bob')
  client = await registerTestClient(pod.app)
})
afterAll(() => pod.close())

async function tokensOf(username: string) {
  const code = codeIn(await approveClient(pod.app, client, username, { parameters: SCOPE }))
  const answer = await exchange(code)
  expect(answer.statusCode).toBe(200)
  return answer.json()
}

const exchange = (code: string) =>
  client.token({ grant_type: 'authorization_code', code, redirect_uri: client.redirectUri })
const refresh = (token: string) => client.token({ grant_type: 'refresh_token', refresh_token: token })

async function statusWith(token: string): Promise<number> {
  const { statusCode } = await pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${token}` } })
  return statusCode
}

async function openSignedIn(username: string) {
  const browser = openBrowser(pod.app, POD)
  await browser.visit('/users/sign_in')
  await browser.submit({ username, password: `the password of ${username}` })
  return browser
}

describe('a new password', () => {
  it('ends sessions, tokens and codes of the account, and of no other', async () => {
    await pod.people('alice')
    const [of, other] = [await tokensOf('alice'), await tokensOf('bob')]
    const minted = await mintToken(pod.pod, 'alice', { scopes: ['openid'], lifetime: 60 })
    const code = codeIn(await approveClient(pod.app, client, 'alice', { parameters: SCOPE }))
    const browser = await openSignedIn('alice')

    await resetPassword(pod.pod, 'alice', NEW)

    expect(await statusWith(of.access_token)).toBe(401)
    expect(await statusWith(minted.accessToken)).toBe(401)
    const refreshed = await refresh(of.refresh_token)
    expect([refreshed.statusCode, refreshed.json().error]).toEqual([400, 'invalid_grant'])
    expect((await exchange(code)).json().error).toBe('invalid_grant')
    await browser.visit(APPLICATIONS)
    expect(browser.url.pathname).toBe('/users/sign_in')
    expect(await statusWith(other.access_token)).toBe(200)
    expect((await refresh(other.refresh_token)).statusCode).toBe(200)
  })

  it('ends open live streams at once', async () => {
    await pod.people('carol')
    const { access_token: token } = await tokensOf('carol')
    const { access_token: other } = await tokensOf('bob')
    await pod.app.listen({ port: 0, host: '127.0.0.1' })
    const base = `http://127.0.0.1:${(pod.app.server.address() as AddressInfo).port}`
    await using stream = await openEventStream({ base, token })
    await using untouched = await openEventStream({ base, token: other })
    await Promise.all([stream.placed(), untouched.placed()])

    await resetPassword(pod.pod, 'carol', NEW)

    expect(await Promise.race([stream.ended, pause(10_000, 'still open', { ref: false })])).toBe('ended')
    expect(await Promise.race([untouched.ended, pause(0, 'still open')])).toBe('still open')
  })

  it('keeps the tokens of applications on request, but no sessions or codes', async () => {
    await pod.people('dora')
    const { access_token: token, refresh_token: refreshToken } = await tokensOf('dora')
    const browser = await openSignedIn('dora')
    const code = codeIn(await approveClient(pod.app, client, 'dora', { parameters: SCOPE }))

    await resetPassword(pod.pod, 'dora', NEW, { shouldKeepApplications: true })

    expect(await statusWith(token)).toBe(200)
    expect((await refresh(refreshToken)).statusCode).toBe(200)
    expect((await exchange(code)).json().error).toBe('invalid_grant')
    await browser.visit(APPLICATIONS)
    expect(browser.url.pathname).toBe('/users/sign_in')
  })

  it('ends an authorization request in which the old one was given', async () => {
    await pod.people('ella')
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address())
    await browser.submit({ username: 'ella', password: 'the password of ella' })
    expect(browser.url.pathname).toBe('/api/openid_connect/authorizations')

    await resetPassword(pod.pod, 'ella', NEW)
    const answer = await browser.submit({ approve: 'true' })

    expect(answer.statusCode).toBe(400)
    const authorizations = await pod.pod.db('authorizations').join('users', 'users.id', 'authorizations.userId')
    expect(authorizations.filter(({ username }) => username === 'ella')).toEqual([])
  })

  it('ends an authorization request whose sign-in was not followed yet', async () => {
    await pod.people('fred')
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address())
    const [, form = ''] = /name="form" value="([^"]*)"/.exec(browser.page.body) ?? []
    const [, request = ''] = /name="request" value="([^"]*)"/.exec(browser.page.body) ?? []
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const fields = { form, request, username: 'fred', password: 'the password of fred' }
    const answer = await postForm(pod.app, '/users/sign_in', fields, { cookie })
    expect(answer.statusCode).toBe(303)

    await resetPassword(pod.pod, 'fred', NEW)
    await browser.visit(String(answer.headers.location))

    expect(browser.page.statusCode).toBe(400)
  })

  it('ends a session that was begun with the old one at the same moment', async () => {
    const { gina } = await pod.people('gina')
    const late = await signIn(pod.pod, 'gina', 'the password of gina')
    await resetPassword(pod.pod, 'gina', NEW)
    await pod.pod.db('oidcRecords').insert({
      model: 'Session',
      idHash: Buffer.alloc(32, 7),
      uid: 'late',
      payload: JSON.stringify({ accountId: gina.account.address }),
      expiresAt: new Date(Date.now() + 60_000),
    })

    expect(late && (await endSessionsIfRevoked(pod.pod, late))).toBe(true)

    expect(await pod.pod.db('oidcRecords').where({ uid: 'late' })).toEqual([])
    expect(await (await signIn(pod.pod, 'gina', NEW))?.isValid()).toBe(true)
  })
})

describe('a refresh token', () => {
  const DAY = 86_400_000
  const unusedFor = (days: number) =>
    pod.pod.db('refreshTokens').update({ expiresAt: pod.pod.db.raw(`expires_at - make_interval(days => ?)`, [days]) })

  it('ends after 400 days without use', async () => {
    const { refresh_token: token } = await tokensOf('bob')
    await unusedFor(401)

    const answer = await refresh(token)

    expect([answer.statusCode, answer.json().error]).toEqual([400, 'invalid_grant'])
  })

  it('stays valid with each use', async () => {
    const { refresh_token: token } = await tokensOf('bob')
    await unusedFor(399)

    expect((await refresh(token)).statusCode).toBe(200)

    const { expiresAt } = await pod.pod.db('refreshTokens').orderBy('id', 'desc').first()
    expect(expiresAt.getTime()).toBeGreaterThan(Date.now() + 399 * DAY)
    await unusedFor(399)
    expect((await refresh(token)).statusCode).toBe(200)
  })
})
