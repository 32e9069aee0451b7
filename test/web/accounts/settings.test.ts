import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeDueAccounts, closingTaskHandlers } from '../../../src/domain/accounts/closing/close-account.js'
import { runBackgroundTask } from '../../../src/domain/operations/background-tasks.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  registerTestClient,
  type TestOidcClient,
} from '../../support/http/oidc-client.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

let pod: ConsolePod
let dan: TestBrowser
beforeAll(async () => {
  pod = await startConsolePod({
    environment: { REGISTRATIONS: 'open', AUTHORIZATION_LIMIT: '0', TOKEN_LIMIT: '0', CLIENT_LIMIT: '0' },
  })
  dan = await pod.signedIn('dan')
})
afterAll(() => pod.close())

const password = 'the password of dan'

function cookiesOf(browser: TestBrowser): string {
  return [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
}

async function userRow(username = 'dan') {
  return pod.pod.db('users').where({ username }).first()
}

/** Makes the proof of every session older than a change accepts. */
async function withOldProof(use: () => Promise<void>): Promise<void> {
  pod.later(660)
  try {
    await use()
  } finally {
    pod.later(-660)
  }
}

async function tokenOf(client: TestOidcClient, browser: TestBrowser): Promise<string> {
  const code = codeIn(await approveClient(pod.app, client, 'dan', { browser }))
  const answer = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
  return answer.json().access_token
}

async function statusWith(token: string): Promise<number> {
  return (await pod.inject({ url: '/api/openid_connect/user_info', headers: { authorization: `Bearer ${token}` } }))
    .statusCode
}

describe('every page of the settings', () => {
  it('sends visitors to the sign-in page and back', async () => {
    const pages = pod.app.knownRoutes.filter(({ method, config }) => config?.requires && method === 'GET')
    expect(pages.length).toBeGreaterThan(8)
    for (const { url } of pages) {
      const answer = await pod.inject(url)
      expect([url, answer.statusCode, answer.headers.location]).toEqual([
        url,
        303,
        `/users/sign_in?return_to=${encodeURIComponent(url)}`,
      ])
      expect(answer.headers['cache-control']).toBe('private, no-store')
    }
  })

  it('accepts no form without the token of the browser', async () => {
    const forms = pod.app.knownRoutes.filter(({ method, config }) => config?.requires && method === 'POST')
    expect(forms.length).toBeGreaterThan(8)
    const other = await pod.signedIn('dan')
    for (const { url } of forms) {
      for (const form of ['', other.cookies.get('pod_form') ?? '']) {
        const answer = await pod.inject({
          method: 'POST',
          url,
          headers: { cookie: cookiesOf(dan), 'content-type': 'application/x-www-form-urlencoded' },
          payload: new URLSearchParams({ form }).toString(),
        })
        expect([url, answer.statusCode]).toEqual([url, 403])
      }
    }
  })

  it.each([
    ['/user/edit', '/settings'],
    ['/privacy', '/settings/blocks'],
    ['/profile/edit', '/settings/profile'],
    ['/two_factor_authentication', '/settings/two_factor'],
  ])('has the path %s of diaspora*', async (path, target) => {
    const answer = await pod.inject(path)
    expect([answer.statusCode, answer.headers.location]).toEqual([303, target])
  })
})

describe('the pages', () => {
  it('change language and time zone, and name invalid fields', async () => {
    await dan.visit('/settings')
    await dan.submit({ language: 'en', time_zone: 'America/New_York' }, '/settings')
    expect(dan.page.body).toContain('Your changes are saved.')
    expect(dan.page.body).toContain('<option value="America/New_York" selected>')

    await dan.submit({ language: 'xx', time_zone: 'UTC' }, '/settings')
    expect([dan.page.statusCode, (await userRow()).timeZone]).toEqual([422, 'America/New_York'])
    expect(dan.page.body).toContain('<title>Error: Settings')
    expect(dan.page.body).toContain('<a href="#language">')
  })

  it('change all of the profile, with one message for it, and none if nothing changes', async () => {
    const messages = () => pod.pod.db('outbox').whereRaw(`data::text like '%"profile"%'`).count()
    await dan.visit('/settings/profile')
    const fields = {
      name: 'Dan Brown',
      bio: 'I like\r\ntea.',
      location: 'Here',
      gender: 'm',
      birthday: '05-06',
      tags: '#tea walks',
      searchable: 'true',
      show_profile_info: 'true',
    }
    await dan.submit(fields, '/settings/profile')
    const once = await messages()
    await dan.submit(fields, '/settings/profile')

    const { personId } = await userRow()
    expect(await pod.pod.db('profiles').where({ personId }).first()).toMatchObject({
      firstName: 'Dan Brown',
      bio: 'I like\ntea.',
      birthday: '1004-05-06',
      tags: ['tea', 'walks'],
      searchable: true,
      publicDetails: true,
      nsfw: false,
    })
    expect(await messages()).toEqual(once)
    expect(dan.page.body).toContain('value="05-06"')

    await dan.submit({ ...fields, birthday: '13-13', name: 'New' }, '/settings/profile')
    expect(dan.page.statusCode).toBe(422)
    expect(dan.page.body).toContain('value="13-13"')
    expect((await pod.pod.db('profiles').where({ personId }).first()).firstName).toBe('Dan Brown')
  })

  it('choose the aspect for following back, and the audience of new posts', async () => {
    const [friends] = await pod.pod.db('aspects').where({ userId: (await userRow()).id, name: 'Friends' })
    const [foreign] = await pod.pod.db('aspects').where({ userId: (await userRow('mod')).id })
    await dan.visit('/settings/sharing')
    await dan.submit({ follow_back_aspect_id: String(friends.id), 'default_post_aspect_ids[]': String(friends.id) })
    expect((await userRow()).followBackAspectId).toBe(friends.id)
    expect(dan.page.body).toContain(`value="${friends.id}" checked>`)

    await dan.submit({ follow_back_aspect_id: String(foreign.id) })
    expect([dan.page.statusCode, (await userRow()).followBackAspectId]).toEqual([422, friends.id])
    await dan.submit({ follow_back_aspect_id: '' })
    expect((await userRow()).followBackAspectId).toBeNull()
  })

  it('make an invitation with a link that is shown once, and recall it', async () => {
    await dan.visit('/settings/invitations')
    expect(dan.page.body).toContain('7 days after your sign-up')
    await pod.pod.db.raw(`update users set created_at = now() - interval '8 days' where username = 'dan'`)
    await dan.visit('/settings/invitations')
    await dan.submit({ uses: '0', do: 'invite' }, '/settings/invitations')
    expect([dan.page.statusCode, dan.page.body.includes('<a href="#uses">')]).toEqual([422, true])
    await dan.visit('/settings/invitations')
    await dan.submit({ uses: '2', note: '<b>Choir</b>', do: 'invite' }, '/settings/invitations')
    expect(dan.page.body).toMatch(/<code>[^<]*\/users\/sign_up\?invitation=[^<]+<\/code>/)
    expect(dan.page.body).toContain('&#60;b&#62;Choir')
    await dan.visit('/settings/invitations')
    expect(dan.page.body).not.toContain('sign_up?invitation=')
    const { id } = await pod.pod.db('invitations').first('id')
    await dan.submit({ id: String(id), do: 'recall' }, '/settings/invitations')
    expect(dan.page.body).toContain('The invitation is recalled.')
    for (let number = 0; number < 5; number += 1) await dan.submit({ uses: '1', do: 'invite' }, '/settings/invitations')
    expect(dan.page.body).toContain('/users/sign_up?invitation=')
    await dan.submit({ uses: '1', do: 'invite' }, '/settings/invitations')
    expect([dan.page.statusCode, dan.page.body.includes('sign_up?invitation=')]).toEqual([422, false])
    expect(await pod.pod.db('invitations').where({ recalledAt: null })).toHaveLength(5)
  })

  it('block a person by the address, and unblock', async () => {
    await dan.visit('/settings/blocks')
    await dan.submit({ network_id: ' @mod@pod.example ', do: 'block' })
    expect(dan.page.body).toContain('<bdi>mod@pod.example</bdi>')

    await dan.submit({ do: 'unblock' })
    expect(dan.page.body).toContain('You have not blocked anyone.')
    await dan.submit({ network_id: 'nobody@pod.example', do: 'block' })
    expect(dan.page.statusCode).toBe(422)
  })
})

describe('a mailbox that rejects mails', () => {
  it('has an alert on the pages of its owner', async () => {
    const alert = 'E-mails to your address bounce.'
    expect((await dan.visit('/settings')).body).not.toContain(alert)
    await pod.pod.db('users').where({ username: 'dan' }).update({ mailState: 'suppressed' })
    for (const path of ['/', '/settings', '/settings/mail', '/settings/email']) {
      expect([path, (await dan.visit(path)).body.includes(alert)]).toEqual([path, true])
    }
    await pod.pod.db('users').where({ username: 'dan' }).update({ mailState: 'ok' })
  })
})

describe('the notices by mail', () => {
  it('mails that only moderators get are not on the page of a user without a role', async () => {
    const kinds = ['mail_kinds.someone_reported', 'mail_kinds.sign_up_waiting']
    const readShown = async () => {
      const { body } = await dan.visit('/settings/mail')
      return kinds.map((kind) => body.includes(`name="${kind}"`))
    }
    expect(await readShown()).toEqual([false, false])
    await pod.pod.db('users').where({ username: 'dan' }).update({ role: 'moderator' })
    expect(await readShown()).toEqual([true, true])
    await pod.pod.db('users').where({ username: 'dan' }).update({ role: null })
  })
})

describe('notices of the moderators', () => {
  it('follow the sign-in until they are confirmed, with the lost contacts', async () => {
    const { userId } = (await pod.pod.db('users').where({ username: 'dan' }).first('id as userId')) ?? {}
    const [lost] = await pod.pod
      .db('user_notices')
      .insert([{ userId, kind: 'contacts_lost', text: 'lost.example' }])
      .returning('id')
    await pod.pod.db('user_notices').insert({ userId, kind: 'warning', text: '<b>No advertising.</b>' })
    const contact = { noticeId: lost.id, address: 'una@lost.example', name: 'Una', sharing: true, receiving: true }
    await pod.pod.db('lost_contacts').insert(contact)

    const browser = await pod.signedIn('dan')

    expect(browser.url.pathname).toBe('/settings/notices')
    expect(browser.page.body).toContain('&#60;b&#62;No advertising.')
    expect(browser.page.body).toContain('una@lost.example')
    await browser.visit('/settings/notices/lost_contacts.csv')
    expect(browser.page.body).toBe('address,name,you_shared,they_shared\r\nuna@lost.example,Una,true,true\r\n')
    await browser.visit('/settings/notices?return_to=/settings/profile')
    await browser.submit({ do: 'confirm' })
    expect(browser.url.pathname).toBe('/settings/profile')
    expect((await pod.signedIn('dan')).url.pathname).not.toBe('/settings/notices')
    await pod.pod.db('user_notices').delete()
  })
})

describe('a change that needs a proof', () => {
  it('requires the password after ten minutes, and returns to the settings or the console only', async () => {
    await withOldProof(async () => {
      const browser = await pod.signedIn('dan')
      pod.later(660)
      await browser.visit('/settings/password')
      expect(browser.url.pathname).toBe('/users/confirm_access')
      await browser.submit({ current_password: 'wrong' })
      expect([browser.page.statusCode, browser.page.body.includes('The password is wrong.')]).toEqual([422, true])
      await browser.submit({ current_password: password })
      expect(browser.url.pathname).toBe('/settings/password')

      await browser.visit('/users/confirm_access?return_to=//evil.example')
      await browser.submit({ current_password: password })
      expect(browser.url.href).toBe('https://pod.example/settings')
      pod.later(-660)
    })
  })

  it('counts an attempt before the password is checked, and ends the session with the eleventh', async () => {
    const browser = await pod.signedIn('adm')
    const { id } = await userRow('adm')
    const session = () => pod.pod.db('browserSessions').where({ uid }).first()
    const { uid } = await pod.pod.db('browserSessions').where({ userId: id }).first('uid')
    const attempt = async (wrongProofs: number) => {
      await pod.pod.db('browserSessions').where({ uid }).update({ wrongProofs, wrongProofsSince: pod.pod.now() })
      await browser.visit('/users/confirm_access')
      await browser.submit({ current_password: 'the password of adm' })
    }
    await attempt(9)
    expect([browser.url.pathname, (await session()).wrongProofs]).toEqual(['/settings', 9])
    await attempt(10)
    expect(browser.url.pathname).toBe('/users/sign_in')
    expect((await pod.pod.db('endedSessions').where({ uid })).length).toBe(1)
  })

  it('keeps the fields of the form without its secrets, and bound to the session', async () => {
    const browser = await pod.signedIn('dan')
    await browser.visit('/settings/password')
    await withOldProof(async () => {
      await browser.submit({ password: 'a new password', password_again: 'a new password', end_applications: 'true' })
      expect(browser.url.pathname).toBe('/users/confirm_access')
      expect(browser.page.body).toContain('name="end_applications" value="true"')
      expect(browser.page.body).not.toContain('a new password')
      expect(browser.page.body.match(/name="form"/g)).toHaveLength(1)
      const kept = await pod.pod.db('keptForms').first()
      expect(kept.fields).toEqual({ end_applications: 'true' })
      const page = `${browser.url.pathname}${browser.url.search}`
      expect((await dan.visit(page)).body).not.toContain('end_applications')

      await browser.submit({ current_password: password })
      expect(browser.url.pathname).toBe('/settings/password')
    })
    expect(browser.page.body).toMatch(/name="end_applications" type="checkbox" value="true" checked/)
  })
})

describe('sessions and applications', () => {
  it.each([
    ['all others', {}, '/settings/sessions/others'],
    ['one', 'uid', '/settings/sessions'],
  ] as const)(
    'that have ended (%s) stay ended, although a request that has read one stores it again',
    async (_which, fields, path) => {
      const [here, there] = [await pod.signedIn('adm'), await pod.signedIn('adm')]
      const stored = await pod.pod.db('oidc_records').where({ model: 'Session' })
      await here.visit('/settings/sessions')
      const [, uid = ''] = /name="uid" value="([^"]+)"/.exec(here.page.body) ?? []
      await here.submit(fields === 'uid' ? { uid } : fields, path)

      const rows = stored.map((row) => ({ ...row, payload: JSON.stringify(row.payload) }))
      await pod.pod.db('oidc_records').insert(rows).onConflict(['model', 'id_hash']).ignore()

      await there.visit('/settings')
      expect(there.url.pathname).toBe('/users/sign_in')
      await here.visit('/settings')
      expect(here.url.pathname).toBe('/settings')
    },
  )

  it('end one browser while this one stays; a new authorization keeps one line', async () => {
    const client = await registerTestClient(pod.app)
    const [here, there] = [await pod.signedIn('mod'), await pod.signedIn('mod')]
    await approveClient(pod.app, client, 'mod', { browser: here })
    await here.visit('/settings/sessions')
    expect(here.page.body.match(/signed in on/g)).toHaveLength(2)
    expect(here.page.body.match(/this browser/g)).toHaveLength(1)

    await here.submit({}, '/settings/sessions')
    expect(here.page.body.match(/signed in on/g)).toHaveLength(1)
    expect((await there.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    expect((await here.visit('/settings')).body).toContain('<h1>Settings</h1>')
  })

  it('end all other browsers, but no session of another user', async () => {
    const [here, there] = [await pod.signedIn('mod'), await pod.signedIn('mod')]
    const { uid } = await pod.pod
      .db('browserSessions')
      .where({ userId: (await userRow()).id })
      .first()
    await here.visit('/settings/sessions')
    await here.submit({ uid }, '/settings/sessions')
    await here.submit({}, '/settings/sessions/others')

    expect(here.page.body.match(/signed in on/g)).toHaveLength(1)
    expect((await there.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    expect((await dan.visit('/settings')).body).toContain('<h1>Settings</h1>')
  })

  it('end one application, or all of them', async () => {
    const clients = [await registerTestClient(pod.app), await registerTestClient(pod.app)]
    const tokens: string[] = []
    for (const client of clients) tokens.push(await tokenOf(client, dan))
    expect(await Promise.all(tokens.map(statusWith))).toEqual([200, 200])
    await dan.visit('/settings/applications')
    expect(dan.page.body.match(/last used on/g)).toHaveLength(2)

    await dan.submit({}, '/settings/applications')
    expect((await Promise.all(tokens.map(statusWith))).sort()).toEqual([200, 401])
    const again = await tokenOf(clients[0] as TestOidcClient, dan)
    await dan.visit('/settings/applications')
    await dan.submit({}, '/settings/applications/all')
    expect(dan.page.body).toContain('No application has access now.')
    expect([await statusWith(again), ...(await Promise.all(tokens.map(statusWith)))]).toEqual([401, 401, 401])
  })

  it('a new password ends other browsers, and applications if wanted', async () => {
    const client = await registerTestClient(pod.app)
    const [here, there] = [await pod.signedIn('adm'), await pod.signedIn('adm')]
    const code = codeIn(await approveClient(pod.app, client, 'adm', { browser: here }))
    const token = (await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json()
    await here.visit('/settings/password')
    await here.submit({ password: 'short', password_again: 'short' })
    expect([here.page.statusCode, here.page.body.includes('"short"')]).toEqual([422, false])
    await here.submit({ password: 'another password', password_again: 'another password' })

    expect(here.page.body).toContain('Your new password is set.')
    expect((await there.visit('/settings')).body).toContain('<h1>Sign in</h1>')
    expect(await statusWith(token.access_token)).toBe(200)
    const twice = { password: 'the password of adm', password_again: 'the password of adm' }
    await here.submit({ ...twice, end_applications: 'true' })
    expect(await statusWith(token.access_token)).toBe(401)
  })
})

describe('the data of a person', () => {
  const FILE = '/settings/data/file'

  it('is listed with purpose, number and end, and is complete in the file, without others and secrets', async () => {
    const { db } = pod.pod
    const [{ id, personId }, mod] = [await userRow(), await userRow('mod')]
    const secrets = await db('user_secrets').where({ userId: id }).first()
    await db('mails').insert([
      { userId: id, kind: 'new_sign_in' },
      { userId: mod.id, kind: 'password_changed' },
    ])
    await db('posts').insert({
      guid: 'a post of dan, listed',
      authorId: personId,
      text: 'x',
      public: true,
      type: 'StatusMessage',
    })
    await dan.visit('/settings/data')
    for (const line of ['<b>Posts</b>: 1', '<b>Mails</b>: 1', '<b>Backups</b>: 0', '<b>Log of moderation</b>: 0<'])
      expect(dan.page.body).toContain(line)

    const { body } = await dan.visit(FILE)
    const { account, categories } = JSON.parse(body)
    expect(account).toBe('dan@pod.example')
    const names = ['account', 'sessions', 'applications', 'mails', 'posts', 'comments', 'likes', 'photos', 'contacts']
    expect(categories.map(({ category }: { category: string }) => category)).toEqual([
      ...names,
      ...['conversations', 'notifications', 'reports', 'audit_entries', 'backups'],
    ])
    for (const each of categories)
      expect(each).toMatchObject({ purpose: expect.any(String), end: expect.any(String), count: expect.any(Number) })
    expect(body).toContain('"new_sign_in"')
    const sessions = await db('browser_sessions').pluck('uid')
    const cookies = [...dan.cookies.values()].filter((value) => value.length > 20) // not that of the language
    expect(cookies).not.toEqual([])
    for (const text of ['mod@pod', '"password_changed"', 'argon2', secrets.passwordHash, ...sessions, ...cookies]) {
      expect(body).not.toContain(text)
    }
    const headers = { cookie: cookiesOf(dan) }
    const answer = await pod.inject({ url: FILE, headers })
    expect(answer.headers['content-disposition']).toContain('attachment')
    expect(answer.headers['cache-control']).toBe('private, no-store')
    await withOldProof(async () => expect((await pod.inject({ url: FILE, headers })).statusCode).toBe(303))
  })
})

describe('closing the own account', () => {
  async function close(browser: TestBrowser, username: string): Promise<void> {
    await browser.visit('/settings/close')
    await browser.submit({ username }, '/settings/close')
  }

  it('needs the username, ends sessions and the access of applications, and can be cancelled', async () => {
    const client = await registerTestClient(pod.app)
    const [here, there] = [await pod.signedIn('dan'), await pod.signedIn('dan')]
    const token = await tokenOf(client, here)
    await close(here, 'somebody')
    expect([here.page.statusCode, (await userRow()).closeAt]).toEqual([422, null])
    await close(here, 'dan')
    expect(here.page.body).toContain('Your account is being closed')
    const days = ((await userRow()).closeAt - pod.pod.now().getTime()) / 86_400_000
    expect([Math.round(days), await statusWith(token)]).toEqual([7, 401])
    expect((await there.visit('/settings')).body).toContain('<h1>Sign in</h1>')

    const again = await pod.signedIn('dan')
    expect(again.url.pathname).toBe('/settings/close')
    for (const path of ['/settings', '/settings/password', '/users/confirm_access', '/admin']) {
      await again.visit(path)
      expect([path, again.url.pathname]).toEqual([path, path === '/admin' ? '/users/sign_in' : '/settings/close'])
    }
    expect(await statusWith(token)).toBe(401)
    await again.visit('/settings/close')
    await again.submit({}, '/settings/close/keep')
    expect([again.url.pathname, (await userRow()).closeAt, await statusWith(token)]).toEqual(['/settings', null, 200])
  })

  it('deletes it after seven days: no person, no mailbox, and the name is never free again', async () => {
    const { db } = pod.pod
    await pod.people('max')
    const max = pod.visitor()
    await max.visit('/users/sign_in')
    await max.submit({ username: 'max', password: 'the password of max' })
    await db('users').where({ username: 'max' }).update({ email: 'max@mail.example' })
    await close(max, 'max')
    const { id, personId } = await userRow('max')
    const { guid } = await db('people').where({ id: personId }).first('guid')
    const tina = await addRemotePerson(pod.pod, 'tina@three.example')
    await db('contacts').insert({ userId: id, personId: tina.id, sharing: true, receiving: true })
    const statusOf = async (path: string) => (await pod.inject(path)).statusCode
    const webfinger = '/.well-known/webfinger?resource=acct:max@pod.example'
    await pod.pod.db('outbox').delete()
    pod.later(6.9 * 86_400)
    expect([await closeDueAccounts(pod.pod), await statusOf(webfinger)]).toEqual([0, 200])

    pod.later(0.2 * 86_400)
    expect(await closeDueAccounts(pod.pod)).toBe(1)
    const { data } = await db('outbox').where({ name: 'run-operation' }).first('data')
    const work = { data, finish: async () => undefined }
    await runBackgroundTask(pod.pod, work, closingTaskHandlers, new AbortController().signal)

    expect([await statusOf(webfinger), await statusOf(`/people/${guid}`)]).toEqual([404, 410])
    expect(await db('outbound_messages').where({ record: 'account_deletion', guid })).toHaveLength(1)
    for (const table of [
      'aspects',
      'contacts',
      'authorizations',
      'passkeys',
      'recovery_codes',
      'account_tokens',
      'mails',
    ]) {
      expect([table, await db(table).where({ userId: id })]).toEqual([table, []])
    }
    expect(await userRow('max')).toMatchObject({ email: null, unconfirmedEmail: null, closedAt: expect.any(Date) })
    const visitor = pod.visitor()
    await visitor.visit('/users/sign_up')
    const fields = { username: 'max', password: 'correct horse battery', password_again: 'correct horse battery' }
    await visitor.submit(fields, '/users/sign_up')
    expect([visitor.page.statusCode, visitor.page.body.includes('This username is taken.')]).toEqual([422, true])
    await visitor.visit('/users/sign_in')
    await visitor.submit({ username: 'max', password: 'the password of max' })
    expect(visitor.page.statusCode).toBe(422)
    pod.later(-7.1 * 86_400)
  })

  it('gives an application no code until the account is kept', async () => {
    const client = await registerTestClient(pod.app)
    await close(await pod.signedIn('dan'), 'dan')
    const browser = pod.visitor()
    await browser.visit(client.address())
    await browser.submit({ username: 'dan', password })
    expect(browser.url.pathname).toBe('/settings/close')
    await browser.visit(client.address({ prompt: 'none' }))
    expect(browser.url.searchParams.get('error')).toBe('interaction_required')
    await browser.visit('/settings/close')
    await browser.submit({}, '/settings/close/keep')
  })

  it('is refused to the last admin, and cannot be cancelled by the owner if a moderator closes', async () => {
    const adm = await pod.signedIn('adm')
    await close(adm, 'adm')
    expect([adm.page.statusCode, (await userRow('adm')).closeAt]).toEqual([422, null])

    const zoe = pod.visitor()
    await pod.people('zoe')
    await zoe.visit('/users/sign_in')
    await zoe.submit({ username: 'zoe', password: 'the password of zoe' })
    await close(zoe, 'zoe')
    await zoe.visit('/users/sign_in')
    await zoe.submit({ username: 'zoe', password: 'the password of zoe' })
    await pod.pod
      .db('users')
      .where({ username: 'zoe' })
      .update({ closingBy: 'moderator', closeAt: new Date(pod.pod.now().getTime() + 1e9) })
    await zoe.submit({}, '/settings/close/keep')
    expect([zoe.url.pathname, (await userRow('zoe')).closeAt === null]).toEqual(['/users/sign_in', false])
  })

  it('needs a proof of the password, which keeps the username', async () => {
    await withOldProof(async () => {
      const mod = await pod.signedIn('mod')
      pod.later(660)
      await close(mod, 'mod')
      expect([mod.url.pathname, (await userRow('mod')).closeAt]).toEqual(['/users/confirm_access', null])
      expect(mod.page.body).toContain('name="username" value="mod"')
      pod.later(-660)
    })
  })
})
