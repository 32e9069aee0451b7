import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkCode } from '../../../src/domain/accounts/factors/second-factor.js'
import { beginSecondStep, findSecondStep } from '../../../src/domain/accounts/factors/second-step.js'
import { findTotpStep, readBase32, totpCode, totpUrl, writeBase32 } from '../../../src/domain/accounts/factors/totp.js'
import { endSessionsIfRevoked, signIn } from '../../../src/domain/accounts/sign-in.js'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { openBrowser, type TestBrowser } from '../../support/browser/scriptless-browser.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  POD,
  registerTestClient,
  type TestOidcClient,
} from '../../support/http/oidc-client.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

let pod: ConsolePod
let client: TestOidcClient
beforeAll(async () => {
  pod = await startConsolePod({
    environment: { AUTHORIZATION_LIMIT: '0', TOKEN_LIMIT: '0', STAFF_SECOND_FACTOR: 'on' },
  })
  client = await registerTestClient(pod.app)
})
afterAll(() => pod.close())

const ACCOUNTS = { dan: { username: 'dan', password: 'the password of dan' } }

async function userId(username = 'dan'): Promise<number> {
  return (await pod.pod.db('users').where({ username }).first('id')).id
}

/** Moves the clock, so that a code of the step before is not used again. */
function nextCode(secret: string, steps = 0): string {
  return totpCode(readBase32(secret), Math.floor(pod.pod.now().getTime() / 30_000) + steps)
}

interface SetUp {
  readonly secret: string
  readonly codes: readonly string[]
}

async function setUp(browser: TestBrowser): Promise<SetUp> {
  await browser.visit('/settings/two_factor/set_up')
  const secret = /<code>([A-Z2-7 ]+)<\/code>/.exec(browser.page.body)?.[1]?.replaceAll(' ', '') ?? ''
  await browser.submit({ code: nextCode(secret) })
  const codes = Array.from(browser.page.body.matchAll(/<li><code>([^<]+)<\/code>/g), ([, code = '']) => code)
  pod.later(60)
  return { secret, codes }
}

/** Turns all factors of a person off and forgets wrong codes. */
async function reset(username = 'dan'): Promise<void> {
  const id = await userId(username)
  const off = { sealedTotpSecret: null, totpConfirmedAt: null, totpLastStep: null }
  await pod.pod.db('userSecrets').where({ userId: id }).update(off)
  for (const table of ['recoveryCodes', 'wrongCodes', 'secondSteps']) {
    await pod.pod.db(table).where({ userId: id }).delete()
  }
}

async function withFactor(use: (factor: SetUp, browser: TestBrowser) => Promise<void>): Promise<void> {
  const browser = await pod.signedIn('dan')
  const factor = await setUp(browser)
  try {
    await use(factor, browser)
  } finally {
    await reset()
  }
}

async function givePassword(browser = openBrowser(pod.app, POD)): Promise<TestBrowser> {
  if (browser.url.pathname !== '/users/sign_in') await browser.visit('/users/sign_in')
  await browser.submit(ACCOUNTS.dan)
  return browser
}

function claimsOf(idToken: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString())
}

