import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as openid from 'openid-client'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findChromium, launchChromium } from '../../support/browser/chromium.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

/** The URLs between the one that a client opens and the one that receives the response. */
type SignIn = (address: string, person: { readonly username: string; readonly password: string }) => Promise<URL>

const executablePath = findChromium()
if (executablePath === undefined) console.warn('No Chromium is installed: the sign-in with a real browser is left out.')
const browsers = executablePath === undefined ? (['forms'] as const) : (['forms', 'Chromium'] as const)

let pod: TestPod
let podUrl: string
let home: { readonly server: Server; readonly url: string }
let callback: { readonly server: Server; readonly url: string }
let browser: Browser | undefined
beforeAll(async () => {
  home = await listen((_request, response) => response.end('You can go back to the application.'))
  // As clients do that take the code at one address and live at another.
  callback = await listen((_request, response) => response.writeHead(302, { location: home.url }).end())
  const port = await freePort()
  podUrl = `http://localhost:${port}`
  pod = await buildPod({ environment: { POD_URL: podUrl } })
  await pod.app.listen({ port, host: 'localhost' })
  await pod.people('alice')
  browser = await launchChromium()
}, 180_000)
afterAll(async () => {
  await browser?.close()
  callback.server.close()
  home.server.close()
  await pod.close()
})

const alice = { username: 'alice', password: 'the password of alice' }

const withForms: SignIn = async (address, person) => {
  const forms = openBrowser(pod.app, podUrl)
  await forms.visit(address)
  await forms.submit({ ...person })
  await forms.submit({ approve: 'true' })
  return forms.url
}

const withChromium: SignIn = async (address, { username, password }) => {
  if (browser === undefined) throw new Error('There is no browser.')
  const context = await browser.newContext({ javaScriptEnabled: false })
  try {
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) complaints.push(message.text())
    })
    const answered = new Promise<URL>((resolve) => {
      page.on('response', (response) => {
        const { location } = response.headers()
        if (location === undefined || location.startsWith('/')) return
        if (new URL(response.url()).origin === podUrl && new URL(location).origin !== podUrl) resolve(new URL(location))
      })
    })
    await page.goto(address)
    await page.getByLabel('Username').fill(username)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    const url = await answered
    if (url.protocol === 'http:') await page.waitForURL(home.url)
    expect(complaints).toEqual([])
    return url
  } finally {
    await context.close()
  }
}

const ways = { forms: withForms, Chromium: withChromium } satisfies Record<string, SignIn>

describe.each(browsers)('with %s', (way) => {
  it.each([
    ['a port of this machine', () => callback.url],
    ['a scheme of its own', () => 'org.example.app://callback'],
  ])('a native client with the redirect URI %s gets, refreshes and revokes its tokens', async (_place, address) => {
    const redirectUri = address()
    const config = await openid.dynamicClientRegistration(
      new URL(podUrl),
      { application_type: 'native', client_name: 'A native client', redirect_uris: [redirectUri] },
      undefined,
      { execute: [openid.allowInsecureRequests] },
    )
    const verifier = openid.randomPKCECodeVerifier()
    const [state, nonce] = [openid.randomState(), openid.randomNonce()]
    const asked = openid.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: 'openid profile contacts:read',
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
      prompt: 'login',
      login_hint: 'alice',
    })

    const back = await ways[way](asked.href, alice)
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
    const tokens = await openid.authorizationCodeGrant(config, back, checks)

    const claims = tokens.claims()
    const ofAlice = `alice@${new URL(podUrl).host}`
    expect(claims).toMatchObject({ iss: podUrl, sub: ofAlice, aud: config.clientMetadata().client_id, nonce })
    expect(await openid.fetchUserInfo(config, tokens.access_token, ofAlice)).toMatchObject({ nickname: 'alice' })
    const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(await statusWith(renewed.access_token)).toBe(200)

    await openid.tokenRevocation(config, renewed.access_token)
    expect(await statusWith(renewed.access_token)).toBe(401)
    expect(await statusWith(tokens.access_token)).toBe(200)
    await openid.tokenRevocation(config, tokens.refresh_token ?? '')
    expect(await statusWith(tokens.access_token)).toBe(401)
  })
})

async function statusWith(token: string): Promise<number> {
  const answer = await fetch(`${podUrl}/api/v1/user`, { headers: { authorization: `Bearer ${token}` } })
  return answer.status
}

async function listen(serve: Parameters<typeof createServer>[1]) {
  const server = createServer(serve)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${portOf(server)}/callback` }
}

/** The pod has to know its address before it listens. */
async function freePort(): Promise<number> {
  const { server } = await listen(undefined)
  const port = portOf(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port // it listens on TCP
}
