import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  cancelClosing,
  closeDueAccounts,
  closingTaskHandlers,
} from '../../../src/domain/accounts/closing/close-account.js'
import { signIn } from '../../../src/domain/accounts/sign-in.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { exportLostContacts } from '../../../src/domain/moderation/notices/user-notices.js'
import { restrictTaskHandlers } from '../../../src/domain/moderation/pods/restrict-pod-people.js'
import { runBackgroundTask } from '../../../src/domain/operations/background-tasks.js'
import { User } from '../../../src/persistence/models/user.js'
import type { Services } from '../../../src/services/services.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let adm: StaffClient
beforeAll(async () => {
  api = await startSampleApiPod({
    environment: {
      WRITE_LIMIT: '0',
      PODMIN_ACCOUNT: 'dan',
      SMTP_URL: 'smtp://127.0.0.1:9',
      MAIL_FROM: 'pod@pod.example',
    },
  })
  mod = await makeStaff(api, 'mod', 'moderator')
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())

const reason = 'Spam'
const DAY_MS = 86_400_000

const close = (name: string, guid: string, body: object = {}, by = mod) =>
  by.post(`/people/${guid}/close`, { reason, confirm: name, ...body })

/** The pod so many days later. */
const podIn = (days: number): Services => ({ ...api.pod, now: () => new Date(Date.now() + days * DAY_MS) })

async function runClosings(pod: Services): Promise<void> {
  for (const { data } of await pod.db('outbox').where({ name: 'run-operation' }).select('data')) {
    await runBackgroundTask(pod, { data, finish: async () => {} }, closingTaskHandlers, new AbortController().signal)
  }
}

describe('an account that a moderator closes', () => {
  it('has no access, cannot be kept by its owner, and is as before after the undo', async () => {
    const { eve } = api
    expect((await close('dan', eve.guid)).body).toMatchObject({ code: 409, reason: 'confirmation_needed' })
    const before = Date.now()

    const { body } = await close('eve', eve.guid)

    expect(body).toMatchObject({ changed: true, action: { kind: 'close', undo: { possible: true } } })
    expect(new Date(body.close_at).getTime()).toBeGreaterThanOrEqual(before + 7 * DAY_MS)
    expect((await close('eve', eve.guid)).body).toMatchObject({
      changed: false,
      close_at: body.close_at,
      state: 'closing',
    })
    expect((await eve.get('/user')).status).toBe(401)
    expect(await signIn(api.pod, 'eve', 'the password of eve')).toBeUndefined()
    expect((await api.alice.get(`/users/${eve.guid}`)).status).toBe(200)
    expect((await mod.get(`/people/${eve.guid}`)).body).toMatchObject({
      state: 'closing',
      restrictions: [{ kind: 'close', action_id: body.action.id, until: body.close_at }],
    })
    const { userId } = eve.viewer
    await expect(
      api.pod.db.transaction((transaction) => cancelClosing(api.pod, transaction, userId, 'owner')),
    ).rejects.toMatchObject({ reason: 'closed_by_moderator' })
    expect(await closeDueAccounts(api.pod)).toBe(0)

    expect((await mod.post(`/actions/${body.action.id}/undo`, { reason })).body).toMatchObject({ changed: true })

    expect((await eve.get('/user')).status).toBe(200)
    expect(await closeDueAccounts(podIn(8))).toBe(0)
  })

  it('retracts comments, then posts, before the account deletion leaves; then there is no undo', async () => {
    const { fay } = await api.people('fay')
    const rita = await addRemotePerson(api.pod, 'rita@r.example')
    await share(api, fay, rita)
    const theirs = await addPost(api.pod, rita, { public: true })
    const comment = await createComment(api.pod, fay.viewer, { postGuid: theirs.guid, text: 'Buy' })
    const post = (await fay.post('/posts', { body: 'Buy', public: true })).body.guid
    const action = (await close('fay', fay.guid, { retract_content: true })).body.action.id
    await api.pod.db('outbox').delete()

    const later = podIn(8)
    expect(await closeDueAccounts(later)).toBe(1)
    await runClosings(later)

    const sent = await api.pod.db('outboundMessages').orderBy('id').select('record', 'guid')
    const guids = [comment.guid, post, fay.guid]
    expect(sent.filter(({ guid }) => guids.includes(guid)).map(({ record }) => record)).toEqual([
      'comment',
      'post',
      'account_deletion',
    ])
    expect((await api.alice.get(`/posts/${post}`)).status).toBe(404)
    expect((await api.alice.get(`/users/${fay.guid}`)).status).toBe(404)
    expect((await mod.get(`/audit?target=${fay.guid}`)).body).toMatchObject([
      { action: 'account.closed', actor: { name: 'system' } },
      { action: 'close' },
    ])
    expect((await mod.post(`/actions/${action}/undo`, { reason })).body).toMatchObject({
      code: 409,
      reason: 'not_undoable',
    })
  })

  it('is closed immediately by admins alone', async () => {
    const { gus } = await api.people('gus')

    expect((await close('gus', gus.guid, { immediately: true })).body).toMatchObject({
      code: 403,
      reason: 'role_needed',
    })
    expect((await close('gus', gus.guid, { immediately: true }, adm)).body).toMatchObject({
      changed: true,
      close_at: null,
      action: { undo: { possible: false } },
    })
    expect((await api.alice.get(`/users/${gus.guid}`)).status).toBe(404)
  })

  it('is neither the last admin nor the account of the podmin', async () => {
    expect((await close('dan', api.dan.guid)).body).toMatchObject({ code: 409, reason: 'podmin_account' })
    for (const action of ['lock', 'silence']) {
      expect((await mod.post(`/people/${api.dan.guid}/${action}`, { reason })).body).toMatchObject({
        reason: 'podmin_account',
      })
    }
    expect((await close('adm', adm.person.guid)).body).toMatchObject({ code: 403, reason: 'target_outranks' })
    await User.query(api.pod.db).where({ username: 'adm' }).patch({ role: 'admin' })
    expect((await close('adm', adm.person.guid, {}, adm)).body).toMatchObject({ code: 422, reason: 'own_account' })
  })
})

describe('a warning', () => {
  it('is a notice and a conversation from the podmin account, and counts in the record', async () => {
    const { carol } = api
    const text = 'No advertising, please.'
    expect((await mod.post(`/people/${carol.guid}/warn`, { reason, text: ' ' })).body).toMatchObject({
      code: 422,
      reason: 'text_invalid',
      field: 'text',
    })

    expect((await mod.post(`/people/${carol.guid}/warn`, { reason, text })).body).toMatchObject({
      changed: true,
      action: { kind: 'warn', undo: { possible: false } },
    })

    const mails = await api.pod.db('outbox').whereRaw(`data->>'kind' = 'moderation_notice'`).pluck('data')
    expect(mails).toMatchObject([{ userId: carol.viewer.userId }])
    expect(JSON.stringify(mails)).not.toContain(text)
    const { body: notices } = await carol.get('/user/notices')
    expect(notices).toMatchObject([{ kind: 'warning', text, target: null, confirmed_at: null }])
    expect(JSON.stringify(notices)).not.toContain('mod@')
    const [conversation] = (await carol.get('/conversations')).body
    expect(conversation.read).toBe(false)
    const [message] = (await carol.get(`/conversations/${conversation.guid}/messages`)).body
    expect(message).toMatchObject({ author: { network_id: api.dan.address }, body: expect.stringContaining(text) })
    expect((await mod.get(`/people/${carol.guid}`)).body.warnings).toBe(1)
    await User.query(api.pod.db).findById(carol.viewer.userId).patch({ language: 'de' })
    await mod.post(`/people/${carol.guid}/warn`, { reason, text })
    const [german] = (await carol.get('/conversations')).body
    expect(german.subject).toBe(`Eine Mitteilung der Moderation von ${api.pod.config.host}`)
    const [later] = (await carol.get(`/conversations/${german.guid}/messages`)).body
    expect(later.body).toBe(`Die Moderation dieses Pods verwarnt dich.\n\n${text}`)
    expect((await api.alice.get('/user/notices')).body).toEqual([])
    expect((await mod.post(`/people/${adm.person.guid}/warn`, { reason, text })).body).toMatchObject({ code: 403 })
  })
})

it('the author of a removed or hidden post gets a notice, unless the action is silent', async () => {
  const { bob } = api
  const notices = async () => (await bob.get('/user/notices')).body
  const post = async () => (await bob.post('/posts', { body: 'Watches', public: true })).body.guid
  const [removed, hidden, quiet] = [await post(), await post(), await post()]

  await mod.post(`/posts/${removed}/remove`, { reason })
  await mod.post(`/posts/${hidden}/hide`, { reason })
  await mod.post(`/posts/${quiet}/hide`, { reason, silent: true })

  expect(await notices()).toMatchObject([
    { kind: 'content_hidden', target: { type: 'post', guid: hidden } },
    { kind: 'content_removed', target: { type: 'post', guid: removed } },
  ])
  expect(JSON.stringify(await notices())).not.toContain(reason)
})

describe('a user who loses contacts by a rule for a pod', () => {
  it('gets one notice for the host, which is deleted with the rule', async () => {
    const { hal } = await api.people('hal')
    const people = [
      await addRemotePerson(api.pod, 'una@lost.example'),
      await addRemotePerson(api.pod, '=ulf@lost.example'),
    ]
    for (const person of people) await share(api, hal, person)
    const setRule = (state: string) =>
      adm.post('/pod_rules', { domain: 'lost.example', state, reason, confirm: 'lost.example' })
    await api.pod.db('outbox').delete()
    const run = async () => {
      const { data } = await api.pod.db('outbox').where({ name: 'run-operation' }).first('data')
      await runBackgroundTask(
        api.pod,
        { data, finish: async () => {} },
        restrictTaskHandlers,
        new AbortController().signal,
      )
      await api.pod.db('outbox').delete()
    }

    await setRule('blocked')
    await run()

    expect((await hal.get('/user/notices')).body).toMatchObject([
      { kind: 'contacts_lost', text: 'lost.example', contacts_lost: 2 },
    ])
    expect(await exportLostContacts(api.pod, hal.viewer)).toBe(
      [
        'address,name,you_shared,they_shared',
        "'=ulf@lost.example,,true,false",
        'una@lost.example,,true,false',
        '',
      ].join('\r\n'),
    )
    await setRule('normal')
    await run()
    expect((await hal.get('/user/notices')).body).toEqual([])
  })
})

it('people are found by e-mail address, which is in the audit log without the address, by invitation and by inviter', async () => {
  const { kim } = await api.people('kim')
  const [{ id } = { id: 0 }] = await api.pod
    .db('invitations')
    .insert({ codeHash: Buffer.alloc(32, 7), createdBy: 'mod', expiresAt: new Date() })
    .returning('id')
  await User.query(api.pod.db).where({ username: 'kim' }).patch({ email: 'Kim@mail.example', invitationId: id })

  const { person: inviter } = mod
  const invitedBy = [id, 'MOD', inviter.address, inviter.guid].map((name) => `invited_by=${name}`)
  for (const filter of ['email=kim@MAIL.example', ...invitedBy]) {
    expect((await mod.get(`/people?${filter}`)).body).toMatchObject([{ guid: kim.guid }])
  }
  for (const name of ['adm', 'nobody', '0']) expect((await mod.get(`/people?invited_by=${name}`)).body).toEqual([])
  const entries = (await mod.get('/audit?action=people.email_search')).body
  expect([entries.length, JSON.stringify(entries).includes('mail.example')]).toEqual([1, false])
})

it('a cleared profile is empty and is sent; a note is for other moderators', async () => {
  const { ida } = await api.people('ida')
  await ida.editProfile({ firstName: 'Buy', bio: 'Watches', tags: ['watches'], imageUrl: '/uploads/images/x.png' })
  await api.pod.db('outbox').delete()

  expect((await mod.post(`/people/${ida.guid}/clear_profile`, { reason })).body).toMatchObject({ changed: true })

  expect((await ida.get('/user')).body).toMatchObject({ name: ida.address, bio: '', tags: [] })
  expect(await api.pod.db('outbox').pluck('data')).toEqual([{ record: 'profile', personId: ida.viewer.personId }])
  expect((await mod.post(`/people/${ida.guid}/clear_profile`, { reason })).body).toMatchObject({ changed: false })
  expect((await mod.get(`/audit?action=clear_profile&target=${ida.guid}`)).body).toHaveLength(1)
  expect((await mod.post(`/people/${ida.guid}/notes`, { text: ' ' })).body).toMatchObject({ reason: 'reason_needed' })
  expect((await mod.post(`/people/${ida.guid}/notes`, { text: 'Second time' })).body).toEqual({ changed: true })
  expect((await adm.get(`/people/${ida.guid}`)).body.notes).toMatchObject([
    { actor: { name: 'mod' }, text: 'Second time' },
  ])
  const [entry] = (await mod.get('/audit?action=person.noted')).body
  expect(JSON.stringify(entry)).not.toContain('Second time')
})
