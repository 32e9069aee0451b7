import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signUp } from '../../../src/domain/accounts/invitations.js'
import {
  createOwnInvitation,
  listOwnInvitations,
  recallOwnInvitation,
} from '../../../src/domain/accounts/own-invitations.js'
import { beginSignUp } from '../../../src/domain/accounts/sign-ups/begin-sign-up.js'
import { checkAttendance, endUnattendedPeriod, isApprovalOn } from '../../../src/domain/accounts/sign-ups/unattended.js'
import { getActorByName } from '../../../src/domain/moderation/actor.js'
import { endNetworkRules } from '../../../src/domain/moderation/sign-ups/network-rules.js'
import { shortenOldAddresses } from '../../../src/persistence/moderation/people-records.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'

let api: ApiPod
let mod: StaffClient
beforeAll(async () => {
  api = await startApiPod({
    environment: {
      ...{ REGISTRATIONS: 'open', SIGN_UPS_PER_DAY: '3', EMAIL_DOMAIN_BLOCKLIST: 'listed.example' },
      ...{ TRUST_PROXY: '127.0.0.1,10.66.6.0/24', WRITE_LIMIT: '0' },
    },
  })
  mod = await makeStaff(api, 'mod', 'moderator')
})
afterAll(() => api.close())

const reason = 'Asked by Rosa'
const codeOf = (url: string) => new URL(url).searchParams.get('invitation') ?? ''

/** As the sign-up page of a pod with `REGISTRATIONS=invite` or `open`. */
function signUpBy(username: string, invitation: string, registrations: 'invite' | 'open' = 'invite') {
  const pod = { ...api.pod, config: { ...api.pod.config, registrations } }
  return signUp(pod, { username, password: 'a long enough password', invitation, ip: '192.0.2.7' })
}

describe('an invitation of a moderator', () => {
  it('is valid for its number of sign-ups, and names the accounts created with it', async () => {
    const made = await mod.post('/invitations', { uses: 2, note: 'Choir', reason })
    expect([made.status, made.body]).toMatchObject([201, { uses: 2, used: 0, note: 'Choir', created_by: 'mod' }])
    const code = codeOf(made.body.url)

    await signUpBy('ada', code)
    await signUpBy('ben', code, 'open')
    await expect(signUpBy('cleo', code)).rejects.toMatchObject({ reason: 'invitation_unusable' })

    expect((await mod.get('/invitations')).body).toMatchObject([
      { id: made.body.id, used: 2, accounts: ['ada', 'ben'] },
    ])
    expect(JSON.stringify((await mod.get('/invitations')).body)).not.toContain(code)
  })

  it('works no more once it is recalled, and every change is recorded', async () => {
    const { body: made } = await mod.post('/invitations', { reason })
    const path = `/invitations/${made.id}`
    const change = { uses: 3, note: 'Again', reason }
    expect((await mod.call('PATCH', path, change)).body).toMatchObject({ uses: 3, changed: true })
    expect((await mod.call('PATCH', path, change)).body).toMatchObject({ uses: 3, changed: false })
    expect((await mod.call('PATCH', path, { reason })).body).toMatchObject({ uses: 3, changed: false })
    expect((await mod.call('DELETE', `${path}?reason=Published`)).body).toMatchObject({
      changed: true,
      recalled_at: expect.any(String),
    })
    expect((await mod.call('DELETE', `${path}?reason=Published`)).body).toMatchObject({ changed: false })

    await expect(signUpBy('dora', codeOf(made.url))).rejects.toMatchObject({ reason: 'invitation_unusable' })
    const { body: audit } = await mod.get(`/audit?target=${made.id}`)
    expect(audit.map(({ action }: { action: string }) => action)).toEqual([
      'invitation.recall',
      'invitation.change',
      'invitation',
    ])
  })

  it('does not work while its moderator is locked', async () => {
    const other = await makeStaff(api, 'other-mod', 'moderator')
    const { body: made } = await other.post('/invitations', { reason })
    const setLock = (lockedAt: Date | null) => api.pod.db('users').where({ username: 'other-mod' }).update({ lockedAt })

    await setLock(new Date())
    for (const registrations of ['invite', 'open'] as const) {
      const signedUp = signUpBy('emil', codeOf(made.url), registrations)
      await expect(signedUp).rejects.toMatchObject({ reason: 'invitation_unusable' })
    }
    expect((await api.app.inject(new URL(made.url).pathname + new URL(made.url).search)).statusCode).toBe(404)
    await setLock(null)
    await signUpBy('emil', codeOf(made.url))
  })

  it('has bounds, and needs a reason', async () => {
    const year = new Date(Date.now() + 366 * 86_400_000).toISOString()

    expect((await mod.post('/invitations', {})).body).toMatchObject({ reason: 'reason_needed' })
    expect((await mod.post('/invitations', { uses: 101, reason })).body).toMatchObject({ reason: 'uses_invalid' })
    expect((await mod.post('/invitations', { until: year, reason })).body).toMatchObject({ reason: 'until_invalid' })
    expect((await mod.call('DELETE', '/invitations/999999?reason=x')).body).toMatchObject({
      code: 404,
      reason: 'invitation_not_found',
    })
  })
})

