import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findRelyingParty } from '../../../src/domain/accounts/factors/relying-party.js'
import { listSections } from '../../../src/web/settings/sections.js'
import { violationsOn } from '../../support/browser/axe.js'
import { findChromium, launchChromium } from '../../support/browser/chromium.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { type PageOptions, type SoftwarePasskey, softwarePasskey } from '../../support/browser/software-passkey.js'
import { freePort } from '../../support/http/free-port.js'
import { CALLBACK, codeIn, registerTestClient } from '../../support/http/oidc-client.js'
import { buildPod } from '../../support/pods/build-pod.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

let pod: ConsolePod
let chromium: Browser | undefined
beforeAll(async () => {
  const port = await freePort()
  const environment = { POD_URL: `http://localhost:${port}`, AUTHORIZATION_LIMIT: '0', STAFF_SECOND_FACTOR: 'on' }
  pod = await startConsolePod({ environment })
  await pod.app.listen({ port, host: 'localhost' })
  chromium = await launchChromium()
}, 180_000)
afterAll(async () => {
  await chromium?.close()
  await pod.close()
})

/** What the page gives to its script. */
function optionsIn({ page }: TestBrowser): PageOptions {
  const [, text = '{}'] = /data-options="([^"]*)"/.exec(page.body) ?? []
  return JSON.parse(text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))))
}

async function userRow(username = 'dan') {
  return pod.pod.db('users').where({ username }).first()
}

async function passkeysOf(username = 'dan') {
  return pod.pod.db('passkeys').where({ userId: (await userRow(username)).id })
}

async function add(browser: TestBrowser, passkey = softwarePasskey(pod.url)): Promise<SoftwarePasskey> {
  await browser.visit('/settings/passkeys')
  await browser.submit({ name: 'A key', passkey: passkey.make(optionsIn(browser)) }, '/settings/passkeys')
  return passkey
}

async function withPasskey(use: (passkey: SoftwarePasskey, browser: TestBrowser) => Promise<void>): Promise<void> {
  const browser = await pod.signedIn('dan')
  const passkey = await add(browser)
  expect(await passkeysOf()).toHaveLength(1)
  try {
    await use(passkey, browser)
  } finally {
    await pod.pod.db('passkeys').delete()
    await pod.pod.db('recovery_codes').delete()
  }
}

type Changes = Parameters<SoftwarePasskey['use']>[1]

async function signIn(passkey: SoftwarePasskey, changes?: Changes, browser = pod.visitor()): Promise<TestBrowser> {
  await browser.visit('/users/sign_in/passkey')
  await browser.submit({ passkey: passkey.use(optionsIn(browser), changes) })
  return browser
}

const isSignedIn = async (browser: TestBrowser) => (await browser.visit('/settings')).body.includes('<h1>Settings</h1>')

