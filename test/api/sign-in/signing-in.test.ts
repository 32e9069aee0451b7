import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { resetPassword } from '../../../src/domain/accounts/accounts.js'
import { createInvitation } from '../../../src/domain/accounts/invitations.js'
import { newAddress, openBrowser } from '../../support/browser/scriptless-browser.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  POD,
  postForm,
  register,
  registerTestClient,
} from '../../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const APPLICATIONS = '/settings/applications'
const START = '/'
const MINUTE = 60_000

let late = 0
let pod: TestPod
beforeAll(async () => {
  const now = () => new Date(Date.now() + late)
  pod = await buildPod({ environment: { REGISTRATIONS: 'open' }, change: (opened) => ({ ...opened, now }) })
  await pod.people('alice', 'bob')
})
afterEach(() => {
  late = 0
})
afterAll(() => pod.close())

const right = { username: 'alice', password: 'the password of alice' }
const wrong = { username: 'alice', password: 'the password of nobody' }

async function signIn(username = 'alice') {
  const browser = openBrowser(pod.app, POD)
  await browser.visit('/users/sign_in')
  await browser.submit({ username, password: `the password of ${username}` })
  return browser
}

describe('signing in', () => {
  it.each(['alice', 'ALICE', ' alice ', 'alice@pod.example'])('accepts the username %o', async (username) => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_in')

    await browser.submit({ ...right, username })

    expect(browser.url.pathname).toBe(START)
    expect(browser.page.body).toContain('alice@pod.example')
  })

  it.each([wrong, { ...right, username: 'nobody' }, { ...right, username: 'alice@elsewhere.example' }])(
    'answers %o with one message for a wrong name and a wrong password',
    async (fields) => {
      const browser = openBrowser(pod.app, POD)
      await browser.visit('/users/sign_in')

      await browser.submit(fields)

      expect(browser.page.statusCode).toBe(422)
      expect(browser.page.body).toContain('role="alert"')
      expect(browser.page.body).toContain('The username or the password is wrong.')
      expect(browser.page.body).not.toContain(fields.password)
      await browser.visit(APPLICATIONS)
      expect(browser.url.pathname).toBe('/users/sign_in')
    },
  )

  it('marks both fields as wrong, keeps the name, and puts the focus on the password', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_in')

    await browser.submit(wrong)

    const { body } = browser.page
    expect(body).toContain('<title>Error: Sign in')
    expect(body).toMatch(/<input id="username"[^>]* value="alice"[^>]* aria-describedby="password-error username-hint"/)
    expect(body).toMatch(/<input id="password"[^>]* autofocus aria-invalid="true" aria-describedby="password-error"/)
    expect(body).toContain('<a href="#password">')
  })

  it('names each field that is empty', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_in')

    await browser.submit({ username: '', password: '' })

    expect(browser.page.statusCode).toBe(422)
    expect(browser.page.body).toContain('<span class="wrong" id="username-error">Enter your username.</span>')
    expect(browser.page.body).toContain('<span class="wrong" id="password-error">Enter your password.</span>')
    expect(browser.page.body).toMatch(/<input id="username"[^>]* autofocus aria-invalid="true"/)
  })

  it('gives cookies to this pod alone, over https alone, and to no script', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_in')
    const form = /name="form" value="([^"]*)"/.exec(browser.page.body)?.[1] ?? ''

    const answer = await pod.inject({
      method: 'POST',
      url: '/users/sign_in',
      remoteAddress: newAddress(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      },
      payload: new URLSearchParams({ ...right, form }).toString(),
    })

    expect(answer.statusCode).toBe(303)
    const session = answer.cookies.find(({ name }) => name === 'pod_session')
    expect(session).toMatchObject({ httpOnly: true, secure: true, sameSite: 'lax', path: '/' })
  })

  it('refuses forms of other origins', async () => {
    const answer = await postForm(pod.app, '/users/sign_in', { ...right, form: 'x' })

    expect(answer.statusCode).toBe(403)
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  it('a session begun by another person is not continued', async () => {
    const browser = await signIn('bob')
    const before = browser.cookies.get('pod_session')
    await browser.visit('/')
    await browser.submit({}, '/users/sign_out')
    await browser.visit('/users/sign_in')
    await browser.submit(right)

    expect(browser.cookies.get('pod_session')).not.toBe(before)
    expect(browser.page.body).toContain('alice@pod.example')
  })

  it('ends the previous session of the browser, which an attacker may have planted there', async () => {
    const planted = await signIn('bob')
    const cookie = [...planted.cookies].map(([name, value]) => `${name}=${value}`).join('; ')

    const answer = await pod.inject({
      method: 'POST',
      url: '/users/sign_in',
      remoteAddress: newAddress(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie },
      payload: new URLSearchParams({ ...right, form: planted.cookies.get('pod_form') ?? '' }).toString(),
    })
    const session = answer.cookies.find(({ name }) => name === 'pod_session')
    const copy = await pod.inject({ url: APPLICATIONS, headers: { cookie } })

    expect(answer.statusCode).toBe(303)
    expect(session?.value).not.toBe(planted.cookies.get('pod_session'))
    expect([copy.statusCode, copy.headers.location]).toEqual([
      303,
      '/users/sign_in?return_to=%2Fsettings%2Fapplications',
    ])
  })

  it('a session ends at sign-out, also for a copy of the cookie', async () => {
    const browser = await signIn()
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')

    await browser.submit({}, '/users/sign_out')
    const copy = await pod.inject({ url: APPLICATIONS, headers: { cookie } })

    expect(browser.url.pathname).toBe('/')
    expect(copy.statusCode).toBe(303)
    expect(copy.headers.location).toBe('/users/sign_in?return_to=%2Fsettings%2Fapplications')
  })

  it('wrong passwords slow down further attempts for that account only', async () => {
    const ip = newAddress()
    const guesser = openBrowser(pod.app, POD, ip)
    await guesser.visit('/users/sign_in')
    for (let guess = 0; guess < 5; guess += 1) {
      await guesser.submit(wrong)
      expect(guesser.page.statusCode).toBe(422)
    }

    const form = { ...right, form: guesser.cookies.get('pod_form') ?? '' }
    await guesser.visit('/users/sign_in')
    await guesser.submit(form)
    expect(guesser.page.statusCode).toBe(429)
    expect(guesser.page.body).toMatch(/role="alert">Too many requests\. Please try again in \d seconds?\./)
    expect(guesser.page.body).toContain('name="password"') // to try again
    expect(Number(guesser.page.headers['retry-after'])).toBeLessThanOrEqual(5)
    late = 6_000
    await guesser.visit('/users/sign_in')
    await guesser.submit(wrong)
    await guesser.visit('/users/sign_in')
    await guesser.submit(right)
    expect(guesser.page.statusCode).toBe(429)
    expect(Number(guesser.page.headers['retry-after'])).toBeGreaterThan(5)

    const owner = await signIn()
    expect(owner.page.body).toContain('alice@pod.example')
    late = 30_000
    await guesser.visit('/users/sign_in')
    await guesser.submit(right)
    expect(guesser.url.pathname).toBe(START)
  })

  it('is limited to twenty attempts in five minutes from one address, for every forwarding header', async () => {
    const ip = newAddress()
    const statuses = new Map<number, number>()
    const attempt = () =>
      pod.inject({
        method: 'POST',
        url: '/users/sign_in',
        remoteAddress: ip,
        headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-forwarded-for': newAddress() },
        payload: 'username=alice',
      })
    for (let time = 0; time < 25; time += 1) {
      const { statusCode } = await attempt()
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
    }

    expect(statuses).toEqual(
      new Map([
        [403, 20],
        [429, 5],
      ]),
    )
    late = 6 * MINUTE
    expect((await attempt()).statusCode).toBe(403)
  })
})