async function claimsFor(code: string): Promise<Record<string, unknown>> {
  return claimsOf(
    (await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json().id_token,
  )
}

const ESSENTIAL = JSON.stringify({ id_token: { acr: { essential: true, value: '2' } } })

describe('codes', () => {
  it.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('of second %d are those of RFC 6238', (second, code) => {
    expect(totpCode(Buffer.from('12345678901234567890'), Math.floor(second / 30), 8)).toBe(code)
  })

  it('are accepted one step before and after', () => {
    const secret = writeBase32(Buffer.from('12345678901234567890'))
    const at = new Date(1_111_111_111_000)
    const step = Math.floor(at.getTime() / 30_000)
    const found = [-2, -1, 0, 1, 2].map((off) => findTotpStep(secret, totpCode(readBase32(secret), step + off), at))
    expect(found).toEqual([undefined, step - 1, step, step + 1, undefined])
    expect(['１２３４５６', '12345６', '', '1234567'].map((code) => findTotpStep(secret, code, at))).toEqual(
      Array(4).fill(undefined),
    )
    expect(secret).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
    expect(totpUrl(secret, { issuer: 'A & B', label: 'a@b.example' })).toContain(
      'otpauth://totp/A%20%26%20B%3Aa%40b.example?secret=GEZ',
    )
  })
})

describe('the authenticator app', () => {
  it('is on only after a right code, which gives ten recovery codes', async () => {
    const browser = await pod.signedIn('dan')
    await browser.visit('/settings/two_factor/set_up')
    expect(browser.page.body).toContain('<svg class="qr"')
    await browser.submit({ code: '000000' })
    expect(browser.page.statusCode).toBe(422)
    expect((await givePassword()).url.pathname).toBe('/')

    await withFactor(async ({ codes }) => {
      expect(new Set(codes).size).toBe(10)
      const other = await givePassword()
      expect(other.url.pathname).toBe('/users/sign_in/second_factor')
      expect(other.cookies.has('pod_session')).toBe(false)
      expect((await other.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    })
  })

  it('signs in with a code once; the step before is accepted, two before are not', async () => {
    await withFactor(async ({ secret }) => {
      const id = await userId()
      const twoBefore = nextCode(secret, -2)
      expect(await checkCode(pod.pod, id, twoBefore)).toBe('wrong')
      const code = nextCode(secret, -1)
      const both = await Promise.all([checkCode(pod.pod, id, code), checkCode(pod.pod, id, code)])
      expect(both.sort()).toEqual(['right', 'wrong'])

      const browser = await givePassword()
      await browser.submit({ code: '12 34' })
      expect([browser.page.statusCode, browser.page.body.includes('1234')]).toEqual([422, false])
      await browser.submit({ code: nextCode(secret).replace(/^.../, '$& ') })
      expect(browser.url.pathname).toBe('/')
      expect((await browser.visit('/settings')).body).toContain('<h1>Settings</h1>')
    })
  })

  it('is replaced by a recovery code, once, in any spelling', async () => {
    await withFactor(async ({ codes: [code = ''] }) => {
      const browser = await givePassword()
      await browser.submit({ code: ` ${code.toLowerCase().replaceAll('-', ' ')}` })
      expect(browser.url.pathname).toBe('/')
      await browser.visit('/settings/two_factor')
      expect(browser.page.body).toContain('You have <b>9</b> unused codes')

      const again = await givePassword()
      await again.submit({ code })
      expect(again.page.statusCode).toBe(422)
    })
  })

  it('accepts five codes after one password, and twenty wrong ones an hour', async () => {
    await withFactor(async ({ secret }) => {
      for (let round = 0; round < 4; round += 1) {
        const browser = await givePassword()
        for (let tried = 0; tried < 5; tried += 1) {
          await browser.submit({ code: '000000' })
          expect(browser.page.statusCode).toBe(422)
        }
        await browser.submit({ code: nextCode(secret) })
        expect(browser.url.pathname).toBe('/users/sign_in')
      }
      const browser = await givePassword()
      await browser.submit({ code: nextCode(secret) })
      expect(browser.page.statusCode).toBe(429)
      pod.later(3_700)
      const later = await givePassword()
      await later.submit({ code: nextCode(secret) })
      expect(later.url.pathname).toBe('/')
    })
  })

  it('is requested with the password before a change, and ends other sessions when it goes', async () => {
    await withFactor(async ({ secret }, browser) => {
      pod.later(660)
      await browser.visit('/settings/password')
      await browser.submit({ current_password: ACCOUNTS.dan.password, current_code: '000000' })
      expect([browser.page.statusCode, browser.page.body.includes('The code is wrong.')]).toEqual([422, true])
      await browser.submit({ current_password: ACCOUNTS.dan.password, current_code: nextCode(secret) })
      expect(browser.url.pathname).toBe('/settings/password')

      pod.later(60)
      const other = await givePassword()
      await other.submit({ code: nextCode(secret) })
      await browser.visit('/settings/two_factor')
      await browser.submit({}, '/settings/two_factor')
      expect(browser.page.body).toContain('The authenticator app is off.')
      expect((await other.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    })
  })

  it('has a secret that opens for its own user only, and stores no code', async () => {
    await withFactor(async ({ secret, codes }) => {
      const rows = async (table: string) => JSON.stringify(await pod.pod.db(table))
      const stored = (await rows('userSecrets')) + (await rows('recoveryCodes'))
      for (const text of [secret, ...codes, ...codes.map((code) => code.replaceAll('-', ''))]) {
        expect(stored).not.toContain(text)
        expect(stored).not.toContain(Buffer.from(text).toJSON().data.join(','))
      }
      const [id, other] = [await userId(), await userId('mod')]
      const { sealedTotpSecret } = await pod.pod.db('userSecrets').where({ userId: id }).first()
      expect(pod.pod.secrets.decrypt(sealedTotpSecret, `totp ${id}`)).toBe(secret)
      expect(() => pod.pod.secrets.decrypt(sealedTotpSecret, `totp ${other}`)).toThrow()
    })
  })
})

describe('a secret that is not confirmed', () => {
  it('is replaced at the next visit, kept after a wrong code, and cleared by a new password', async () => {
    const browser = await pod.signedIn('dan')
    const secret = () => /<code>([A-Z2-7 ]+)<\/code>/.exec(browser.page.body)?.[1]
    await browser.visit('/settings/two_factor/set_up')
    const first = secret()
    await browser.visit('/settings/two_factor/set_up')
    const second = secret()
    await browser.submit({ code: '000000' })
    expect([first === second, secret()]).toEqual([false, second])
    await browser.visit('/settings/password')
    await browser.submit({ password: ACCOUNTS.dan.password, password_again: ACCOUNTS.dan.password })
    const row = await pod.pod
      .db('userSecrets')
      .where({ userId: await userId() })
      .first()
    expect(row.sealedTotpSecret).toBeNull()
  })
})

describe('a sign-in', () => {
  it('is not confirmed if a second factor was turned on after its password was checked', async () => {
    const late = await signIn(pod.pod, ACCOUNTS.dan.username, ACCOUNTS.dan.password)
    expect(late?.needsFactor).toBe(false)
    await withFactor(async (_factor, browser) => {
      expect(late && (await endSessionsIfRevoked(pod.pod, late))).toBe(true)
      expect((await browser.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    })
  })

  it('is not confirmed, and has no second step, if the password has changed', async () => {
    await withFactor(async () => {
      const id = await userId()
      const late = await signIn(pod.pod, ACCOUNTS.dan.username, ACCOUNTS.dan.password)
      const { passwordHash } = await pod.pod.db('userSecrets').where({ userId: id }).first()
      await pod.pod.db('userSecrets').where({ userId: id }).update({ passwordHash: 'another' })
      const first = { passwordAt: pod.pod.now() }
      const step = await beginSecondStep(pod.pod, { userId: id, first, requestUid: undefined, returnTo: undefined })
      expect(late && (await endSessionsIfRevoked(pod.pod, late))).toBe(true)
      expect(await findSecondStep(pod.pod, step)).toBeUndefined()
      await pod.pod.db('userSecrets').where({ userId: id }).update({ passwordHash })
    })
  })
})

describe('a client', () => {
  it('gets its code after both steps, with the methods in the ID token', async () => {
    await withFactor(async ({ secret }) => {
      const browser = openBrowser(pod.app, POD)
      await browser.visit(client.address())
      await givePassword(browser)
      expect(browser.url.pathname).toBe('/users/sign_in/second_factor')
      await browser.submit({ code: nextCode(secret) })
      await browser.submit({ approve: 'true' })

      expect(await claimsFor(codeIn(browser.url))).toMatchObject({ acr: '2', amr: ['pwd', 'otp', 'mfa'] })
    })
    expect(await claimsFor(codeIn(await approveClient(pod.app, client, 'dan')))).toMatchObject({
      acr: '0',
      amr: ['pwd'],
    })
  })

  it('gets an error if it needs two factors and the user has one', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address({ claims: ESSENTIAL }))
    await givePassword(browser)
    expect(browser.url.searchParams.get('error')).toBe('unmet_authentication_requirements')
    await browser.visit(client.address({ claims: ESSENTIAL }))
    expect(browser.url.searchParams.get('error')).toBe('unmet_authentication_requirements')
  })

  it('that needs two factors gets only the page for the code in a session with one factor', async () => {
    await withFactor(async ({ secret }, browser) => {
      const { authenticatedAt } = await pod.pod.db('browserSessions').orderBy('beganAt', 'desc').first()
      await browser.visit(client.address({ claims: ESSENTIAL }))
      expect(browser.url.pathname).toBe('/users/sign_in/second_factor')
      await browser.submit({ code: nextCode(secret) })
      if (browser.url.host === 'pod.example') await browser.submit({ approve: 'true' })

      const claims = await claimsFor(codeIn(browser.url))
      expect(claims).toMatchObject({ acr: '2', auth_time: authenticatedAt.getTime() / 1_000 })
    })
  })

  it('gets no session for the code alone: a step without the password needs its session', async () => {
    await withFactor(async ({ secret }, browser) => {
      await browser.visit(client.address({ acr_values: '2' }))
      expect(browser.url.pathname).toBe('/users/sign_in/second_factor')
      const request = browser.url.searchParams.get('request') ?? ''
      const cookies = [...browser.cookies].filter(([name]) => !name.startsWith('pod_session'))
      expect(cookies.length).toBeLessThan(browser.cookies.size)
      const fields = { form: browser.cookies.get('pod_form') ?? '', request, code: nextCode(secret) }
      const answer = await pod.inject({
        method: 'POST',
        url: '/users/sign_in/second_factor',
        headers: {
          cookie: cookies.map(([name, value]) => `${name}=${value}`).join('; '),
          'content-type': 'application/x-www-form-urlencoded',
        },
        payload: new URLSearchParams(fields).toString(),
      })
      expect(answer.headers.location).toBe(`/users/sign_in?request=${request}`)
      expect(await checkCode(pod.pod, await userId(), fields.code)).toBe('right')
    })
  })

  it('with acr_values=2 gets two factors of a user who has them, and one of others', async () => {
    expect(codeIn(await approveClient(pod.app, client, 'dan', { parameters: { acr_values: '2' } }))).toBeTruthy()
    await withFactor(async ({ secret }, browser) => {
      await browser.visit(client.address({ acr_values: '2' }))
      expect(browser.url.pathname).toBe('/users/sign_in/second_factor')
      await browser.submit({ code: nextCode(secret) })
      expect(await claimsFor(codeIn(browser.url))).toMatchObject({ acr: '2' })
    })
  })

  it('is never shown a page with prompt=none, and gets both steps with prompt=login', async () => {
    await withFactor(async ({ secret }, browser) => {
      await browser.visit(client.address({ prompt: 'none', claims: ESSENTIAL }))
      expect(browser.url.searchParams.get('error')).toBe('login_required')
      await browser.visit(client.address({ prompt: 'login' }))
      expect(browser.url.pathname).toBe('/users/sign_in')
      await browser.submit(ACCOUNTS.dan)
      expect(browser.url.pathname).toBe('/users/sign_in/second_factor')
      await browser.submit({ code: nextCode(secret) })
      expect(browser.url.host).toBe('client.example')
    })
  })

  it('gets no code of a second step that began in the request of another application', async () => {
    await withFactor(async ({ secret }) => {
      const browser = openBrowser(pod.app, POD)
      await browser.visit(client.address({ state: 'first' }))
      await givePassword(browser)
      const first = `${browser.url.pathname}${browser.url.search}`
      await browser.visit(client.address({ state: 'second' }))
      await givePassword(browser)
      await browser.visit(first)
      expect(browser.page.statusCode).toBe(400)
      expect(secret).not.toBe('')
    })
  })
})

describe('staff that needs a second factor', () => {
  it('reaches only the page that sets it up, and keeps the last factor', async () => {
    const browser = await pod.signedIn('mod')
    await browser.visit('/admin')
    expect(`${browser.url.pathname}${browser.url.search}`).toBe('/settings/two_factor?needed=1')
    expect(browser.page.body).toContain('Your role on this pod needs a second factor.')
    const scoped = await approveClient(pod.app, client, 'mod', { parameters: { scope: 'openid moderation' }, browser })
    expect(scoped.searchParams.get('code')).toBeTruthy()
    const [{ scopes }] = await pod.pod
      .db('authorizations')
      .where({ userId: await userId('mod') })
      .whereNotNull('clientId')
    expect(scopes).not.toContain('moderation')

    const { accessToken } = await mintToken(pod.pod, 'mod', { scopes: ['moderation'], lifetime: 60 })
    const headers = { authorization: `Bearer ${accessToken}` }
    expect((await pod.inject({ url: '/api/admin/v1/cases', headers })).statusCode).toBe(403)

    const { secret } = await setUp(browser)
    expect((await browser.visit('/admin')).statusCode).toBe(200)
    expect((await pod.inject({ url: '/api/admin/v1/cases', headers })).statusCode).toBe(200)
    await browser.visit('/settings/two_factor')
    await browser.submit({}, '/settings/two_factor')
    expect([browser.page.statusCode, browser.page.body.includes('Your role needs a second factor.')]).toEqual([
      422,
      true,
    ])
    expect(secret).not.toBe('')
    await reset('mod')
  })
})