describe('a passkey', () => {
  it('signs in without a username, ends other sessions when it is added, and gives recovery codes', async () => {
    const other = await pod.signedIn('dan')
    await withPasskey(async (passkey, browser) => {
      expect(browser.page.body.match(/<li><code>/g)).toHaveLength(10)
      expect(await isSignedIn(other)).toBe(false)
      expect(await isSignedIn(await signIn(passkey))).toBe(true)
      const [stored] = await passkeysOf()
      expect([stored.name, stored.counter, stored.lastUsedAt]).toEqual(['A key', 1, expect.any(Date)])
    })
  })

  it('is a second factor: the password alone makes no session, and the page offers the passkey', async () => {
    await withPasskey(async (passkey) => {
      const browser = pod.visitor()
      await browser.visit('/users/sign_in')
      await browser.submit({ username: 'dan', password: 'the password of dan' })
      expect(browser.url.pathname).toBe('/users/sign_in/second_factor')
      expect(browser.page.body).toContain('href="/users/sign_in/passkey"')
      expect(await isSignedIn(await signIn(passkey, {}, browser))).toBe(true)
    })
  })

  it.each<readonly [string, (options: PageOptions) => Changes]>([
    ['of another origin', () => ({ origin: 'https://evil.example' })],
    ['for another relying party', () => ({ rpId: 'evil.example' })],
    ['without a verified person', () => ({ verified: false })],
    ['with a challenge of its own', () => ({ challenge: 'A'.repeat(43) })],
    ['with the user id of another person', () => ({ userHandle: Buffer.alloc(64).toString('base64url') })],
  ])('is refused with an answer %s', async (_name, changesFor) => {
    await withPasskey(async (passkey) => {
      const browser = await signIn(passkey, changesFor({ challenge: '' }))
      expect([browser.page.statusCode, browser.page.body.includes('The passkey was not accepted.')]).toEqual([
        422,
        true,
      ])
      expect(await isSignedIn(browser)).toBe(false)
      expect(await isSignedIn(await signIn(passkey))).toBe(true)
    })
  })

  it('that is unknown or removed is refused like a text that is not an answer', async () => {
    const bodies = new Set<string>()
    const refuse = async (passkey: SoftwarePasskey | string) => {
      const browser = pod.visitor()
      await browser.visit('/users/sign_in/passkey')
      const answer = typeof passkey === 'string' ? passkey : passkey.use(optionsIn(browser))
      await browser.submit({ passkey: answer })
      expect(browser.page.statusCode).toBe(422)
      bodies.add(browser.page.body.replace(/data-options="[^"]*"|name="form" value="[^"]*"/g, ''))
    }
    let removed: SoftwarePasskey | undefined
    await withPasskey(async (passkey, browser) => {
      await browser.visit('/settings/passkeys')
      await browser.submit({}, '/settings/passkeys/remove')
      expect(await passkeysOf()).toEqual([])
      expect(await pod.pod.db('recovery_codes')).toEqual([])
      removed = passkey
      await add(browser)
      await pod.pod.db('users').where({ username: 'dan' }).update({ lockedAt: pod.pod.now() })
      await refuse(passkey)
      await pod.pod.db('users').where({ username: 'dan' }).update({ lockedAt: null })
    })
    if (removed !== undefined) await refuse(removed)
    await refuse(softwarePasskey(pod.url))
    for (const text of ['', '{}', 'null', '[]', '{"id":"a","response":{"userHandle":"b"}}']) await refuse(text)
    expect(bodies.size).toBe(1)
  })

  it('answers a challenge once, in its browser, for its purpose, within five minutes', async () => {
    await withPasskey(async (passkey, here) => {
      const [browser, other] = [pod.visitor(), pod.visitor()]
      await browser.visit('/users/sign_in/passkey')
      await other.visit('/users/sign_in/passkey')
      const answer = passkey.use(optionsIn(browser))
      await other.submit({ passkey: answer })
      expect([other.page.statusCode, await isSignedIn(other)]).toEqual([422, false])
      await browser.submit({ passkey: answer })
      expect(await isSignedIn(browser)).toBe(true)
      await browser.visit('/users/sign_in/passkey')
      await browser.submit({ passkey: answer })
      expect(browser.page.statusCode).toBe(422)

      await here.visit('/settings/passkeys')
      const ofOtherPurpose = passkey.use(optionsIn(here))
      const late = pod.visitor()
      await late.visit('/users/sign_in/passkey')
      const lateAnswer = passkey.use(optionsIn(late))
      await late.submit({ passkey: ofOtherPurpose })
      expect(late.page.statusCode).toBe(422)
      pod.later(301)
      await late.submit({ passkey: lateAnswer })
      pod.later(-301)
      expect([late.page.statusCode, await isSignedIn(late)]).toEqual([422, false])
    })
  })

  it('signs in once with one answer, also if it is sent twice at the same moment', async () => {
    await withPasskey(async (passkey) => {
      const browser = pod.visitor()
      await browser.visit('/users/sign_in/passkey')
      const form = { form: browser.cookies.get('pod_form') ?? '', passkey: passkey.use(optionsIn(browser)) }
      const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const send = async () => {
        const { statusCode } = await pod.inject({
          method: 'POST',
          url: '/users/sign_in/passkey',
          payload: new URLSearchParams(form).toString(),
          headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
        })
        return statusCode
      }
      expect((await Promise.all([send(), send(), send()])).sort()).toEqual([303, 422, 422])
    })
  })

  it('is refused if its counter does not rise, as that of a copied passkey', async () => {
    await withPasskey(async (passkey) => {
      expect(await isSignedIn(await signIn(passkey, { counter: 0 }))).toBe(true)
      expect(await isSignedIn(await signIn(passkey, { counter: 7 }))).toBe(true)
      for (const counter of [7, 3, 0]) expect((await signIn(passkey, { counter })).page.statusCode).toBe(422)
      expect(await isSignedIn(await signIn(passkey, { counter: 8 }))).toBe(true)
    })
  })

  it('needs the form token of the browser', async () => {
    await withPasskey(async (passkey) => {
      const browser = pod.visitor()
      await browser.visit('/users/sign_in/passkey')
      const payload = new URLSearchParams({ form: 'x', passkey: passkey.use(optionsIn(browser)) }).toString()
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      expect((await pod.inject({ method: 'POST', url: '/users/sign_in/passkey', payload, headers })).statusCode).toBe(
        403,
      )
    })
  })

  it('leads a person who closes the account to the page that keeps it', async () => {
    await withPasskey(async (passkey) => {
      const closing = { closeAt: new Date(pod.pod.now().getTime() + 1e8), closingBy: 'owner' }
      await pod.pod.db('users').where({ username: 'dan' }).update(closing)
      expect((await signIn(passkey)).url.pathname).toBe('/settings/close')
      await pod.pod.db('users').where({ username: 'dan' }).update({ closeAt: null, closingBy: null })
    })
  })
})