describe('open sign-up', () => {
  it('stops with 503 and Retry-After after the sign-ups of a day, which accounts by command do not count to', async () => {
    await api.people('made', 'by', 'command', 'only')
    const get = () => api.app.inject('/users/sign_up')
    await api.pod.db('users').update({ signedUpAt: null })
    await api.pod.db('users').whereIn('username', ['ada', 'ben']).update({ signedUpAt: new Date() })
    expect((await get()).statusCode).toBe(200)

    await signUp(api.pod, {
      username: 'zoe',
      password: 'a long enough password',
      invitation: undefined,
      ip: '192.0.2.7',
    })

    const full = await get()
    expect([full.statusCode, Number(full.headers['retry-after'])]).toEqual([503, expect.any(Number)])
    expect(Number(full.headers['retry-after'])).toBeGreaterThan(86_000)
    const refused = signUp(api.pod, {
      username: 'late',
      password: 'a long enough password',
      invitation: undefined,
      ip: '192.0.2.7',
    })
    await expect(refused).rejects.toMatchObject({ reason: 'sign_up_full' })
  })
})

describe('a sign-up that waits', () => {
  async function wait(username: string): Promise<void> {
    const pod = { ...api.pod, config: { ...api.pod.config, signUpApproval: true, signUpsPerDay: 0 } }
    await beginSignUp(pod, {
      ...{ username, password: 'a long enough password', email: undefined, reason: `I am ${username}.` },
      ...{ invitation: undefined, requestUid: undefined, ip: '192.0.2.7', language: 'en' },
    })
  }

  it('is listed with its reason and the others of its network, and decided alone or together', async () => {
    for (const name of ['gus', 'hal', 'ida', 'joe']) await wait(name)
    const { body: waiting } = await mod.get('/sign_ups')
    expect(waiting).toMatchObject([
      {
        username: 'joe',
        reason: 'I am joe.',
        network: '192.0.2.0/24',
        others_of_network: 3,
        rules: [],
        email_confirmed: false,
      },
      { username: 'ida' },
      { username: 'hal' },
      { username: 'gus' },
    ])
    const [joe, ida, hal, gus] = waiting.map(({ id }: { id: number }) => id)
    expect((await mod.post(`/sign_ups/${gus}/approve`, { reason })).body).toEqual({ opened: true })
    expect((await mod.post(`/sign_ups/${gus}/approve`, { reason })).status).toBe(404)
    expect((await mod.post(`/sign_ups/${hal}/reject`, { reason, message: 'No.' })).body).toEqual({ rejected: true })
    expect((await mod.post(`/sign_ups/${ida}/reject`, {})).body).toMatchObject({ reason: 'reason_needed' })
    expect((await mod.post('/sign_ups/decide', { ids: [joe, ida, gus], decision: 'approve', reason })).body).toEqual({
      decided: [joe, ida],
    })
    expect((await mod.get('/sign_ups')).body).toEqual([])
    expect((await mod.get('/audit?action=sign_up.reject')).body).toMatchObject([{ target: { label: 'hal' }, reason }])
  })
})

