import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import { CALLBACK, registerTestClient } from '../../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const PASSWORD = 'correct horse battery'
let pod: TestPod
beforeAll(async () => {
  pod = await buildPod({ environment: { REGISTRATIONS: 'open', SIGN_IN_LIMIT: '0', DEFAULT_LANGUAGE: 'es' } })
  await createUser(pod.pod, { username: 'alice', password: PASSWORD })
})
afterAll(() => pod.close())

const browser = () => openBrowser(pod.app, pod.pod.config.url)

function get(url: string, headers: Readonly<Record<string, string>> = {}) {
  return pod.inject({ url, headers: { accept: 'text/html', ...headers } })
}

/** The language of a page, and what caches must know about it. */
async function languageOf(url: string, headers: Readonly<Record<string, string>> = {}) {
  const page = await get(url, headers)
  const [, language] = /<html lang="([^"]*)" dir="ltr">/.exec(page.body) ?? []
  expect([page.headers['content-language'], String(page.headers.vary).toLowerCase()]).toEqual([
    language,
    expect.stringMatching(/accept-language.*cookie/),
  ])
  return language
}

describe('the language of a page', () => {
  it.each(['/', '/apps', '/public', '/tags/tea', '/users/sign_in', '/users/sign_up', '/people/unknown', '/nothing'])(
    '%s is that of the browser, then that of the pod',
    async (url) => {
      expect(await languageOf(url, { 'accept-language': 'fr-CH, de;q=0.9' })).toBe('fr')
      expect(await languageOf(url, { 'accept-language': 'fr', cookie: 'pod_lang=de' })).toBe('de')
      expect(await languageOf(url, { 'accept-language': 'ja' })).toBe('es')
    },
  )

  it('is chosen at the foot of the page, which is shown again', async () => {
    const reader = browser()
    const path = '/users/sign_in?return_to=/settings/mail'
    const [, link = ''] = /<a rel="nofollow" href="([^"]*)" lang="de"/.exec((await reader.visit(path)).body) ?? []

    await reader.visit(link.replaceAll('&#38;', '&').replaceAll('&amp;', '&'))

    expect([reader.url.pathname + decodeURIComponent(reader.url.search), reader.cookies.get('pod_lang')]).toEqual([
      path,
      'de',
    ])
    expect(reader.page.body).toContain('<h1>Anmelden</h1>')
    expect(reader.page.body).toContain('<input type="hidden" name="return_to" value="/settings/mail">')
  })

  it.each(['//evil.example', 'https://evil.example', '/\\evil.example', '/\t/evil.example', ''])(
    'the choice does not lead to %j',
    async (target) => {
      const answer = await get(`/language?to=de&return_to=${encodeURIComponent(target)}`)

      expect([answer.statusCode, answer.headers.location]).toEqual([303, '/'])
    },
  )

  it('an unknown choice is not kept', async () => {
    expect((await get('/language?to=xx')).headers['set-cookie']).toBeUndefined()
  })

  it('is the setting of a user, which public pages follow', async () => {
    await pod.pod.db('users').where({ username: 'alice' }).update({ language: 'fr' })
    const reader = browser()
    await reader.visit('/users/sign_in')
    await reader.submit({ username: 'alice', password: PASSWORD }, '/users/sign_in')

    expect((await reader.visit('/')).body).toContain('<h2>Étapes suivantes</h2>')
    expect((await reader.visit('/settings')).body).toContain('<h1>Paramètres</h1>')
    expect(reader.page.body).not.toContain('/language?')
    expect((await reader.visit('/public')).body).toContain('<h1 dir="auto">Publications publiques</h1>')
    await reader.visit('/settings')
    await reader.submit({ language: 'de', time_zone: 'UTC' }, '/settings')
    expect(reader.page.body).toContain('Deine Änderungen sind gespeichert.')
    await pod.pod.db('users').where({ username: 'alice' }).update({ language: 'en' })
  })

  it('is the one that an application requests with ui_locales', async () => {
    const client = await registerTestClient(pod.app)
    const reader = browser()

    await reader.visit(client.address({ scope: 'openid', redirect_uri: CALLBACK, ui_locales: 'ja de' }))

    expect(reader.page.body).toContain('<h1>Anmelden</h1>')
    await reader.submit({ username: 'alice', password: 'wrong' })
    expect(reader.page.body).toContain('Der Benutzername oder das Passwort ist falsch.')
  })
})

describe('a sign-up', () => {
  it('keeps the language: of the account, its aspects, and the page that follows', async () => {
    const reader = browser()
    await reader.visit('/users/sign_up')
    await reader.submit({ username: 'bernd', password: PASSWORD, password_again: PASSWORD, language: 'de' })

    const user = await pod.pod.db('users').where({ username: 'bernd' }).first('id', 'language')
    const aspects = await pod.pod.db('aspects').where({ userId: user.id }).orderBy('position').pluck('name')
    expect([user.language, aspects]).toEqual(['de', ['Familie', 'Freunde', 'Arbeit', 'Bekannte']])
    expect(reader.page.body).toContain('<h1><bdi>Dein Konto ist bereit</bdi></h1>')
    // Each step leads to a page.
    for (const path of ['/settings/profile', '/u/bernd', '/apps', '/settings/following', '/api/docs']) {
      expect(reader.page.body).toContain(`href="${path}"`)
    }
    for (const path of ['/settings/profile', '/u/bernd', '/apps', '/settings/following', '/settings/applications']) {
      const { statusCode } = await reader.visit(path)
      expect([path, statusCode]).toEqual([path, 200])
    }
    expect(reader.page.body).toContain('href="/apps"')
  })

  it('refuses a language that the pod does not have', async () => {
    const reader = browser()
    await reader.visit('/users/sign_up')
    await reader.submit({ username: 'carl', password: PASSWORD, password_again: PASSWORD, language: 'xx' })

    expect([reader.page.statusCode, reader.page.body.includes('id="language-error"')]).toEqual([422, true])
  })
})

describe('/settings/following', () => {
  it('follows a tag and a person, and names invalid fields', async () => {
    await createUser(pod.pod, { username: 'quin', password: PASSWORD })
    const reader = browser()
    await reader.visit('/users/sign_in')
    await reader.submit({ username: 'alice', password: PASSWORD }, '/users/sign_in')
    const path = '/settings/following'
    await reader.visit(path)
    const [, aspect = ''] = /<option value="(\d+)"/.exec(reader.page.body) ?? []

    await reader.submit({ do: 'follow_tag', tag: '#Tea' }, path)
    expect(reader.page.body).toContain('<bdi>#tea</bdi>')
    await reader.submit({ do: 'follow_tag', tag: 'tea' }, path)
    expect([reader.page.statusCode, reader.page.body.includes('You already follow this tag.')]).toEqual([422, true])
    await reader.submit({ do: 'unfollow_tag', tag: 'tea' }, path)
    expect(reader.page.body).not.toContain('<bdi>#tea</bdi>')

    await reader.submit({ do: 'follow_person', network_id: ' @quin@pod.example ', aspect_id: aspect }, path)
    expect(reader.page.body).toContain('You follow the person.')
    const sharing = await pod.pod
      .db('contacts')
      .join('people', 'people.id', 'contacts.person_id')
      .where({ sharing: false })
      .pluck('address')
    expect(sharing).toEqual(['quin@pod.example'])
    await reader.submit({ do: 'follow_person', network_id: 'alice@pod.example', aspect_id: aspect }, path)
    expect([reader.page.statusCode, reader.page.body.includes('This is your own address.')]).toEqual([422, true])
  })
})