it('attempts with the right password are not counted', async () => {
  await using fresh = await buildPod({ environment: { SIGN_IN_LIMIT: '3' } })
  await fresh.people('alice')

  for (let time = 0; time < 5; time += 1) {
    const browser = openBrowser(fresh.app, POD)
    await browser.visit('/users/sign_in')
    await browser.submit({ username: 'alice', password: 'the password of alice' })
    expect(browser.url.pathname).toBe(START)
  }
})

it('registers at most twenty clients an hour from one address', async () => {
  const registerHere = () =>
    pod.inject({
      method: 'POST',
      url: '/api/openid_connect/clients',
      remoteAddress: '2001:db8:1:2:3::4',
      payload: { redirect_uris: [CALLBACK] },
    })
  for (let time = 0; time < 20; time += 1) expect((await registerHere()).statusCode).toBe(201)

  const refused = await registerHere()
  const neighbour = await pod.inject({
    method: 'POST',
    url: '/api/openid_connect/clients',
    remoteAddress: '2001:db8:1:2:ffff::9',
    payload: { redirect_uris: [CALLBACK] },
  })

  expect(refused.statusCode).toBe(429)
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(3_500)
  expect(neighbour.statusCode).toBe(429)
  expect((await register(pod.app, {})).statusCode).toBe(201)
})

it('a limit of 0 counts nothing', async () => {
  await using open = await buildPod({ environment: { CLIENT_LIMIT: '0' } })
  const registerHere = () =>
    open.inject({ method: 'POST', url: '/api/openid_connect/clients', payload: { redirect_uris: [CALLBACK] } })

  for (let time = 0; time < 25; time += 1) expect((await registerHere()).statusCode).toBe(201)
})