describe('the page of passkeys', () => {
  it.each<readonly [string, Changes]>([
    ['of another origin', { origin: 'https://evil.example' }],
    ['for another relying party', { rpId: 'evil.example' }],
    ['without a verified person', { verified: false }],
    ['with a challenge of its own', { challenge: 'A'.repeat(43) }],
  ])('stores no passkey from an answer %s', async (_name, changes) => {
    const browser = await pod.signedIn('dan')
    await browser.visit('/settings/passkeys')
    const passkey = softwarePasskey(pod.url).make(optionsIn(browser), changes)
    await browser.submit({ name: 'A key', passkey }, '/settings/passkeys')
    expect([browser.page.statusCode, await passkeysOf()]).toEqual([422, []])
  })

  it('stores no passkey twice, none for a challenge of another person, none without a name, and ten at most', async () => {
    await withPasskey(async (passkey, browser) => {
      await add(browser, passkey)
      expect([browser.page.statusCode, (await passkeysOf()).length]).toEqual([422, 1])
      const mod = await pod.signedIn('mod')
      await mod.visit('/settings/passkeys')
      const foreign = softwarePasskey(pod.url).make(optionsIn(mod))
      await browser.submit({ name: 'A key', passkey: foreign }, '/settings/passkeys')
      expect([browser.page.statusCode, (await passkeysOf()).length]).toEqual([422, 1])
      await browser.submit(
        { name: ' ', passkey: softwarePasskey(pod.url).make(optionsIn(browser)) },
        '/settings/passkeys',
      )
      expect([browser.page.statusCode, browser.page.body.includes('href="#name"')]).toEqual([422, true])

      for (let more = 1; more < 10; more += 1) await add(browser)
      expect(await passkeysOf()).toHaveLength(10)
      await add(browser)
      expect([browser.page.statusCode, (await passkeysOf()).length]).toEqual([422, 10])
    })
  })

  it('gives a passkey another name, and none to that of another person', async () => {
    await withPasskey(async (_, browser) => {
      const [stored] = await passkeysOf()
      const names = async () => (await passkeysOf()).map(({ name }: { readonly name: string }) => name)
      await browser.visit('/settings/passkeys')
      await browser.submit({ name: '  Phone  ' }, '/settings/passkeys/rename')
      expect([await names(), browser.page.body.includes('The passkey was renamed.')]).toEqual([['Phone'], true])
      for (const name of ['', 'x'.repeat(65)]) {
        await browser.submit({ name }, '/settings/passkeys/rename')
        expect([browser.page.statusCode, await names()]).toEqual([422, ['Phone']])
        expect(browser.page.body).toContain(`<a href="#name-${stored.id}">`)
        await browser.visit('/settings/passkeys')
      }
      const mod = await pod.signedIn('mod')
      await mod.visit('/settings/passkeys')
      const form = /name="form" value="([^"]*)"/.exec(mod.page.body)?.[1] ?? ''
      const answer = await pod.inject({
        method: 'POST',
        url: '/settings/passkeys/rename',
        headers: {
          cookie: [...mod.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          'content-type': 'application/x-www-form-urlencoded',
        },
        payload: new URLSearchParams({ form, id: String(stored.id), name: 'Mine' }).toString(),
      })
      expect([answer.statusCode, await names()]).toEqual([422, ['Phone']])
    })
  })

  it('removes no passkey of another person', async () => {
    await withPasskey(async () => {
      const [{ id }] = await passkeysOf()
      const mod = await pod.signedIn('mod')
      await add(mod)
      await mod.visit('/settings/passkeys')
      await mod.submit({ id: String(id) }, '/settings/passkeys/remove')
      expect([mod.page.statusCode, (await passkeysOf()).length]).toEqual([422, 1])

      await mod.visit('/settings/passkeys')
      await mod.submit({}, '/settings/passkeys/remove')
      expect([mod.page.statusCode, mod.page.body.includes('Your role needs a second factor.')]).toEqual([422, true])
      expect(await passkeysOf('mod')).toHaveLength(1)
    })
  })

  it('requires a proof, which a passkey of the same person gives, in the same session', async () => {
    await withPasskey(async (passkey, browser) => {
      const other = await add(await pod.signedIn('mod'))
      pod.later(660)
      await browser.visit('/settings/password')
      expect(browser.url.pathname).toBe('/users/confirm_access')
      const [, options] = [browser.page, optionsIn(browser)]
      await browser.submit({ current_passkey: other.use(options) })
      expect([browser.page.statusCode, browser.page.body.includes('The passkey was not accepted.')]).toEqual([
        422,
        true,
      ])
      await browser.submit({ current_passkey: passkey.use(optionsIn(browser)) })
      expect(browser.url.pathname).toBe('/settings/password')
      pod.later(-660)
    })
  })

  it.each([
    ['https://pod.example', 'pod.example'],
    ['https://www.pod.example:8443', 'www.pod.example'],
    ['http://localhost:3000', 'localhost'],
    ['http://pod.example', undefined],
    ['https://192.0.2.1', undefined],
    ['https://[2001:db8::1]', undefined],
  ])('belongs to %s with the relying party %s', (url, id) => {
    expect(findRelyingParty({ config: { ...pod.pod.config, url } })?.id).toBe(id)
  })

  it('does not exist, and no page has a script, on a pod without a host name', async () => {
    await using address = await buildPod({ environment: { POD_URL: 'https://192.0.2.1' } })
    for (const path of ['/users/sign_in/passkey', '/settings/passkeys']) {
      expect((await address.inject(path)).statusCode).toBe(404)
    }
    const page = await address.inject('/users/sign_in')
    expect(page.body).not.toMatch(/passkey|<script/)
    expect(page.headers['content-security-policy']).not.toContain('script-src')
  })
})

