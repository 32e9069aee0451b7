import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { type ConsolePod, formTokenOf, giveRole, startConsolePod } from '../../support/pods/console-pod.js'

type Needed = 'moderation' | 'administration'

/** Every page of the console with the role that it needs; a page without an entry fails the test. */
const PAGES: Readonly<Record<string, Needed>> = {
  '/admin': 'moderation',
  '/admin/reports': 'moderation',
  '/admin/reports/:id': 'moderation',
  '/admin/reports/:id/reports': 'moderation',
  '/admin/reports/:id/history': 'moderation',
  '/admin/reports/:id/pictures/:guid': 'moderation',
  '/admin/reports/:id/pictures/:guid/:variant': 'moderation',
  '/admin/content/:guid': 'moderation',
  '/admin/people': 'moderation',
  '/admin/people/:guid': 'moderation',
  '/admin/pods': 'moderation',
  '/admin/pods/:host': 'moderation',
  '/admin/rules': 'moderation',
  '/admin/rules/export': 'moderation',
  '/admin/rules/:id': 'moderation',
  '/admin/rules/import': 'administration',
  '/admin/rules/import/:id': 'administration',
  '/admin/filters': 'moderation',
  '/admin/filters/:id': 'moderation',
  '/admin/clusters': 'moderation',
  '/admin/clusters/:id': 'moderation',
  '/admin/sign-ups': 'moderation',
  '/admin/invitations': 'moderation',
  '/admin/network-rules': 'moderation',
  '/admin/audit': 'moderation',
  '/admin/audit/:id': 'moderation',
  '/admin/roles': 'administration',
  '/admin/deliveries/:guid': 'administration',
  '/admin/queues': 'administration',
  '/admin/queues/:name': 'administration',
  '/admin/dead-letters': 'administration',
  '/admin/dead-letters/:id': 'administration',
  '/admin/dead-letters/:id/payload': 'administration',
  '/admin/quarantine': 'administration',
  '/admin/quarantine/:id': 'administration',
  '/admin/checks': 'administration',
  '/admin/traces/:id': 'administration',
  '/admin/workers': 'administration',
  '/admin/database': 'administration',
  '/admin/storage': 'administration',
  '/admin/settings': 'administration',
}

/** Every action of the console with the role that it needs. */
const ACTIONS: Readonly<Record<string, Needed>> = {
  '/admin/reports/:id/take': 'moderation',
  '/admin/reports/:id/release': 'moderation',
  '/admin/reports/:id/notes': 'moderation',
  '/admin/reports/:id/resolve': 'moderation',
  '/admin/reports/:id/dismiss': 'moderation',
  '/admin/reports/:id/reopen': 'moderation',
  '/admin/reports/:id/forward': 'moderation',
  '/admin/reports/:id/pictures/:guid': 'moderation',
  '/admin/content/:guid/hide': 'moderation',
  '/admin/content/:guid/remove': 'moderation',
  '/admin/content/:guid/purge': 'administration',
  '/admin/actions/:id/undo': 'moderation',
  '/admin/people/:guid/silence': 'moderation',
  '/admin/people/:guid/block': 'moderation',
  '/admin/people/:guid/lock': 'moderation',
  '/admin/people/:guid/end_sessions': 'moderation',
  '/admin/people/:guid/warn': 'moderation',
  '/admin/people/:guid/clear_profile': 'moderation',
  '/admin/people/:guid/notes': 'moderation',
  '/admin/people/:guid/close': 'moderation',
  '/admin/people/:guid/mute_reports': 'moderation',
  '/admin/people/:guid/hide_content': 'moderation',
  '/admin/people/:guid/remove_content': 'moderation',
  '/admin/people/:guid/purge': 'administration',
  '/admin/people/:guid/forget': 'administration',
  '/admin/people/:guid/role': 'administration',
  '/admin/rules': 'moderation',
  '/admin/rules/preview': 'moderation',
  '/admin/rules/:id/change': 'moderation',
  '/admin/rules/:id/delete': 'moderation',
  '/admin/rules/import': 'administration',
  '/admin/rules/import/:id/apply': 'administration',
  '/admin/rules/import/:id/undo': 'administration',
  '/admin/filters': 'moderation',
  '/admin/filters/dry_run': 'moderation',
  '/admin/filters/:id/change': 'moderation',
  '/admin/filters/:id/remove': 'moderation',
  '/admin/filters/:id/apply': 'moderation',
  '/admin/clusters/:id/preview': 'moderation',
  '/admin/clusters/:id/clean': 'moderation',
  '/admin/clusters/:id/dismiss': 'moderation',
  '/admin/invitations': 'moderation',
  '/admin/invitations/:id/recall': 'moderation',
  '/admin/sign-ups/decide': 'moderation',
  '/admin/sign-ups/attended': 'administration',
  '/admin/network-rules/ip_rules': 'moderation',
  '/admin/network-rules/ip_rules/:id/change': 'moderation',
  '/admin/network-rules/ip_rules/:id/remove': 'moderation',
  '/admin/network-rules/mail_rules': 'moderation',
  '/admin/network-rules/mail_rules/:id/change': 'moderation',
  '/admin/network-rules/mail_rules/:id/remove': 'moderation',
  '/admin/audit/export': 'administration',
  '/admin/pods/:host/pause': 'administration',
  '/admin/pods/:host/resume': 'administration',
  '/admin/pods/:host/probe': 'administration',
  '/admin/pods/:host/wake': 'administration',
  '/admin/pods/:host/sleep': 'administration',
  '/admin/pods/:host/block': 'moderation',
  '/admin/pods/:host/unblock': 'moderation',
  '/admin/queues/:name/pause': 'administration',
  '/admin/queues/:name/resume': 'administration',
  '/admin/queues/:name/drain': 'administration',
  '/admin/queues/:name/discard': 'administration',
  '/admin/queues/:name/promote': 'administration',
  '/admin/dead-letters/replay': 'administration',
  '/admin/dead-letters/drop': 'administration',
  '/admin/quarantine/replay': 'administration',
  '/admin/quarantine/release': 'administration',
  '/admin/quarantine/drop': 'administration',
}