describe('rules for networks and e-mail addresses', () => {
  it('are added, changed, listed and removed, each with one entry; the same one twice changes nothing', async () => {
    const rule = { cidr: '198.51.100.77/24', severity: 'sign_up_block', comment: 'Wave', reason }
    const made = await mod.post('/ip_rules', rule)
    expect(made).toMatchObject({ status: 201, body: { cidr: '198.51.100.0/24', changed: true, hits: 0, until: null } })
    const { id } = made.body
    expect(await mod.post('/ip_rules', { ...rule, cidr: '198.51.100.0/24' })).toMatchObject({
      status: 200,
      body: { id, changed: false },
    })
    const change = { severity: 'sign_up_approval', until: '2038-01-01', reason }
    expect((await mod.call('PATCH', `/ip_rules/${id}`, change)).body).toMatchObject({
      ...{ changed: true, severity: 'sign_up_approval', comment: 'Wave', until: '2038-01-01T00:00:00.000Z' },
    })
    expect((await mod.get('/ip_rules')).body).toMatchObject([{ id, severity: 'sign_up_approval' }])
    expect((await mod.call('DELETE', `/ip_rules/${id}`)).body).toMatchObject({ reason: 'reason_needed' })
    expect((await mod.call('DELETE', `/ip_rules/${id}?reason=Over`)).body).toMatchObject({ changed: true })
    expect((await mod.call('PATCH', `/ip_rules/${id}`, change)).body).toMatchObject({ reason: 'rule_not_found' })
    const kinds = ['ip_rule.remove', 'ip_rule.change', 'ip_rule.add']
    const { body: entries } = await mod.get(`/audit?target=${id}&${kinds.map((kind) => `action=${kind}`).join('&')}`)
    expect(entries.map(({ action }: { action: string }) => action)).toEqual(kinds)
  })

  it('store of an e-mail address no more than its domain', async () => {
    const rule = { kind: 'email', value: 'U.Ser+spam@GMail.com', reason }
    expect((await mod.post('/mail_rules', rule)).body).toMatchObject({ kind: 'email', value: '…@gmail.com' })
    expect(await mod.post('/mail_rules', { ...rule, value: 'user@gmail.com' })).toMatchObject({
      status: 200,
      body: { changed: false, severity: 'reject' },
    })
    const { body } = await mod.post('/mail_rules', {
      kind: 'domain',
      value: '*.Mail.Example.',
      severity: 'approve',
      reason,
    })
    expect(body).toMatchObject({ value: 'mail.example', severity: 'approve', read_only: false })
    expect((await mod.get('/mail_rules')).body).toMatchObject([
      { id: null, value: 'listed.example', read_only: true },
      { value: 'mail.example' },
      { value: '…@gmail.com' },
    ])
    const stored = await api.pod.db.raw(
      'select (select json_agg(r) from mail_rules r)::text || (select json_agg(a) from audit_entries a)::text as all',
    )
    expect(stored.rows[0].all).not.toMatch(/u\.?ser[@+]/i)
    expect((await mod.post('/mail_rules', { kind: 'email', value: 'nobody', reason })).body).toMatchObject({
      ...{ code: 422, reason: 'field_invalid', field: 'value' },
    })
  })

  it.each([
    ['the own address', '10.77.0.0/16', 'own_address'],
    ['this machine', '127.1.2.3', 'protected_network'],
    ['this machine by IPv6', '::1', 'protected_network'],
    ['a trusted proxy', '10.66.6.6', 'protected_network'],
    ['a network around a trusted proxy', '10.66.0.0/16', 'protected_network'],
    ['a wide network', '10.0.0.0/7', 'too_broad'],
    ['a wide IPv6 network', '2001:d00::/31', 'too_broad'],
    ['no network', '10.1.2', 'cidr_invalid'],
  ])('refuse %s', async (_, cidr, refusal) => {
    const answer = await api.call({
      ...{ method: 'POST', path: '/api/admin/v1/ip_rules', token: mod.token },
      headers: { 'x-forwarded-for': '10.77.1.2' },
      body: { cidr, severity: 'no_access', reason },
    })
    expect([answer.status, answer.body.reason, answer.body.field]).toEqual([422, refusal, 'cidr'])
  })

  it('cannot be made stricter by a moderator who is in the network', async () => {
    const { body: made } = await mod.post('/ip_rules', { cidr: '10.88.0.0/16', severity: 'sign_up_approval', reason })
    const change = (address: string, body: object) =>
      api.call({
        ...{ method: 'PATCH', path: `/api/admin/v1/ip_rules/${made.id}`, token: mod.token },
        headers: { 'x-forwarded-for': address },
        body: { ...body, reason },
      })

    const refused = await change('10.88.1.2', { severity: 'no_access' })
    expect([refused.status, refused.body.reason]).toEqual([422, 'own_address'])
    expect((await change('10.88.1.2', { comment: 'An office' })).body).toMatchObject({ comment: 'An office' })
    expect((await change('10.77.1.2', { severity: 'sign_up_block' })).body).toMatchObject({ severity: 'sign_up_block' })
    expect((await change('10.88.1.2', { severity: 'no_access' })).body.reason).toBe('own_address')
    const milder = await change('10.88.1.2', { severity: 'sign_up_approval' })
    expect([milder.status, milder.body.severity]).toEqual([200, 'sign_up_approval'])
    expect((await change('10.88.1.2', { severity: 'sign_up_block' })).body.reason).toBe('own_address')

    await change('10.77.1.2', { severity: 'sign_up_block' })
    const addAgain = (severity: string) =>
      api.call({
        ...{ method: 'POST', path: '/api/admin/v1/ip_rules', token: mod.token },
        headers: { 'x-forwarded-for': '10.88.1.2' },
        body: { cidr: '10.88.0.0/16', severity, reason },
      })
    expect((await addAgain('no_access')).body.reason).toBe('own_address')
    expect((await addAgain('sign_up_approval')).body).toMatchObject({ id: made.id, severity: 'sign_up_approval' })
    await mod.call('DELETE', `/ip_rules/${made.id}?reason=Over`)
  })

  it('take pages and API from a network, but nothing from other pods', async () => {
    const { body } = await mod.post('/ip_rules', { cidr: '203.0.113.0/24', severity: 'no_access', reason })
    const from = async (remoteAddress: string, url: string) =>
      (await api.app.inject({ url, remoteAddress, headers: { authorization: `Bearer ${mod.token}` } })).statusCode
    for (const url of [
      '/users/sign_in',
      '/api/admin/v1/cases',
      '/admin',
      '/public',
      '/.well-known/openid-configuration',
    ]) {
      expect([url, await from('203.0.113.9', url)]).toEqual([url, 403])
    }
    for (const url of [
      '/health/live',
      '/.well-known/nodeinfo',
      '/.well-known/webfinger?resource=acct:mod@pod.example',
    ]) {
      expect([url, await from('203.0.113.9', url)]).toEqual([url, 200])
    }
    expect(await from('203.0.113.9', '/fetch/post/0123456789abcdef')).toBe(404)
    const message = { method: 'POST', url: '/receive/public', remoteAddress: '203.0.113.9', payload: '<x/>' } as const
    const received = await api.app.inject({ ...message, headers: { 'content-type': 'application/magic-envelope+xml' } })
    expect(received.statusCode).toBe(202)
    expect(await from('203.0.112.9', '/users/sign_in')).toBe(200)
    await mod.call('DELETE', `/ip_rules/${body.id}?reason=Over`)
    expect(await from('203.0.113.9', '/users/sign_in')).toBe(200)
  })

  it('end at their time, by an action of the system', async () => {
    const until = new Date(Date.now() + 60_000).toISOString()
    const { body } = await mod.post('/ip_rules', { cidr: '192.0.2.0/25', severity: 'sign_up_block', until, reason })
    await api.pod
      .db('ip_rules')
      .where({ id: body.id })
      .update({ until: new Date(Date.now() - 1_000) })
    expect(await endNetworkRules(api.pod)).toBe(1)
    expect((await mod.get(`/audit?target=${body.id}&action=ip_rule.remove`)).body).toMatchObject([{ via: 'system' }])
  })
})