describe.each(findChromium() === undefined ? [] : ['with an authenticator'])('Chromium %s', () => {
  async function withAuthenticator(use: (page: Page) => Promise<void>): Promise<void> {
    const context = await chromium?.newContext({ baseURL: pod.url })
    if (context === undefined) throw new Error('There is no browser.')
    try {
      const page = await context.newPage()
      const session = await context.newCDPSession(page)
      await session.send('WebAuthn.enable')
      await session.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          protocol: 'ctap2',
          transport: 'internal',
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
        },
      })
      await use(page)
    } finally {
      await context.close()
    }
  }

  it('finds no violation with axe on any page of the settings, nor one wider than 320 pixels', async () => {
    const context = await chromium?.newContext({
      baseURL: pod.url,
      colorScheme: 'dark',
      viewport: { width: 320, height: 900 },
    })
    if (context === undefined) throw new Error('There is no browser.')
    const page = await context.newPage()
    const check = async (name: string) => {
      const width = Number(await page.evaluate('document.documentElement.scrollWidth'))
      expect([name, await violationsOn(page), width <= 320]).toEqual([name, [], true])
    }
    await page.goto('/users/sign_in/passkey')
    await check('sign-in with a passkey')
    await page.goto('/users/sign_in')
    await page.getByLabel('Username').fill('adm')
    await page.getByLabel('Password').fill('the password of adm')
    await page.getByRole('button', { name: 'Sign in' }).click()
    const others = ['/users/confirm_access', '/settings/two_factor/set_up']
    for (const path of [...listSections(pod.pod).map((section) => section.path), ...others]) {
      await page.goto(path)
      await check(path)
    }
    // Forms with errors, sent with the keyboard.
    const wrong = [
      ['/settings/password', 'New password'],
      ['/settings/email', 'New e-mail address'],
      ['/settings/blocks', 'Address of the person'],
      ['/settings/two_factor/set_up', 'Code'],
      ['/settings/close', 'Your username, as a confirmation'],
    ] as const
    for (const [path, label] of wrong) {
      await page.goto(path)
      await page.getByLabel(label, { exact: true }).fill('x')
      await page.keyboard.press('Enter')
      await page.getByRole('alert').first().waitFor()
      expect(await page.title()).toMatch(/^Error: /)
      await check(`${path} with an error`)
    }
    await context.close()
  }, 180_000)

  it('adds a passkey, signs in with it alone, confirms with it, and continues to an application', async () => {
    const client = await registerTestClient(pod.app)
    const faults: string[] = []
    await withAuthenticator(async (page) => {
      page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
      await page.goto('/users/sign_in')
      await page.getByLabel('Username').fill('dan')
      await page.getByLabel('Password').fill('the password of dan')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.goto('/settings/passkeys')
      await page.getByLabel('Name of the passkey').fill('This laptop')
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await page.getByRole('link', { name: 'I have stored the codes' }).click()
      await page.getByText('This laptop').first().waitFor()

      await page.context().clearCookies()
      await page.route(`${new URL(CALLBACK).origin}/**`, (route) => route.fulfill({ body: 'done' }))
      await page.goto(client.address())
      await page.getByRole('link', { name: 'Sign in with a passkey' }).click()
      await page.getByRole('button', { name: 'Use a passkey' }).click()
      await page.getByRole('button', { name: 'Allow', exact: true }).click()
      await page.waitForURL(`${new URL(CALLBACK).origin}/**`)
      const code = codeIn(new URL(page.url()))
      const tokens = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
      const claims = JSON.parse(Buffer.from(tokens.json().id_token.split('.')[1], 'base64url').toString())
      expect(claims).toMatchObject({ acr: '2', amr: ['pop', 'user', 'mfa'] })

      pod.later(660)
      await page.goto('/settings/password')
      await page.getByRole('button', { name: 'Use a passkey' }).click()
      await page.getByLabel('Repeat the new password').waitFor()
      pod.later(-660)
      expect(await passkeysOf()).toHaveLength(1)
      expect(faults).toEqual([])
    })
  }, 180_000)
})
