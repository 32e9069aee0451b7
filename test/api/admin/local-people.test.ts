import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeDueAccounts, closingOperation, keepAccount } from '../../../src/domain/accounts/close-account.js'
import { signIn } from '../../../src/domain/accounts/sign-in.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { runOperation } from '../../../src/domain/operations/long-operations.js'
import { User } from '../../../src/persistence/models/user.js'
import type { Pod } from '../../../src/pod/pod.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let adm: StaffClient
beforeAll(async () => {
  api = await startSampleApiPod({ environment: { WRITE_LIMIT: '0', PODMIN_ACCOUNT: 'dan' } })
  mod = await makeStaff(api, 'mod', 'moderator')
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())

const reason = 'Spam'
const DAY_MS = 86_400_000

const close = (name: string, guid: string, body: object = {}, by = mod) =>
  by.post(`/people/${guid}/close`, { reason, confirm: name, ...body })

/** The pod so many days later. */
const podIn = (days: number): Pod => ({ ...api.pod, now: () => new Date(Date.now() + days * DAY_MS) })

async function runClosings(pod: Pod): Promise<void> {
  for (const { data } of await pod.db('outbox').where({ name: 'run-operation' }).select('data')) {
    await runOperation(pod, { data, finish: async () => {} }, closingOperation, new AbortController().signal)
  }
}

describe('23: an account that a moderator closes', () => {
  it('has no access, cannot be kept by its owner, and is as before after the undo', async () => {
    const { eve } = api
    expect((await close('dan', eve.guid)).body).toMatchObject({ code: 409, reason: 'confirmation_needed' })
    const before = Date.now()

    const { body } = await close('eve', eve.guid)

    expect(body).toMatchObject({ changed: true, action: { kind: 'close', undo: { possible: true } } })
    expect(new Date(body.close_at).getTime()).toBeGreaterThanOrEqual(before + 7 * DAY_MS)
    expect((await close('eve', eve.guid)).body).toEqual({ changed: false, close_at: body.close_at })
    expect((await eve.get('/user')).status).toBe(401)
    expect(await signIn(api.pod, 'eve', 'the password of eve')).toBeUndefined()
    expect((await api.alice.get(`/users/${eve.guid}`)).status).toBe(200)
    expect((await mod.get(`/people/${eve.guid}`)).body).toMatchObject({
      state: 'closing',
      restrictions: [{ kind: 'close', action_id: body.action.id, until: body.close_at }],
    })
    const { userId } = eve.viewer
    await expect(
      api.pod.db.transaction((transaction) => keepAccount(api.pod, transaction, userId, 'owner')),
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