let console: ConsolePod
const browsers: Record<string, TestBrowser> = {}
/** Form tokens of the sessions of these browsers, and of another session of the same person. */
const tokens: Record<string, { readonly own: string; readonly foreign: string }> = {}
beforeAll(async () => {
  console = await startConsolePod()
  for (const name of ['dan', 'mod', 'adm'] as const) browsers[name] = await console.signedIn(name)
  for (const name of ['mod', 'adm'] as const) {
    tokens[name] = {
      own: await formTokenOf(browsers[name]),
      foreign: await formTokenOf(await console.signedIn(name)),
    }
  }
  browsers['visitor'] = console.visitor()
})
afterAll(async () => {
  await console.close()
})

/** A path of the pattern, for things that do not exist. */
function pathFor(pattern: string): string {
  return pattern.replace(/:\w+/g, '404404')
}

function cookiesOf(browser: TestBrowser | undefined): string {
  return [...(browser?.cookies ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
}

function send(
  name: string,
  method: 'GET' | 'POST',
  url: string,
  { headers = {}, payload = '' }: { readonly headers?: Record<string, string>; readonly payload?: string } = {},
) {
  return console.inject({
    method,
    url,
    headers: {
      cookie: cookiesOf(browsers[name]),
      ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    },
    ...(method === 'POST' && { payload }),
  })
}

describe('the routes of the console', () => {
  it('are all on the lists of this test', () => {
    const routes = console.app.knownRoutes.filter(({ url }) => url === '/admin' || url.startsWith('/admin/'))
    const withMethod = (method: string) =>
      Object.fromEntries(
        routes.filter((route) => [route.method].flat().includes(method)).map(({ url, config }) => [url, config?.power]),
      )

    expect(withMethod('GET')).toEqual(PAGES)
    expect(withMethod('POST')).toEqual(ACTIONS)
    expect(routes.every(({ method }) => ['GET', 'HEAD', 'POST'].includes(String(method)))).toBe(true)
  })
})

describe.each(Object.entries(PAGES))('GET %s', (pattern, needed) => {
  const path = pathFor(pattern)

  it('sends visitors to the sign-in page and back, and does not exist for users without a role', async () => {
    const visited = await send('visitor', 'GET', `${path}?state=open`)
    const withoutRole = await send('dan', 'GET', path)
    const unknown = await send('dan', 'GET', '/nothing-is-here')

    expect([visited.statusCode, visited.headers.location]).toEqual([
      303,
      `/users/sign_in?return_to=${encodeURIComponent(`${path}?state=open`)}`,
    ])
    expect([withoutRole.statusCode, withoutRole.body]).toEqual([404, unknown.body])
  })

  it(`answers people with the power ${needed}`, async () => {
    const [mod, adm] = await Promise.all([send('mod', 'GET', path), send('adm', 'GET', path)])

    if (needed === 'administration') expect(mod.statusCode).toBe(403)
    for (const answer of needed === 'administration' ? [adm] : [mod, adm]) {
      expect([path, answer.statusCode]).toEqual([path, pattern.includes(':') ? 404 : 200])
      expect(answer.headers['cache-control']).toBe('private, no-store')
      if (answer.statusCode !== 200 || pattern === '/admin/rules/export') continue
      expect(answer.headers['content-security-policy']).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
      )
      expect(answer.headers['x-robots-tag']).toBe('noindex')
      expect(answer.headers['referrer-policy']).toBe('no-referrer')
      expect(answer.body).not.toMatch(/<script|\s(?:style|on\w+)="/i)
    }
  })
})

describe.each(Object.entries(ACTIONS))('POST %s', (pattern, needed) => {
  const path = pathFor(pattern)
  const name = needed === 'administration' ? 'adm' : 'mod'

  it('is refused without the role', async () => {
    const visited = await send('visitor', 'POST', path)
    expect([visited.statusCode, visited.headers.location]).toEqual([303, '/users/sign_in?return_to=%2Fadmin'])
    expect((await send('dan', 'POST', path)).statusCode).toBe(404)
    if (needed === 'administration') expect((await send('mod', 'POST', path)).statusCode).toBe(403)
  })

  it('is refused without the form token, and with that of another session', async () => {
    const { own, foreign } = tokens[name] ?? {}

    expect(foreign).not.toBe(own)
    expect((await send(name, 'POST', path)).statusCode).toBe(403)
    expect((await send(name, 'POST', path, { payload: `form=${foreign}` })).statusCode).toBe(403)
    expect((await send(name, 'POST', path, { payload: `form=${own}` })).statusCode).not.toBe(403)
  })

  it('is refused from another site', async () => {
    const form = `form=${tokens[name]?.own}`
    const others = [
      { origin: 'https://q.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of others)
      expect((await send(name, 'POST', path, { headers, payload: form })).statusCode).toBe(403)
    for (const headers of [{ origin: console.url }, { origin: 'null', 'sec-fetch-site': 'same-origin' }]) {
      expect((await send(name, 'POST', path, { headers, payload: form })).statusCode).not.toBe(403)
    }
  })

  it('a path that only takes forms answers GET with 404', async () => {
    if (!(pattern in PAGES)) expect((await send('adm', 'GET', path)).statusCode).toBe(404)
  })
})

describe('the console', () => {
  it('loses a person at once with the role', async () => {
    await using other = await startConsolePod()
    const browser = await other.signedIn('mod')
    expect((await browser.visit('/admin')).statusCode).toBe(200)

    await giveRole(other.pod, 'mod', 'none')
    expect((await browser.visit('/admin')).statusCode).toBe(404)

    await giveRole(other.pod, 'mod', 'admin')
    expect((await browser.visit('/admin')).body).toContain('<bdi>mod</bdi>, admin')
  })

  it('continues after the sign-in, and only at a page of the console', async () => {
    const browser = console.visitor()
    await browser.visit('/admin?flash=none')
    await browser.submit({ username: 'mod', password: 'the password of mod' })
    expect(`${browser.url.pathname}${browser.url.search}`).toBe('/admin?flash=none')

    for (const target of [
      '//q.example/admin',
      'https://q.example/',
      '/administrators',
      '/admin\\@q.example',
      '/admin/%0d%0a',
    ]) {
      const another = console.visitor()
      await another.visit(`/users/sign_in?return_to=${encodeURIComponent(target)}`)
      await another.submit({ username: 'mod', password: 'the password of mod' })
      expect([target, another.url.host, /^\/admin(\/|$)/.test(another.url.pathname)]).toEqual([
        target,
        new URL(console.url).host,
        target.startsWith('/admin/'),
      ])
    }
  })

  it('is not there with ADMIN_CONSOLE=off, nor for addresses outside of ADMIN_CONSOLE_NETWORKS', async () => {
    await using off = await startConsolePod({ environment: { ADMIN_CONSOLE: 'off' } })
    expect((await (await off.signedIn('adm')).visit('/admin')).statusCode).toBe(404)

    await using limited = await startConsolePod({ environment: { ADMIN_CONSOLE_NETWORKS: '192.0.2.0/24' } })
    expect((await (await limited.signedIn('adm')).visit('/admin')).statusCode).toBe(404)
  })
})
