import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signUp } from '../../../src/domain/accounts/invitations.js'
import { beginSignUp } from '../../../src/domain/accounts/sign-ups/begin-sign-up.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'

let api: ApiPod
let mod: StaffClient
beforeAll(async () => {
  api = await startApiPod({ environment: { REGISTRATIONS: 'open', SIGN_UPS_PER_DAY: '3' } })
  mod = await makeStaff(api, 'mod', 'moderator')
})
afterAll(() => api.close())

const reason = 'Asked by Rosa'
const codeOf = (url: string) => new URL(url).searchParams.get('invitation') ?? ''

/** As the sign-up page of a pod with `REGISTRATIONS=invite`. */
function signUpBy(username: string, invitation: string) {
  const pod = { ...api.pod, config: { ...api.pod.config, registrations: 'invite' as const } }
  return signUp(pod, { username, password: 'a long enough password', invitation })
}

describe('an invitation of a moderator', () => {
  it('is for as many sign-ups as it says, and names those who came by it', async () => {
    const made = await mod.post('/invitations', { uses: 2, note: 'Choir', reason })
    expect([made.status, made.body]).toMatchObject([201, { uses: 2, used: 0, note: 'Choir', created_by: 'mod' }])
    const code = codeOf(made.body.url)

    await signUpBy('ada', code)
    await signUpBy('ben', code)
    await expect(signUpBy('cleo', code)).rejects.toMatchObject({ reason: 'invitation_unusable' })

    expect((await mod.get('/invitations')).body).toMatchObject([
      { id: made.body.id, used: 2, accounts: ['ada', 'ben'] },
    ])
    expect(JSON.stringify((await mod.get('/invitations')).body)).not.toContain(code)
  })

  it('works no more once it is recalled, and every change is recorded', async () => {
    const { body: made } = await mod.post('/invitations', { reason })
    const path = `/invitations/${made.id}`
    expect((await mod.call('PATCH', path, { uses: 3, note: 'Again', reason })).body).toMatchObject({ uses: 3 })
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
    await expect(signUpBy('emil', codeOf(made.url))).rejects.toMatchObject({ reason: 'invitation_unusable' })
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

    await signUp(api.pod, { username: 'zoe', password: 'a long enough password', invitation: undefined })

    const full = await get()
    expect([full.statusCode, Number(full.headers['retry-after'])]).toEqual([503, expect.any(Number)])
    expect(Number(full.headers['retry-after'])).toBeGreaterThan(86_000)
    const refused = signUp(api.pod, { username: 'late', password: 'a long enough password', invitation: undefined })
    await expect(refused).rejects.toMatchObject({ reason: 'sign_up_full' })
  })
})

describe('a sign-up that waits', () => {
  async function wait(username: string): Promise<void> {
    const pod = { ...api.pod, config: { ...api.pod.config, signUpApproval: true, signUpsPerDay: 0 } }
    await beginSignUp(pod, {
      ...{ username, password: 'a long enough password', email: undefined, reason: `I am ${username}.` },
      ...{ invitation: undefined, requestUid: undefined, network: '192.0.2.0/24', language: 'en' },
    })
  }

  it('is listed with its reason and the others of its network, and decided alone or together', async () => {
    for (const name of ['gus', 'hal', 'ida', 'joe']) await wait(name)
    const { body: waiting } = await mod.get('/sign_ups')
    expect(waiting).toMatchObject([
      { username: 'joe', reason: 'I am joe.', network: '192.0.2.0/24', others_of_network: 3, email_confirmed: false },
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