describe('the addresses of an account', () => {
  it('are shown and found with an entry in the audit log, and shortened after 30 days', async () => {
    await signUp(
      { ...api.pod, config: { ...api.pod.config, signUpsPerDay: 0 } },
      {
        ...{ username: 'kim', password: 'a long enough password', invitation: undefined, ip: '::ffff:203.0.113.80' },
      },
    )
    const found = await mod.get('/people?ip=203.0.113.80')
    expect(found.body).toMatchObject([{ network_id: 'kim@pod.example' }])
    expect((await mod.get('/people?ip=203.0.113.81')).body).toEqual([])
    expect((await mod.get('/people?ip=somewhere')).body).toMatchObject({
      code: 422,
      reason: 'cidr_invalid',
      field: 'ip',
    })
    const path = `/people/${found.body[0].guid}`
    expect((await mod.get(path)).body).toMatchObject({
      ...{ email: null, email_confirmed: false, ips: [{ ip: '203.0.113.80', used_for: 'sign_up' }], followed_here: 0 },
    })
    expect((await mod.get(`/audit?action=person.contact_read&target=${found.body[0].guid}`)).body).toMatchObject([
      { after: { fields: ['ips'] }, actor: { name: 'mod' } },
    ])
    const { body: searches } = await mod.get('/audit?action=people.ip_search')
    expect(searches).toHaveLength(2)
    expect(JSON.stringify(searches)).not.toContain('203.0.113')

    await api.pod.db.raw(`update users set signed_up_at = now() - interval '31 days' where username = 'kim'`)
    await shortenOldAddresses(api.pod.db)
    expect((await mod.get(path)).body.ips).toMatchObject([{ ip: '203.0.113.0/24' }])
    expect((await mod.get('/people?ip=203.0.113.81')).body).toHaveLength(1)
  })
})

