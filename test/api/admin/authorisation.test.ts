import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { changeRole } from '../../../src/domain/moderation/change-role.js'
import { Authorization } from '../../../src/persistence/models/access-token.js'
import { User } from '../../../src/persistence/models/user.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'
import { buildPod } from '../../support/pods/build-pod.js'

const BASE = '/api/admin/v1'

let api: ApiPod
let mod: StaffClient
let adm: StaffClient
beforeAll(async () => {
  api = await startApiPod({ environment: { WRITE_LIMIT: '0' } })
  mod = await makeStaff(api, 'mod', 'moderator')
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())

/** A token whose scopes the account has lost, or never had. */
async function tokenWithScopes(name: string, scopes: readonly string[]): Promise<string> {
  await api.people(name)
  const { accessToken } = await mintToken(api.pod, name, { scopes: [], lifetime: 3_600 })
  const user = await User.byUsername(api.pod.db, name)
  await Authorization.query(api.pod.db)
    .where({ userId: user?.id ?? 0 })
    .patch({ scopes: [...scopes] })
  return accessToken
}

/** A token that an admin of another pod has there. */
async function tokenOfOtherPod(): Promise<string> {
  const other = await startApiPod()
  const { token } = await makeStaff(other, 'adm', 'admin')
  await other.close()
  return token
}

function routes() {
  return api.app.knownRoutes
    .filter(({ url, method }) => url.startsWith(BASE) && method !== 'HEAD')
    .flatMap(({ url, method, config }) =>
      [method].flat().map((each) => ({ url, method: each, scopes: config?.scopes })),
    )
}

async function statusOf(
  { url, method }: ReturnType<typeof routes>[number],
  token?: string,
): Promise<readonly unknown[]> {
  const answer = await api.app.inject({
    method: method as 'GET',
    url: url.replace(/:\w+/g, '0000000000000000'),
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    ...(method === 'GET' ? {} : { payload: {} }),
  })
  const isRefused = answer.statusCode === 401 || answer.statusCode === 403
  return [url, answer.statusCode, ...(isRefused ? [answer.json().reason] : [])]
}

describe('every call of the admin API', () => {
  it('needs one of the two scopes of the admin API', () => {
    expect(routes().length).toBeGreaterThan(2)
    for (const { url, scopes } of routes()) {
      expect([url, scopes]).toEqual([url, [expect.stringMatching(/^(moderation|administration)$/)]])
    }
  })

  it('refuses requests without a token, tokens of locked and closed accounts, and those of other pods', async () => {
    const at = new Date()
    const ended = {
      locked: { lockedAt: at },
      closing: { closeAt: at, closingBy: 'moderator' },
      closed: { closedAt: at },
    }
    const invalid: string[] = [await tokenOfOtherPod()]
    for (const [name, change] of Object.entries(ended)) {
      invalid.push((await makeStaff(api, name, 'moderator')).token)
      await api.pod.db('users').where({ username: name }).update(change)
    }

    for (const route of routes()) {
      expect(await statusOf(route)).toEqual([route.url, 401, 'token_missing'])
      for (const token of invalid) expect(await statusOf(route, token)).toEqual([route.url, 401, 'token_invalid'])
    }
  })

  it('refuses users without a role, whose tokens do not have the scopes', async () => {
    const { dan } = await api.people('dan')

    for (const route of routes()) {
      expect(await statusOf(route, dan.token)).toEqual([route.url, 403, 'insufficient_scope'])
    }
  })

  it('refuses an account without the role, with any scopes of its token', async () => {
    const token = await tokenWithScopes('eve', ['moderation', 'administration'])

    for (const route of routes()) expect(await statusOf(route, token)).toEqual([route.url, 403, 'role_needed'])
  })

  it('refuses moderators the actions of admins only', async () => {
    for (const route of routes()) {
      const [, status, reason] = await statusOf(route, mod.token)
      if (route.scopes?.includes('administration'))
        expect([route.url, status, reason]).toEqual([route.url, 403, 'insufficient_scope'])
      else expect([route.url, [401, 403].includes(Number(status))]).toEqual([route.url, false])
    }
  })

  it('lets admins do everything', async () => {
    for (const route of routes()) {
      const [url, status] = await statusOf(route, adm.token)
      expect([url, [401, 403].includes(Number(status))]).toEqual([url, false])
    }
  })

  it('answers 404 for a number that no row has, also beyond those of the database', async () => {
    const numbered = routes().filter(({ url }) => url.includes('/:id') && !/dead_letters|traces/.test(url))
    expect(numbered.length).toBeGreaterThan(20)
    for (const { url, method } of numbered) {
      for (const id of ['999999', '9223372036854775807', '9223372036854775808', '1e30', '0', '-1', 'x']) {
        const answer = await api.app.inject({
          method: method as 'GET',
          url: url.replace(':id', id),
          headers: { authorization: `Bearer ${adm.token}` },
          ...(method === 'GET' ? {} : { payload: { reason: 'x', text: 'x' } }),
        })
        expect([method, url, id, answer.statusCode]).toEqual([method, url, id, 404])
      }
    }
  })

  it('answers 404 for a missing object before 422 for a wrong query or body', async () => {
    const wrongInputs = [
      { reason: 5, text: 5, role: 5, state: 5, reports_muted: 5, severity: 5, confirm: 5 },
      { until: 'tomorrow' },
      {},
    ]
    const answers: unknown[] = []
    const ofObjects = routes().filter((route) => route.url.includes('/:'))
    expect(ofObjects.length).toBeGreaterThan(50)
    for (const { url, method } of ofObjects) {
      const key = url.includes('/:id') ? '999999' : 'x'.repeat(16)
      for (const payload of wrongInputs) {
        const answer = await api.app.inject({
          method: method as 'POST',
          url: `${url.replace(/:\w+/, key)}?per_page=x&limit=x&state=x`,
          headers: { authorization: `Bearer ${adm.token}` },
          ...(method === 'GET' ? {} : { payload }),
        })
        if (answer.statusCode !== 404) answers.push([method, url.slice(BASE.length), payload, answer.statusCode])
      }
    }
    expect(answers).toEqual([])
    const wrongBody = await api.app.inject({
      ...{ method: 'POST', url: `${BASE}/people/${mod.person.guid}/notes`, payload: { text: 5 } },
      headers: { authorization: `Bearer ${adm.token}` },
    })
    expect([wrongBody.statusCode, wrongBody.json().field]).toEqual([422, 'text'])
  })

  it('is for the pages of the origins that ADMIN_API_ORIGINS names, and for no others', async () => {
    const origin = 'https://admin.example'
    await using other = await buildPod({ environment: { ADMIN_API_ORIGINS: `${origin},https://b.example` } })
    const ask = (method: 'OPTIONS' | 'GET', from: string) =>
      other.app.inject({ method, url: `${BASE}/audit`, headers: { origin: from } })

    const preflight = await ask('OPTIONS', origin)
    expect([preflight.statusCode, preflight.headers['access-control-allow-origin']]).toEqual([204, origin])
    expect(preflight.headers['access-control-allow-headers']).toContain('If-Match')
    const answer = await ask('GET', 'https://b.example')
    expect([answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([401, 'https://b.example'])
    for (const from of ['https://admin.example.evil.example', 'https://evil.example', 'null']) {
      expect((await ask('OPTIONS', from)).statusCode).toBe(404)
      const { headers } = await ask('GET', from)
      expect([headers['access-control-allow-origin'], headers['vary']]).toEqual([undefined, 'Origin'])
    }
  })

  it('is for no page of another origin', async () => {
    const preflight = await api.app.inject({
      method: 'OPTIONS',
      url: `${BASE}/audit`,
      headers: { origin: 'https://evil.example' },
    })
    const answer = await api.app.inject({ url: `${BASE}/audit`, headers: { authorization: `Bearer ${mod.token}` } })

    expect(preflight.statusCode).toBe(404)
    expect(answer.headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('the role', () => {
  it('counts at each request: a moderator who loses it is refused with the same token', async () => {
    const leaver = await makeStaff(api, 'leaver', 'moderator')
    expect((await leaver.get('/audit')).status).toBe(200)

    await changeRole(api.pod, COMMAND_ACTOR, leaver.person.guid, { role: 'none', reason: 'Left', confirm: 'leaver' })

    expect((await leaver.get('/audit')).body).toMatchObject({ code: 403, reason: 'role_needed' })
  })

  it('is given by an admin who confirms the user name, and only once', async () => {
    const { frank } = await api.people('frank')
    const path = `/people/${frank.guid}/role`
    const body = { role: 'moderator', reason: 'Helps with reports', confirm: 'frank' }

    expect((await adm.put(path, { ...body, reason: ' ' })).body).toMatchObject({ code: 422, reason: 'reason_needed' })
    expect((await adm.put(path, { ...body, confirm: 'dan' })).body).toMatchObject({
      code: 409,
      reason: 'confirmation_needed',
      preview: { username: 'frank', role: 'none', new_role: 'moderator' },
    })
    expect((await adm.put(path, body)).body).toMatchObject({
      changed: true,
      role: 'moderator',
      action: { kind: 'role', undo: { possible: false } },
    })
    expect((await adm.put(path, body)).body).toMatchObject({ changed: false, role: 'moderator', guid: frank.guid })
    expect((await adm.get(`/audit?target=${frank.guid}`)).body).toMatchObject([
      {
        action: 'role',
        before: { role: 'none' },
        after: { role: 'moderator' },
        actor: { name: 'adm', role: 'admin' },
        via: 'api',
      },
    ])
  })

  it('cannot be changed on the own account, or of unknown people', async () => {
    const own = await adm.put(`/people/${adm.person.guid}/role`, { role: 'none', reason: 'Tired', confirm: 'adm' })
    const unknown = await adm.put(`/people/${'0'.repeat(32)}/role`, { role: 'none', reason: 'Tired' })

    expect(own.body).toMatchObject({ code: 422, reason: 'own_account' })
    expect(unknown.body).toMatchObject({ code: 404, reason: 'person_not_found' })
  })

  it('of the last admin stays, even if the last two are demoted at the same time', async () => {
    const other = await makeStaff(api, 'other', 'admin')
    const demote = (by: StaffClient, { person }: StaffClient, confirm: string) =>
      by.put(`/people/${person.guid}/role`, { role: 'none', reason: 'Both at once', confirm })

    const answers = await Promise.all([demote(adm, other, 'other'), demote(other, adm, 'adm')])

    const statuses = answers.map(({ status }) => status)
    expect(statuses).toContain(200)
    expect(await User.query(api.pod.db).where({ role: 'admin' })).toHaveLength(1)
    await User.query(api.pod.db).where({ username: 'adm' }).patch({ role: 'admin' })
    await User.query(api.pod.db).where({ username: 'other' }).patch({ role: null })
    const last = changeRole(api.pod, COMMAND_ACTOR, adm.person.guid, { role: 'none', reason: 'Last', confirm: 'adm' })
    await expect(last).rejects.toMatchObject({ reason: 'last_admin' })
  })
})

describe('tokens of the operator', () => {
  it('have the scopes of the admin API only for people with the role', async () => {
    await api.people('dan')

    await expect(mintToken(api.pod, 'dan', { scopes: ['moderation'], lifetime: 60 })).rejects.toMatchObject({
      reason: 'role_needed',
    })
    await expect(mintToken(api.pod, 'mod', { scopes: ['administration'], lifetime: 60 })).rejects.toMatchObject({
      reason: 'role_needed',
    })
  })
})