describe('the applications of a person', () => {
  it('are listed with their scopes, and revoked by a button', async () => {
    const client = await registerTestClient(pod.app, { client_name: 'Phone & co' })
    const browser = await signIn()
    const code = codeIn(
      await approveClient(pod.app, client, 'alice', { parameters: { scope: 'conversations' }, browser }),
    )
    const tokens = (await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json()

    await browser.visit(APPLICATIONS)
    expect(browser.page.body).toContain('Phone &#38; co')
    expect(browser.page.body).toContain('Read and write private messages')
    await browser.submit({}, APPLICATIONS)

    expect(browser.url.pathname).toBe(APPLICATIONS)
    expect(browser.page.body).not.toContain('Phone')
    const call = await pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${tokens.access_token}` } })
    expect(call.statusCode).toBe(401)
    const again = await client.token({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
    expect(again.json().error).toBe('invalid_grant')
  })

  it('cannot be revoked by another user who knows their id', async () => {
    const client = await registerTestClient(pod.app)
    await approveClient(pod.app, client, 'alice')
    const { id: clientId } = await pod.pod.db('clients').where({ clientId: client.id }).first()
    const { id } = await pod.pod.db('authorizations').where({ clientId }).first()
    const bob = await signIn('bob')
    const cookie = [...bob.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const form = bob.cookies.get('pod_form') ?? ''
    const url = `/api/openid_connect/authorizations/${id}`

    const byBob = await postForm(pod.app, url, { form }, { cookie })
    const byNobody = await postForm(pod.app, url, { form })
    const withoutForm = await postForm(pod.app, url, {}, { cookie })

    expect(byBob.statusCode).toBe(404)
    expect(byNobody.headers.location).toBe('/users/sign_in')
    expect(withoutForm.statusCode).toBe(403)
    expect(await pod.pod.db('authorizations').where({ id })).toHaveLength(1)
  })

  it('do not include tokens made by the operator', async () => {
    const browser = await signIn('bob')
    const operators = await pod.pod.db('authorizations').whereNull('clientId').first()

    const answer = await postForm(
      pod.app,
      `/api/openid_connect/authorizations/${operators.id}`,
      { form: browser.cookies.get('pod_form') ?? '' },
      { cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    )

    expect(answer.statusCode).toBe(404)
    expect((await browser.visit(APPLICATIONS)).body).toContain('No application has access.')
  })
})

describe('signing up', () => {
  const eve = { username: 'eve', password: 'a long password', password_again: 'a long password' }

  it('creates an account and signs it in', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_up')

    await browser.submit(eve)

    expect(browser.url.pathname).toBe(START)
    expect(browser.page.body).toContain('eve@pod.example')
    const user = await pod.pod.db('users').where({ username: 'eve' }).first()
    const aspects = await pod.pod.db('aspects').where({ userId: user.id }).orderBy('position')
    expect(aspects.map(({ name }) => name)).toEqual(['Family', 'Friends', 'Work', 'Acquaintances'])
  })

  it.each([
    [{ username: 'alice' }, 'taken'],
    [{ username: 'Not a name!' }, 'lower-case letters'],
    [{ username: 'root' }, 'reserved'],
    [{ password: 'short', password_again: 'short' }, 'at least 10 characters'],
    [{ username: '' }, 'Enter a username.'],
    [{ password: '' }, 'Enter a password.'],
    [{ password_again: 'another password' }, 'not the same'],
  ])('describes the error in %o', async (fields, words) => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_up')

    await browser.submit({ ...eve, username: 'frank', ...fields })

    expect(browser.page.statusCode).toBe(422)
    expect(browser.page.body).toContain(words)
    expect(await pod.pod.db('users').where({ username: 'frank' })).toEqual([])
  })

  it('shows all errors at once, each at its field, and keeps the username', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_up')

    await browser.submit({ username: 'alice', password: 'secret', password_again: 'other' })

    const { body } = browser.page
    expect(body).toContain('<title>Error: Create an account')
    for (const [name, words] of [
      ['username', 'This username is taken.'],
      ['password', 'A password must have at least 10 characters'],
      ['password_again', 'The two passwords are not the same.'],
    ]) {
      expect(body).toContain(`<a href="#${name}">${words}`)
      expect(body).toContain(`<span class="wrong" id="${name}-error">${words}`)
      expect(body).toMatch(new RegExp(`<input id="${name}"[^>]* aria-invalid="true" aria-describedby="${name}-error`))
    }
    expect(body.match(/ autofocus/g)).toHaveLength(1)
    expect(body).toMatch(/<input id="username"[^>]* value="alice" required autofocus/)
    expect(body).not.toMatch(/secret|value="other"/)
  })

  it('puts the focus on the first field that is wrong', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_up')

    await browser.submit({ ...eve, username: 'frank', password_again: 'another password' })

    expect(browser.page.body).toMatch(/<input id="password_again"[^>]* autofocus/)
    expect(browser.page.body.match(/ autofocus|aria-invalid="true"/g)).toHaveLength(2)
  })

  it('leads to a page with the next steps', async () => {
    const browser = openBrowser(pod.app, POD)
    await browser.visit('/users/sign_up')

    await browser.submit({ ...eve, username: 'nina' })

    const { body } = browser.page
    expect(body).toContain('<h1><bdi>Your account is ready</bdi></h1>')
    for (const href of ['/u/nina', '/api/docs', '/apps', '/settings/following']) {
      expect(body).toContain(`href="${href}`)
    }
    await browser.visit('/')
    expect(browser.page.body).toContain('You are signed in as <b><bdi>nina@pod.example</bdi></b>')
    expect(browser.page.headers['cache-control']).toBe('private, no-store')
    await browser.submit({}, '/users/sign_out')
    expect(browser.url.pathname).toBe('/')
    expect(browser.page.body).not.toContain('nina')
    expect(browser.page.headers).toMatchObject({
      'cache-control': 'public, max-age=300',
      vary: 'Accept-Language, Cookie',
    })
  })

  it('continues with the authorization request of a client', async () => {
    const client = await registerTestClient(pod.app)
    const browser = openBrowser(pod.app, POD)
    await browser.visit(client.address())
    const [, link = ''] = /href="(\/users\/sign_up[^"]*)"/.exec(browser.page.body) ?? []

    await browser.visit(link)
    await browser.submit({ ...eve, username: 'grace' })

    expect(browser.url.pathname).toBe('/api/openid_connect/authorizations')
    expect(browser.page.body).toContain('grace@pod.example')
  })

  it('is refused with REGISTRATIONS=closed', async () => {
    await using closed = await buildPod({ environment: { REGISTRATIONS: 'closed' } })
    const browser = openBrowser(closed.app, POD)
    await browser.visit('/users/sign_in')
    const form = browser.cookies.get('pod_form') ?? ''

    const page = await closed.inject('/users/sign_up')
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const sent = await postForm(closed.app, '/users/sign_up', { ...eve, form }, { cookie })

    expect(browser.page.body).not.toContain('/users/sign_up')
    expect(page.statusCode).toBe(403)
    expect(page.body).toContain('does not accept new accounts')
    expect(sent.statusCode).toBe(403)
    expect(await closed.pod.db('users')).toEqual([])
  })

  it('creates one account per invitation with REGISTRATIONS=invite', async () => {
    await using inviting = await buildPod({ environment: { REGISTRATIONS: 'invite' } })
    const { code } = await createInvitation(inviting.pod, { lifetime: 7 * 86_400 })
    const without = await inviting.inject('/users/sign_up')
    const guessed = await inviting.inject('/users/sign_up?invitation=guessed')
    const [first, second] = [openBrowser(inviting.app, POD), openBrowser(inviting.app, POD)]
    await first.visit(`/users/sign_up?invitation=${code}`)
    await second.visit(`/users/sign_up?invitation=${code}`)

    await Promise.all([first.submit({ ...eve, username: 'first' }), second.submit({ ...eve, username: 'second' })])

    expect(without.statusCode).toBe(403)
    expect(without.body).toContain('by invitation')
    expect(guessed.statusCode).toBe(404)
    expect([first.page.statusCode, second.page.statusCode].sort()).toEqual([200, 404])
    expect(await inviting.pod.db('users')).toHaveLength(1)
    expect((await inviting.inject(`/users/sign_up?invitation=${code}`)).statusCode).toBe(404)
  })
})

it('accepts a new password at once, and the old one no longer', async () => {
  await pod.people('henry')
  await resetPassword(pod.pod, 'henry', 'something new to keep')
  const browser = openBrowser(pod.app, POD)
  await browser.visit('/users/sign_in')

  await browser.submit({ username: 'henry', password: 'the password of henry' })
  expect(browser.page.statusCode).toBe(422)
  await browser.submit({ username: 'henry', password: 'something new to keep' })

  expect(browser.url.pathname).toBe(START)
})

it('requires the new password in every session that was opened with the old one', async () => {
  await pod.people('ida', 'jane')
  const [ida, jane] = [await signIn('ida'), await signIn('jane')]

  await resetPassword(pod.pod, 'ida', 'something new to keep')

  await ida.visit(APPLICATIONS)
  await jane.visit(APPLICATIONS)
  expect([ida.url.pathname, jane.url.pathname]).toEqual(['/users/sign_in', APPLICATIONS])
})