describe('sign-ups on a pod without an active moderator or admin', () => {
  it('need a decision after UNATTENDED_DAYS, with one entry, until an admin ends that', async () => {
    const adm = await makeStaff(api, 'adm', 'admin')
    const later = (days: number) => ({ ...api.pod, now: () => new Date(Date.now() + days * 86_400_000) })
    const isOn = () => isApprovalOn(api.pod)
    await checkAttendance(later(6.9))
    expect(await isOn()).toBe(false)
    await checkAttendance({ ...later(8), config: { ...api.pod.config, unattendedDays: 0 } })
    await checkAttendance({ ...later(8), config: { ...api.pod.config, registrations: 'invite' } })
    expect(await isOn()).toBe(false)

    await Promise.all([checkAttendance(later(8)), checkAttendance(later(8))])
    await checkAttendance(later(9))
    expect(await isOn()).toBe(true)
    const nodeInfo = () => api.app.inject('/nodeinfo/2.1')
    expect((await nodeInfo()).json()).toMatchObject({ openRegistrations: true, metadata: { approvalRequired: true } })
    const { body: entries } = await mod.get('/audit?action=sign_ups.unattended')
    expect(entries).toMatchObject([{ via: 'system', after: { approval: true, days: 7 } }])

    await expect(endUnattendedPeriod(api.pod, await actorNamed('mod'), { reason })).rejects.toMatchObject({
      reason: 'role_needed',
    })
    expect((await mod.post('/sign_ups/attended', { reason })).status).toBe(403)
    expect((await adm.post('/sign_ups/attended', {})).body).toMatchObject({ reason: 'reason_needed' })
    expect((await adm.post('/sign_ups/attended', { reason })).body).toEqual({ changed: true })
    expect((await adm.post('/sign_ups/attended', { reason })).body).toEqual({ changed: false })
    expect(await isOn()).toBe(false)
  })

  const actorNamed = (name: string) => getActorByName(api.pod, name, 'moderation')
})

describe('invitations of a user', () => {
  it('are as many as INVITATIONS_PER_USER, after a week, and end with the account', async () => {
    const { rosa } = await api.people('rosa')
    const user = await api.pod.db('users').where({ username: 'rosa' }).first('id')
    const rosaViewer = { userId: user.id }
    const pod = { ...api.pod, config: { ...api.pod.config, registrations: 'invite' as const } }
    const invite = (input = {}) => createOwnInvitation(pod, rosaViewer, input)
    await expect(invite()).rejects.toMatchObject({ reason: 'invitations_not_allowed' })
    await api.pod.db.raw(`update users set created_at = now() - interval '8 days' where id = ?`, [user.id])
    await expect(invite({ uses: 101 })).rejects.toMatchObject({ reason: 'uses_invalid' })

    const links: string[] = []
    for (let number = 0; number < 5; number += 1) links.push((await invite({ uses: 2, note: 'Choir' })).url)
    await expect(invite()).rejects.toMatchObject({ reason: 'too_many_invitations' })
    const made = await Promise.allSettled([recallFirst(), invite()])
    expect(made.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(1)

    await expect(recallOwnInvitation(pod, { userId: 0 }, 1)).rejects.toMatchObject({ reason: 'invitation_not_found' })
    await signUpBy('lea', codeOf(links[4] ?? ''))
    expect(await listOwnInvitations(pod, rosaViewer)).toMatchObject(
      expect.arrayContaining([expect.objectContaining({ note: 'Choir', used: 1, accounts: ['lea'] })]),
    )
    await mod.post(`/people/${rosa?.guid}/silence`, { reason })
    await expect(invite()).rejects.toMatchObject({ reason: 'invitations_not_allowed' })
    await mod.post(`/people/${rosa?.guid}/lock`, { reason })
    await expect(signUpBy('max', codeOf(links[4] ?? ''))).rejects.toMatchObject({ reason: 'invitation_unusable' })

    async function recallFirst() {
      const [oldest] = (await listOwnInvitations(pod, rosaViewer)).toReversed()
      await recallOwnInvitation(pod, rosaViewer, oldest?.id ?? 0)
      await recallOwnInvitation(pod, rosaViewer, oldest?.id ?? 0)
    }
  })
})
