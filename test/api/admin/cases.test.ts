import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { deleteOldEvidence } from '../../../src/domain/moderation/cases.js'
import { addPost, showPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import type { ApiPerson } from '../../support/pods/api-pod.js'
import { aspectOf, publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let alice: ApiPerson
let bob: ApiPerson
let carol: ApiPerson
let mod: StaffClient
let other: StaffClient
let adm: StaffClient
/** A public post by Bob. */
let post: string
beforeAll(async () => {
  api = await startSampleApiPod({ environment: { PODMIN_ACCOUNT: 'alice', WRITE_LIMIT: '0' } })
  ;({ alice, bob, carol } = api)
  mod = await makeStaff(api, 'mod', 'moderator')
  other = await makeStaff(api, 'other-mod', 'moderator')
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())
beforeEach(async () => {
  post = await publish(api, bob, { text: 'Cheap watches', public: true })
})

const report = (by: ApiPerson, guid = post, reason = 'Spam') => by.post(`/posts/${guid}/report`, { reason })

async function caseOf(guid = post, by = mod) {
  const cases = await by.get('/cases?per_page=100')
  const found = cases.body.find(({ target }: { target: { guid: string } }) => target.guid === guid)
  return found && (await by.get(`/cases/${found.id}`)).body
}

const eventsOf = (one: { history: { event: string }[] }) => one.history.map(({ event }) => event)

describe('a case', () => {
  it('holds all reports of one post, each user once', async () => {
    expect([(await report(alice)).status, (await report(carol, post, 'Fraud')).status]).toEqual([204, 204])
    expect((await report(alice)).body).toMatchObject({ code: 409, reason: 'already_reported' })

    expect(await caseOf()).toMatchObject({
      state: 'open',
      target: { type: 'post', public: true, text: 'Cheap watches', deleted: null, author: { network_id: bob.address } },
      reports: [
        { reason: 'Spam', reporter: { guid: alice.guid } },
        { reason: 'Fraud', reporter: { guid: carol.guid } },
      ],
      report_count: 2,
      reporter_count: 2,
      history: [{ event: 'reported' }, { event: 'reported' }],
    })
    // Clients know the types of notifications of diaspora* only.
    expect((await mod.person.get('/notifications')).body).toEqual([])
  })

  it('keeps the text when the author deletes the post, and can be resolved then', async () => {
    await report(alice)
    await bob.delete(`/posts/${post}`)

    const { id, target, history } = await caseOf()
    expect(target).toMatchObject({ text: 'Cheap watches', deleted: 'author' })
    expect(history.map(({ event }: { event: string }) => event)).toEqual(['reported', 'target_deleted'])
    expect((await mod.post(`/cases/${id}/resolve`, { reason: 'Gone' })).body).toMatchObject({
      reason: 'bad_transition',
    })
    expect((await mod.post(`/cases/${id}/resolve`, { reason: 'Gone', without_action: true })).body).toMatchObject({
      changed: true,
      state: 'resolved',
    })
  })

  it('outlives the account of the author', async () => {
    const { hugo } = await api.people('hugo')
    const guid = await publish(api, hugo, { text: 'I leave', public: true })
    await report(alice, guid)
    await alice.post(`/users/${hugo.guid}/report`, { reason: 'Spam' })
    await closeUser(api.pod, 'hugo')

    expect((await caseOf(guid)).target).toMatchObject({ text: 'I leave', deleted: 'account_closed' })
    expect((await caseOf(hugo.guid)).target).toMatchObject({ type: 'person', deleted: 'account_closed' })
  })

  it('says by whom content is deleted that no user has reported, also below removed content', async () => {
    const write = async (text: string) => (await createComment(api.pod, carol.viewer, { postGuid: post, text })).guid
    const comments = [await write('Buy'), await write('Cheap')]
    const row = { targetType: 'comment', public: true, kind: 'filter', targetCreatedAt: new Date() }
    await api.pod.db('moderation_cases').insert(comments.map((targetGuid) => ({ ...row, targetGuid })))
    await carol.delete(`/posts/${post}/comments/${comments[0]}`)
    await mod.post(`/posts/${post}/remove`, { reason: 'Spam' })

    const [first, second] = [await caseOf(comments[0]), await caseOf(comments[1])]
    expect([first.target.deleted, eventsOf(first)]).toEqual(['author', ['target_deleted']])
    expect(second.target.deleted).toBe('moderator')
  })

  it('loses its text some time after its end, and is deleted after a year', async () => {
    await report(alice)
    const { id } = await caseOf()
    await mod.post(`/cases/${id}/dismiss`, { reason: 'Fine' })
    const later = (days: number) => ({ ...api.pod, now: () => new Date(Date.now() + days * 86_400_000) })
    const text = async () => (await mod.get(`/cases/${id}`)).body.target?.text

    await deleteOldEvidence(later(89))
    expect(await text()).toEqual(expect.any(String))
    await deleteOldEvidence(later(91))
    expect(await text()).toBeNull()
    await deleteOldEvidence(later(366))
    expect((await mod.get(`/cases/${id}`)).status).toBe(404)
  })

  it('is taken by one moderator at a time; another one can take it over with force', async () => {
    await report(alice)
    const { id } = await caseOf()

    const both = await Promise.all([mod.post(`/cases/${id}/take`), other.post(`/cases/${id}/take`)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const loser = both[0]?.status === 409 ? mod : other
    const winner = loser === mod ? 'other-mod' : 'mod'
    expect(both.find(({ status }) => status === 409)?.body).toMatchObject({
      reason: 'taken_by_other',
      taken_by: winner,
    })

    expect((await loser.post(`/cases/${id}/take`, { force: true })).body).toMatchObject({
      changed: true,
      id,
      state: 'taken',
    })
    expect((await loser.post(`/cases/${id}/take`)).body).toMatchObject({ changed: false, state: 'taken' })
    expect(eventsOf(await caseOf())).toEqual(['reported', 'taken', 'released', 'taken'])
    expect((await loser.post(`/cases/${id}/release`)).body).toMatchObject({
      changed: true,
      state: 'open',
      taken_by: null,
    })
  })

  it('is open again after a day without an entry', async () => {
    await report(alice)
    const { id } = await caseOf()
    await mod.post(`/cases/${id}/take`)
    await api.pod
      .db('moderation_cases')
      .where({ id })
      .update({ changedAt: new Date(Date.now() - 25 * 3_600_000) })

    expect(await caseOf()).toMatchObject({ state: 'open', taken_by: null })
  })

  it('is opened again by a report of another user, unless further reports are ignored', async () => {
    await report(alice)
    const { id } = await caseOf()
    expect((await mod.post(`/cases/${id}/dismiss`, { reason: 'Fine' })).body).toMatchObject({ state: 'dismissed' })
    await report(carol)
    expect(await caseOf()).toMatchObject({ state: 'open' })

    await mod.post(`/cases/${id}/dismiss`, { reason: 'Still fine', ignore_further: true })
    await report(api.dan)
    expect(await caseOf()).toMatchObject({ state: 'dismissed', report_count: 3 })
    expect((await mod.post(`/cases/${id}/reopen`)).body).toMatchObject({ code: 422, reason: 'reason_needed' })
    expect((await mod.post(`/cases/${id}/reopen`, { reason: 'New facts' })).body).toMatchObject({ state: 'open' })
  })

  it('whose further reports are ignored only counts them', async () => {
    await report(alice)
    const { id } = await caseOf()
    await mod.post(`/cases/${id}/dismiss`, { reason: 'Fine', ignore_further: true })
    const eventsOfCase = () =>
      api.pod
        .db('outbox')
        .where({ name: 'announce' })
        .whereRaw(`data->'cases' @> ?`, [`[${id}]`])
    expect(await eventsOfCase()).toHaveLength(2)
    await report(carol)

    expect(await caseOf()).toMatchObject({ state: 'dismissed', report_count: 2 })
    expect(await eventsOfCase()).toHaveLength(2)
  })

  it('stays taken for a day after an action that names it', async () => {
    await report(alice)
    const { id } = await caseOf()
    await mod.post(`/cases/${id}/take`)
    const changedAt = new Date(Date.now() - 25 * 3_600_000)
    await api.pod.db('moderation_cases').where({ id }).update({ changedAt })
    await mod.post(`/posts/${post}/hide`, { reason: 'Spam' })

    expect(await caseOf()).toMatchObject({ state: 'taken', taken_by: 'mod' })
  })

  it('has the text of a report that opens it again, although the first text was erased', async () => {
    await report(alice)
    const { id } = await caseOf()
    await mod.post(`/cases/${id}/dismiss`, { reason: 'Fine' })
    await api.pod.db('moderation_cases').where({ id }).update({ text: null })
    await report(carol)
    expect((await caseOf()).target.text).toBe('Cheap watches')

    await mod.post(`/cases/${id}/dismiss`, { reason: 'Fine', ignore_further: true })
    await api.pod.db('moderation_cases').where({ id }).update({ text: null })
    await report(api.dan)
    expect((await caseOf()).target.text).toBeNull()
  })

  it('of a filter without a text gets that of a report', async () => {
    const aspectIds = [await aspectOf(api, bob, 'Friends')]
    const secret = await publish(api, bob, { text: 'Secret watches', public: false, aspectIds })
    const target = { targetType: 'post', targetGuid: secret, public: false, targetCreatedAt: new Date() }
    await api.pod.db('moderation_cases').insert({ ...target, kind: 'filter' })
    await report(alice, secret)

    expect(await caseOf(secret)).toMatchObject({
      target: { text: 'Secret watches', author: { network_id: bob.address } },
    })
  })

  it('about a person has each reported profile, and only the last one once it was opened again', async () => {
    const { kim } = await api.people('kim')
    const reportKim = (by: ApiPerson) => by.post(`/users/${kim.guid}/report`, { reason: 'Spam' })
    const textAfter = async (bio: string, by: ApiPerson) => {
      await kim.patch('/user', { bio })
      expect((await reportKim(by)).status).toBe(204)
      return (await caseOf(kim.guid)).target.text
    }

    expect(await textAfter('Cheap watches', alice)).toContain('Cheap watches')
    expect(await textAfter('Cheap shoes', carol)).toMatch(/Cheap watches.*Cheap shoes/s)
    await mod.post(`/cases/${(await caseOf(kim.guid)).id}/dismiss`, { reason: 'Fine' })
    const text = await textAfter('Cheap hats', bob)
    expect([text.includes('Cheap hats'), text.includes('Cheap watches')]).toEqual([true, false])
  })

  it('refuses steps that its state does not allow', async () => {
    await report(alice)
    const { id } = await caseOf()

    expect((await mod.post(`/cases/${id}/release`)).body).toMatchObject({ code: 409, reason: 'bad_transition' })
    expect((await mod.post(`/cases/${id}/reopen`, { reason: 'x' })).body).toMatchObject({ reason: 'bad_transition' })
    const tooLong = { reason: 'x'.repeat(2_001) }
    expect((await mod.post(`/cases/${id}/resolve`, tooLong)).body).toMatchObject({
      code: 422,
      reason: 'reason_invalid',
    })
    await mod.post(`/cases/${id}/dismiss`, { reason: 'Fine' })
    expect((await mod.post(`/cases/${id}/take`)).body).toMatchObject({ code: 409, reason: 'bad_transition' })
    expect((await mod.post('/cases/999999/take')).body).toMatchObject({ code: 404, reason: 'case_not_found' })
  })

  it('is resolved, dismissed and reopened for a reason; it is taken and released without one', async () => {
    await report(alice)
    const { id } = await caseOf()
    const step = async (name: string, body: object = {}) => {
      const { status, body: answer } = await mod.post(`/cases/${id}/${name}`, body)
      return [status, answer.reason ?? answer.state]
    }

    for (const name of ['resolve', 'dismiss', 'reopen']) {
      for (const reason of [undefined, ' '])
        expect([name, ...(await step(name, { reason, without_action: true }))]).toEqual([name, 422, 'reason_needed'])
    }
    expect(await step('take')).toEqual([200, 'taken'])
    expect(await step('release')).toEqual([200, 'open'])
    expect(await step('resolve', { reason: 'Gone', without_action: true })).toEqual([200, 'resolved'])
    expect(await step('reopen', { reason: 'Back' })).toEqual([200, 'open'])
    expect(await step('dismiss', { reason: 'An opinion' })).toEqual([200, 'dismissed'])
    expect((await mod.get(`/audit?target=${post}`)).body).toMatchObject([
      { action: 'case.dismissed', reason: 'An opinion' },
      { action: 'case.reopened', reason: 'Back' },
      { action: 'case.resolved', reason: 'Gone' },
      { action: 'case.released', reason: null },
      { action: 'case.taken', reason: null },
    ])
  })

  it('has notes; notes and all other steps are in the audit log', async () => {
    await report(alice)
    const { id } = await caseOf()

    for (const text of [' ', 'x'.repeat(2_001)]) {
      expect((await mod.post(`/cases/${id}/notes`, { text })).body).toMatchObject({ code: 422, field: 'text' })
    }
    await mod.post(`/cases/${id}/notes`, { text: 'Known for watches' })
    await mod.post(`/cases/${id}/take`)

    expect((await caseOf()).history.slice(1)).toMatchObject([
      { event: 'noted', text: 'Known for watches', actor: 'mod' },
      { event: 'taken', actor: 'mod' },
    ])
    expect((await mod.get(`/audit?target=${post}`)).body).toMatchObject([
      { action: 'case.taken', case_id: id },
      { action: 'case.noted', case_id: id },
    ])
  })

  it('about a moderator does not exist for this moderator', async () => {
    const guid = await publish(api, mod.person, { text: 'My opinion', public: true })
    await report(alice, guid)
    const { id } = await caseOf(guid, adm)
    const comment = await createComment(api.pod, mod.person.viewer, { postGuid: post, text: 'Mine too' })
    await alice.post(`/posts/${post}/comments/${comment.guid}/report`, { reason: 'Spam' })

    expect(await caseOf(guid, mod)).toBeUndefined()
    expect((await mod.get(`/cases/${id}`)).body).toMatchObject({ code: 404, reason: 'case_not_found' })
    expect((await mod.post(`/cases/${id}/dismiss`)).status).toBe(404)
    for (const path of [`/posts/${guid}`, `/comments/${comment.guid}`]) {
      const shownCases = await Promise.all([mod, adm].map(async (by) => (await by.get(path)).body.case_id))
      expect([path, ...shownCases]).toEqual([path, null, expect.any(Number)])
    }
    const counts = await Promise.all([mod, adm].map((by) => by.get('/overview')))
    expect(counts[1]?.body.cases.open - counts[0]?.body.cases.open).toBe(2)
    await adm.post(`/cases/${id}/take`)
    const hidden = await adm.post(`/posts/${guid}/hide`, { reason: 'x', case_id: id })
    const aboutCase = async (by: StaffClient) => [
      (await by.get(`/audit?target=${guid}`)).body.map(({ action }: { action: string }) => action),
      (await by.get(`/actions?target=${guid}`)).body.map(({ id: action }: { id: number }) => action),
    ]
    expect(await aboutCase(mod)).toEqual([[], []])
    expect(await aboutCase(adm)).toEqual([['hide', 'case.taken'], [hidden.body.action.id]])
  })
})

describe('the overview', () => {
  it('counts sign-ups that need approval, with the time of the oldest', async () => {
    expect((await mod.get('/overview')).body.sign_ups).toEqual({ pending: 0, oldest_at: null })
    const createdAt = '2026-01-02T03:04:05.000Z'
    const signUp = { passwordHash: 'x', language: 'en', reason: '', network: '192.0.2.0/24', rules: [] }
    await api.pod.db('pending_sign_ups').insert([
      { ...signUp, username: 'una', needsConfirmation: false, needsApproval: true, createdAt, expiresAt: '2100-01-01' },
      { ...signUp, username: 'vera', needsConfirmation: true, needsApproval: false, expiresAt: '2100-01-01' },
    ])

    expect((await mod.get('/overview')).body.sign_ups).toEqual({ pending: 1, oldest_at: createdAt })
    await api.pod.db('pending_sign_ups').delete()
  })
})

describe('If-Match', () => {
  const send = (method: 'POST' | 'PATCH' | 'DELETE', path: string, tag: string, body?: object) =>
    api.call({
      ...{ method, path: `/api/admin/v1${path}`, token: mod.token, headers: { 'if-match': tag } },
      ...(body !== undefined && { body }),
    })
  const tagOf = async (path: string) => String((await mod.get(path)).headers['etag'])

  it('refuses a change of a case that was changed in the meantime, after the refusals of the state', async () => {
    await report(alice)
    const { id } = await caseOf()
    const path = `/cases/${id}`
    const tag = await tagOf(path)
    expect(await tagOf(path)).toBe(tag)
    await other.post(`${path}/notes`, { text: 'Known' })

    expect(await send('POST', `${path}/take`, tag)).toMatchObject({
      status: 412,
      body: { code: 412, reason: 'changed_meanwhile' },
    })
    expect(await caseOf()).toMatchObject({ state: 'open', taken_by: null })
    expect((await send('POST', `${path}/release`, tag)).body).toMatchObject({ code: 409, reason: 'bad_transition' })
    expect((await send('POST', '/cases/999999/take', tag)).status).toBe(404)

    const now = await tagOf(path)
    const both = await Promise.all([1, 2].map((note) => send('POST', `${path}/notes`, now, { text: `Note ${note}` })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
    expect((await send('POST', `${path}/take`, `"other", ${await tagOf(path)}`)).status).toBe(200)
    expect((await send('POST', `${path}/release`, '*')).status).toBe(200)
  })

  it('is checked for every object that has a GET of its own', async () => {
    const reason = 'Spam'
    const { noisy } = await api.people('noisy')
    const rule = (await mod.post('/pod_rules', { domain: 'if-match.example', state: 'limited', reason })).body
    const { filter } = (await mod.post('/filters', { kind: 'word', value: 'casino', action: 'count', reason })).body
    const changes = [
      ['POST', `/posts/${post}`, '/hide', { reason }],
      ['POST', `/people/${noisy?.guid}`, '/silence', { reason }],
      ['PATCH', `/people/${noisy?.guid}`, '', { reports_muted: true, reason }],
      ['PATCH', `/filters/${filter.id}`, '', { state: 'active', reason }],
      ['DELETE', `/filters/${filter.id}`, '?reason=Over', undefined],
      ['PATCH', `/pod_rules/${rule.id}`, '', { public_comment: 'Spam', reason }],
      ['DELETE', `/pod_rules/${rule.id}`, '?reason=Over', undefined],
    ] as const
    for (const [method, path, below, body] of changes) {
      const tag = await tagOf(path)
      const stale = await send(method, `${path}${below}`, '"another"', body)
      expect([path, below, stale.status, stale.body.reason]).toEqual([path, below, 412, 'changed_meanwhile'])
      expect([path, below, await tagOf(path)]).toEqual([path, below, tag])
      expect((await send(method, `${path}${below}`, tag, body)).status).toBe(200)
    }
  })
})

describe('forwarding', () => {
  it('answers with a text without reporter and private content, and sends it to a contact of the podmin account only', async () => {
    const rita = await addRemotePerson(api.pod, 'rita@r.example')
    const remote = await addPost(api.pod, rita, { text: 'Cheap watches' })
    await report(carol, remote.guid, 'I, Carol, am harassed')
    const { id } = await caseOf(remote.guid)
    const forward = (body: object = {}) => mod.post(`/cases/${id}/forward`, body)
    const plain = (await forward()).body
    expect(plain).toMatchObject({ sent: false, ways: { podmin: null, conversation: false } })
    expect(plain.text).toContain(`https://r.example/posts/${remote.guid}`)
    expect(plain.text).not.toMatch(/carol/i)
    expect(plain.ways.mailto).toMatch(/^mailto:\?subject=Report/)
    const conversations = () => api.pod.db('conversations').count('* as count').first()
    const before = await conversations()
    await api.pod.db('pods').where({ host: 'r.example' }).update({ adminAccount: 'podmin' })
    await addRemotePerson(api.pod, 'podmin@r.example')
    expect((await forward({ via: 'conversation' })).body).toMatchObject({ code: 409, reason: 'no_contact' })
    expect([await conversations(), (await caseOf(remote.guid)).history.length]).toEqual([before, 1])

    const podmin = await api.pod.db('people').where({ address: 'podmin@r.example' }).first('id')
    const user = await api.pod.db('users').where({ username: 'alice' }).first('id')
    await api.pod.db('contacts').insert({ userId: user.id, personId: podmin.id, sharing: true, receiving: false })
    const sent = (await forward({ via: 'conversation', include_reason: true, reason: 'Their user' })).body
    expect(sent).toMatchObject({ sent: true, ways: { podmin: 'podmin@r.example', conversation: true } })
    expect(sent.text).toContain('Reason: I, Carol, am harassed')
    expect(eventsOf(await caseOf(remote.guid))).toEqual(['reported', 'forwarded'])
    const message = await api.pod.db('messages').orderBy('id', 'desc').first()
    expect(message.text).toBe(sent.text)
    expect((await mod.get(`/audit?action=case.forwarded`)).body).toMatchObject([
      { after: { to: 'podmin@r.example' }, reason: 'Their user' },
    ])
  })

  it('is for people of other pods, and has no link to private content', async () => {
    await report(alice)
    const { id } = await caseOf()
    expect((await mod.post(`/cases/${id}/forward`, {})).body).toMatchObject({ code: 422, reason: 'not_remote' })
    const rita = await addRemotePerson(api.pod, 'rita2@r.example')
    const hidden = await addPost(api.pod, rita, { text: 'A secret', public: false })
    const viewer = await api.pod.db('users').where({ username: 'alice' }).first('id')
    await showPost(api.pod, hidden, { userId: viewer.id })
    await report(alice, hidden.guid)
    const found = await caseOf(hidden.guid)
    const { body } = await mod.post(`/cases/${found.id}/forward`, {})
    expect(body.text).toContain('a private post by rita2@r.example')
    expect(JSON.stringify(body)).not.toMatch(new RegExp(`${hidden.guid}|secret`))
  })
})

describe('the list of cases', () => {
  it('has open cases before taken ones, more reporters first, then the oldest; it is paged and filtered', async () => {
    await api.pod.db('moderation_cases').delete()
    const guids: string[] = []
    for (const text of ['one', 'two', 'three', 'four']) {
      const guid = await publish(api, bob, { text, public: true })
      await report(alice, guid)
      guids.push(guid)
    }
    await report(carol, guids[2])
    const taken = await caseOf(guids[0])
    await mod.post(`/cases/${taken.id}/take`)

    const first = await mod.get('/cases?per_page=3')
    const second = await mod.get(first.links.next ?? '')
    const order = [...first.body, ...second.body].map(({ target }) => guids.indexOf(target.guid))
    expect(order).toEqual([2, 1, 3, 0])
    expect((await mod.get(second.links.previous ?? '')).body).toEqual(first.body)

    const indexesOn = async (path: string | undefined) => {
      const { body, links } = await mod.get(path ?? '')
      return { indexes: body.map(({ target }: { target: { guid: string } }) => guids.indexOf(target.guid)), links }
    }
    const top = await indexesOn('/cases?per_page=1')
    const { id } = await caseOf(guids[2])
    await mod.post(`/cases/${id}/take`)
    const next = await indexesOn(top.links.next)
    expect([top.indexes, next.indexes]).toEqual([[2], [1]])
    expect((await indexesOn((await indexesOn(next.links.next)).links.previous)).indexes).toEqual([1])
    await mod.post(`/cases/${id}/release`)
    for (const [query, count] of [
      ['state=taken', 1],
      ['state=taken&state=open', 4],
      ['type=comment', 0],
      [`author=${bob.address}`, 4],
      ['local=false', 0],
      ['taken_by=mod', 1],
      [`author=${bob.guid}`, 4],
      ['author=bob', 4],
      [`taken_by=${mod.person.guid}`, 1],
      ['taken_by=adm', 0],
      [`reporter=${carol.guid}`, 1],
      [`reporter=${carol.address}`, 1],
      ['reporter=carol', 1],
      ['reporter=dan', 0],
      ['pod=pod.example', 4],
    ] as const) {
      expect([query, (await mod.get(`/cases?${query}`)).body.length]).toEqual([query, count])
    }
  })

  it('has a filled first page, and a way back from its end, although cases of other pages were closed', async () => {
    await api.pod.db('moderation_cases').delete()
    const guids: string[] = []
    for (const text of ['one', 'two', 'three', 'four']) {
      guids.push(await publish(api, bob, { text, public: true }))
      await report(alice, guids.at(-1))
    }
    const dismiss = async (...indexes: number[]) => {
      for (const index of indexes) {
        const { id } = await caseOf(guids[index])
        expect((await mod.post(`/cases/${id}/dismiss`, { reason: 'No rule is broken.' })).status).toBe(200)
      }
    }
    const listed = ({ body }: { body: { target: { guid: string } }[] }) =>
      body.map(({ target }) => guids.indexOf(target.guid))

    const first = await mod.get('/cases?state=open&per_page=2')
    const second = await mod.get(first.links.next ?? '')
    expect([listed(first), listed(second)]).toEqual([
      [0, 1],
      [2, 3],
    ])
    await dismiss(0)
    expect(listed(await mod.get(second.links.previous ?? ''))).toEqual([1, 2])
    await dismiss(2, 3)
    const end = await mod.get(first.links.next ?? '')
    expect([listed(end), listed(await mod.get(end.links.previous ?? ''))]).toEqual([[], [1]])
  })
})

describe('private content', () => {
  it('is shown in the single case only, and reading it is recorded', async () => {
    const text = 'Between you and me'
    const aspectIds = [await aspectOf(api, bob, 'Friends')]
    const secret = await publish(api, bob, { text, public: false, aspectIds })
    expect((await report(alice, secret)).status).toBe(204)
    const { body: cases } = await mod.get('/cases?type=post')

    expect(JSON.stringify(cases)).not.toContain(text)
    const { id, target } = await caseOf(secret)
    expect(target).toMatchObject({ public: false, text, url: null })
    const audit = await mod.get(`/audit?action=case.private_read&target=${secret}`)
    expect(audit.body).toMatchObject([{ actor: { name: 'mod' }, case_id: id }])
    expect(JSON.stringify(audit.body)).not.toContain(text)
    for (const format of ['csv', 'ndjson']) {
      const url = `/api/admin/v1/audit/export?format=${format}`
      const exported = await api.app.inject({ url, headers: { authorization: `Bearer ${adm.token}` } })
      expect([exported.body.includes(secret), exported.body.includes(text)]).toEqual([true, false])
    }
  })
})

describe('other targets', () => {
  it('are comments, people, and messages of own conversations', async () => {
    const comment = await createComment(api.pod, carol.viewer, { postGuid: post, text: 'Buy them' })
    const { body: conversation } = await bob.post('/conversations', {
      subject: 'Hi',
      body: 'A threat',
      recipients: [alice.guid],
    })
    const [message] = (await alice.get(`/conversations/${conversation.guid}/messages`)).body
    const place = `/conversations/${conversation.guid}/messages`

    expect((await alice.post(`/posts/${post}/comments/${comment.guid}/report`, { reason: 'Spam' })).status).toBe(204)
    expect((await alice.post(`/users/${carol.guid}/report`, { reason: 'A robot' })).status).toBe(204)
    expect((await alice.post(`/users/${carol.guid}/report`, { reason: 'A robot' })).status).toBe(409)
    expect((await alice.post(`/users/${alice.guid}/report`, { reason: 'Me' })).body).toMatchObject({
      reason: 'own_person',
    })
    expect((await alice.post(`${place}/${message.guid}/report`, { reason: 'Threat' })).status).toBe(204)
    expect((await bob.post(`${place}/${message.guid}/report`, { reason: 'Mine' })).status).toBe(422)
    expect((await carol.post(`${place}/${message.guid}/report`, { reason: 'Not mine' })).body).toMatchObject({
      code: 404,
    })
    expect((await alice.post(`${place}/${post}/report`, { reason: 'None' })).body).toMatchObject({
      reason: 'message_not_found',
    })

    expect(await caseOf(comment.guid)).toMatchObject({ target: { type: 'comment', parent: post, text: 'Buy them' } })
    expect(await caseOf(carol.guid)).toMatchObject({ target: { type: 'person' } })
    expect(await caseOf(message.guid)).toMatchObject({ target: { type: 'message', public: false, text: 'A threat' } })
  })
})

describe('the reporter', () => {
  it('gets the own reports with their state', async () => {
    const { ivy } = await api.people('ivy')
    const second = await publish(api, bob, { text: 'More watches', public: true })
    await report(ivy)
    await report(ivy, second)
    const { id } = await caseOf()
    await mod.post(`/cases/${id}/dismiss`, { reason: 'Fine' })

    expect((await ivy.get('/user/reports')).body).toEqual([
      { target: { type: 'post', guid: second }, created_at: expect.any(String), state: 'open' },
      { target: { type: 'post', guid: post }, created_at: expect.any(String), state: 'closed' },
    ])
  })

  it('can make thirty reports an hour', async () => {
    const { jan } = await api.people('jan')
    await report(alice)
    const caseId = (await caseOf()).id
    const row = { userId: jan.viewer.userId, reason: 'Spam' }
    const old = { ...row, createdAt: new Date(Date.now() - 3_700_000) }
    await api.pod.db('reports').insert([...Array.from({ length: 29 }, () => row), old, old])

    expect((await report(jan)).status).toBe(204)
    const answer = await jan.post(`/users/${carol.guid}/report`, { reason: 'Spam' })
    expect(answer).toMatchObject({ status: 429, body: { reason: 'rate_limited' } })
    expect(answer.headers['retry-after']).toBe('3600')
    expect(await api.pod.db('reports').where({ caseId, userId: jan.viewer.userId })).toHaveLength(1)
  })
})
