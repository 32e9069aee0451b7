import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { endPodRules, setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { restrictMissedPeople, restrictTaskHandlers } from '../../../src/domain/moderation/pods/restrict-pod-people.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { runBackgroundTask } from '../../../src/domain/operations/background-tasks.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import { takeDueDeliveries } from '../../../src/persistence/outbound/due-deliveries.js'
import { leasePods } from '../../../src/persistence/outbound/pod-leases.js'
import { reasonOf } from '../../support/assertions/refusal-reasons.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { crashInChunk, finishBackgroundTasks } from '../../support/pods/finish-background-tasks.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
beforeAll(async () => {
  api = await startSampleApiPod()
  mod = await makeStaff(api, 'mod', 'moderator')
})
afterAll(() => api.close())
beforeEach(async () => {
  for (const table of ['pod_rules', 'deliveries', 'outbound_messages']) await api.pod.db(table).delete()
  await api.pod.db('pods').update({ blockedAt: null, limitedAt: null })
})

const reason = 'Spam'
const set = (domain: string, state: string, more: object = {}) =>
  mod.post('/pod_rules', { domain, state, reason, confirm: domain, ...more })
const isBlocked = (host: string, port = 443) => RemotePod.isBlocked(api.pod.db, { host, port })

async function podAt(host: string, row: object = {}): Promise<number> {
  const [{ id }] = await api.pod
    .db('pods')
    .insert({ host, ...row })
    .onConflict(['host', 'port'])
    .merge(['host'])
    .returning('id')
  return id
}

async function delivery(podId: number, { verb = 'create', age = 0 } = {}): Promise<number> {
  const { db } = api.pod
  const message = {
    record: 'post',
    guid: newGuid(),
    verb,
    senderId: api.bob.viewer.personId,
    public: true,
    entity: '<x/>',
  }
  const [{ id: messageId }] = await db('outbound_messages').insert(message).returning('id')
  const createdAt = new Date(Date.now() - age * 86_400_000)
  const [{ id }] = await db('deliveries').insert({ messageId, podId, createdAt }).returning('id')
  return id
}

const stateOf = async (id: number) => await api.pod.db('deliveries').where({ id }).first('state', 'last_fault')

describe('a rule', () => {
  it('is for the domain and its subdomains in any spelling, and the longest domain counts', async () => {
    const made = await set('*.R.Example.', 'blocked')

    expect([made.status, made.body]).toMatchObject([
      201,
      {
        domain: 'r.example',
        subdomains: true,
        port: null,
        state: 'blocked',
        changed: true,
        action: { kind: 'pod_rule' },
      },
    ])
    expect(
      await Promise.all(['r.example', 's.r.example', 'www.r.example', 'xr.example'].map((host) => isBlocked(host))),
    ).toEqual([true, true, true, false])
    expect((await set('s.r.example', 'normal')).status).toBe(201)
    expect([await isBlocked('s.r.example'), await isBlocked('t.s.r.example'), await isBlocked('r.example')]).toEqual([
      false,
      false,
      true,
    ])
    expect((await set('bücher.example', 'normal')).body).toMatchObject({ domain: 'xn--bcher-kva.example' })
  })

  it('can be exact or for one port, and the rule with the port counts', async () => {
    await set('q.example', 'blocked', { subdomains: false })
    await set('q.example', 'normal', { port: 3_000 })

    expect([await isBlocked('q.example'), await isBlocked('a.q.example'), await isBlocked('q.example', 3_000)]).toEqual(
      [true, false, false],
    )
  })

  it('holds for a pod that becomes known later, and for known ones immediately', async () => {
    const known = await podAt('early.later.example')
    await set('later.example', 'blocked')
    const met = await podAt('new.later.example')

    const pods = await api.pod.db('pods').whereIn('id', [known, met])
    expect(pods.map(({ blockedAt }) => blockedAt)).toEqual([expect.any(Date), expect.any(Date)])
    const { body: rules } = await mod.get('/pod_rules')
    expect(rules).toMatchObject([{ domain: 'later.example', pods_met: 2, reason, created_by: 'mod' }])
    await mod.call('DELETE', `/pod_rules/${rules[0].id}?reason=over`)
    const freed = await api.pod.db('pods').whereIn('id', [known, met])
    expect(freed.map(({ blockedAt }) => blockedAt)).toEqual([null, null])
  })

  it('is refused for this pod, for a domain above it, for public suffixes and for names of no host', async () => {
    const own = new URL(api.pod.config.url).hostname
    for (const [domain, refusal] of [
      [own, 'own_pod'],
      [`${own}:443`, 'own_pod'],
      ['q.example:99999', 'domain_invalid'],
      ['com', 'too_broad'],
      ['co.uk', 'too_broad'],
      ['*.github.io', 'too_broad'],
      ['intranet', 'too_broad'],
      ['bad host.example', 'domain_invalid'],
      ['https://bad.example/', 'domain_invalid'],
    ] as const) {
      expect([domain, (await set(domain, 'blocked')).body.reason]).toEqual([domain, refusal])
    }
    const below = { ...api.pod, config: { ...api.pod.config, url: 'https://social.own.example' } }
    for (const domain of ['own.example', 'social.own.example', '*.own.example']) {
      const refused = setPodRule(below, COMMAND_ACTOR, { domain, state: 'blocked' }, { reason, confirm: domain })
      expect([domain, await reasonOf(refused)]).toEqual([domain, 'own_pod'])
    }
    expect((await set('localhost', 'blocked')).body).toMatchObject({ domain: 'localhost' })
    expect((await set('p.example:3000', 'limited')).body).toMatchObject({ domain: 'p.example', port: 3000 })
    expect((await mod.post('/pod_rules', { domain: 'q.example', state: 'blocked' })).body.reason).toBe('reason_needed')
  })

  it('needs the domain as confirmation to end relations, and changes nothing without', async () => {
    const quin = await addRemotePerson(api.pod, 'quin@kin.example')
    await api.pod
      .db('contacts')
      .insert({ userId: api.bob.viewer.userId, personId: quin.id, sharing: true, receiving: true })

    const refused = await set('kin.example', 'blocked', { confirm: 'other.example' })

    expect(refused.body).toMatchObject({
      code: 409,
      reason: 'confirmation_needed',
      preview: { contacts: 1, people: 1 },
    })
    expect((await mod.get('/pod_rules')).body).toEqual([])
    expect((await set('kin.example', 'normal', { confirm: undefined })).status).toBe(201)
    expect((await set('kin.example', 'blocked')).body).toMatchObject({ state: 'blocked', changed: true })
  })

  it('needs a confirmation where the end of an exception ends relations by a wider block', async () => {
    const sam = await addRemotePerson(api.pod, 'sam@s.wide.example')
    await set('wide.example', 'blocked')
    const { body: exception } = await set('s.wide.example', 'limited')
    await api.pod.db('contacts').insert({ userId: api.bob.viewer.userId, personId: sam.id, sharing: true })
    const needed = { code: 409, reason: 'confirmation_needed', preview: { domain: 's.wide.example', contacts: 1 } }
    const path = `/pod_rules/${exception.id}`

    expect((await mod.call('DELETE', path, { reason })).body).toMatchObject(needed)
    expect(await isBlocked('s.wide.example')).toBe(false)
    expect((await mod.call('PATCH', path, { reason, public_comment: 'Ads' })).body).toMatchObject({ changed: true })
    expect((await mod.call('DELETE', path, { reason, confirm: 's.wide.example' })).body).toMatchObject({
      changed: true,
    })
    expect(await isBlocked('s.wide.example')).toBe(true)

    await api.pod.db('pod_rules').where({ domain: 'wide.example' }).update({ domain: 'example', state: 'normal' })
    const { body: wider } = await set('wide.example', 'normal')
    await api.pod.db('pod_rules').where({ domain: 'example' }).update({ state: 'blocked' })
    const exact = { reason, subdomains: false }
    expect((await mod.call('PATCH', `/pod_rules/${wider.id}`, exact)).body).toMatchObject({
      ...needed,
      preview: { domain: 'wide.example', contacts: 1 },
    })
    const confirmed = { ...exact, confirm: 'wide.example' }
    expect((await mod.call('PATCH', `/pod_rules/${wider.id}`, confirmed)).body).toMatchObject({ changed: true })
  })

  it('is recorded once, when it is made, changed and deleted', async () => {
    const { body: made } = await set('log.example', 'normal', { public_comment: 'Ads' })
    expect((await set('log.example', 'normal')).body).toMatchObject({ changed: false, public_comment: 'Ads' })
    await mod.call('PATCH', `/pod_rules/${made.id}`, { state: 'blocked', reason: 'More ads', confirm: 'log.example' })
    await mod.call('DELETE', `/pod_rules/${made.id}?reason=over`)

    expect((await mod.get('/audit?target=log.example')).body).toMatchObject([
      { action: 'pod_rule.delete', reason: 'over', before: { state: 'blocked' } },
      { action: 'pod_rule', reason: 'More ads', before: { state: 'normal' }, after: { state: 'blocked' } },
      { action: 'pod_rule', reason, after: { state: 'normal', public_comment: 'Ads' }, via: 'api' },
    ])
    expect((await mod.call('DELETE', `/pod_rules/${made.id}?reason=over`)).body).toMatchObject({
      reason: 'rule_not_found',
    })
  })

  it('ends at its time, by an action of the system', async () => {
    expect((await set('brief.example', 'blocked', { until: '2020-01-01' })).body.reason).toBe('until_invalid')
    const podId = await podAt('brief.example')
    await set('brief.example', 'blocked', { until: new Date(Date.now() + 3_600_000).toISOString() })
    await api.pod.db('pod_rules').update({ until: new Date(Date.now() - 1_000) })

    expect(await isBlocked('brief.example')).toBe(false)
    expect(await endPodRules(api.pod)).toBe(1)
    expect(await api.pod.db('pods').where({ id: podId }).first()).toMatchObject({ blockedAt: null })
    expect((await mod.get('/audit?target=brief.example')).body[0]).toMatchObject({
      actor: { name: 'system' },
      via: 'system',
    })
  })
})

describe('waiting deliveries', () => {
  it('to a pod that is blocked are given up, except for retractions, and revived within 14 days', async () => {
    const podId = await podAt('r.example')
    const [young, old, retraction] = [
      await delivery(podId, { age: 13 }),
      await delivery(podId, { age: 15 }),
      await delivery(podId, { verb: 'retract' }),
    ]
    const { body: rule } = await set('r.example', 'blocked')

    expect([await stateOf(young), await stateOf(retraction)]).toEqual([
      { state: 'dead', lastFault: 'pod_blocked' },
      { state: 'waiting', lastFault: null },
    ])
    await mod.call('DELETE', `/pod_rules/${rule.id}?reason=over`)
    expect([(await stateOf(young)).state, (await stateOf(old)).state]).toEqual(['waiting', 'dead'])
  })
})

describe('the preview', () => {
  it('counts pods, people, pairs of relations and contents by pod and by address', async () => {
    const { db } = api.pod
    const people = await Promise.all(['a', 'b'].map((name) => addRemotePerson(api.pod, `${name}@many.example`)))
    const elsewhere = await addRemotePerson(api.pod, 'c@sub.many.example')
    await db('people')
      .where({ id: elsewhere.id })
      .update({ podId: await podAt('host.example') })
    const users = [api.alice, api.bob, api.carol]
    for (const { viewer } of users) {
      for (const { id } of [...people, elsewhere]) {
        await db('contacts').insert({ userId: viewer.userId, personId: id, sharing: true, receiving: true })
      }
    }
    if (people[0] !== undefined) await addPost(api.pod, people[0], { public: true, text: 'Hi' })
    await delivery(await podAt('many.example'))

    expect((await mod.post('/pod_rules/preview', { domain: 'many.example' })).body).toMatchObject({
      people: 3,
      local_users: 3,
      local_followers: 9,
      remote_followers: 9,
      contacts: 9,
      posts: 1,
      comments: 0,
      deliveries_waiting: 1,
      pods: expect.arrayContaining([{ host: 'many.example', people: 2 }]),
    })
    expect((await mod.get('/pod_rules')).body).toEqual([])
  })
})

describe('the export', () => {
  it('has the columns of Mastodon, by domain, without exceptions', async () => {
    await set('b.example', 'blocked', { public_comment: 'Spam, "ads"' })
    await set('a.example', 'blocked', { obfuscate: true })
    await set('ok.b.example', 'normal')

    const answer = await api.app.inject({
      url: '/api/admin/v1/pod_rules/export',
      headers: { authorization: `Bearer ${mod.token}` },
    })

    expect(answer.body).toBe(
      '#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate\r\n' +
        'a.example,suspend,false,false,,true\r\n' +
        'b.example,suspend,false,false,"Spam, ""ads""",false\r\n',
    )
  })
})

describe('pods', () => {
  it('are listed by host, state and status, and shown with the rules for their host', async () => {
    await podAt('a.list.example', { status: 'no_errors', software: 'diaspora' })
    await podAt('b.list.example', { port: 3_000, failures: 3 })
    await addRemotePerson(api.pod, 'quin@c.list.example')
    await set('list.example', 'blocked')
    await set('a.list.example', 'normal')

    const hosts = async (query: string) =>
      (await mod.get(`/pods?${query}`)).body.map(({ host }: { host: string }) => host)
    expect(await hosts('q=list.example')).toEqual(['a.list.example', 'b.list.example:3000', 'c.list.example'])
    expect(await hosts('q=list.example&state=blocked')).toEqual(['b.list.example:3000', 'c.list.example'])
    expect(await hosts('q=list.example&status=no_errors')).toEqual(['a.list.example'])
    expect(await hosts('q=list.example&sort=failures&per_page=1')).toEqual(['b.list.example:3000'])
    expect(await hosts('q=list.example&sort=people&per_page=1')).toEqual(['c.list.example'])
    expect((await mod.get('/pods/a.list.example')).body).toMatchObject({
      state: 'unproven',
      software: 'diaspora',
      rules: [{ domain: 'a.list.example' }, { domain: 'list.example', pods_met: 3 }],
    })
    expect((await mod.get('/pods/nowhere.example')).body).toMatchObject({ code: 404, reason: 'pod_not_found' })
  })

  it('have their last errors, each failed check and delivery with its time', async () => {
    const podId = await podAt('broken.example')
    const noName = { status: 'dns_failed', lastError: 'no such name' }
    await api.pod
      .db('pods')
      .where({ id: podId })
      .update({ ...noName, checkedAt: new Date(1_000) })
    await api.pod
      .db('pods')
      .where({ id: podId })
      .update({ ...noName, checkedAt: new Date(2_000) })
    const refused = { status: 'http_failed', lastError: 'x'.repeat(1_000), failures: 1 }
    await api.pod.db('pods').where({ id: podId }).update(refused)

    const at = expect.any(String)
    expect((await mod.get('/pods/broken.example')).body.errors).toEqual([
      { at, status: 'http_failed', error: 'x'.repeat(500) },
      { at, status: 'dns_failed', error: 'no such name' },
      { at, status: 'dns_failed', error: 'no such name' },
    ])
  })

  it('are paused by admins: deliveries wait without attempts, in order, until the pause ends', async () => {
    const adm = await makeStaff(api, 'adm', 'admin')
    const podId = await podAt('slow.example', { lastSuccessAt: new Date() })
    const ids = [await delivery(podId), await delivery(podId)]
    const owner = '00000000-0000-4000-8000-000000000000'
    const lease = () => leasePods(api.pod.db, [{ podId, leaseId: owner, leaseMs: 1, onlyProven: false }])

    expect((await mod.post('/pods/slow.example/pause', { reason })).status).toBe(403)
    const inMonths = new Date(Date.now() + 15 * 86_400_000).toISOString()
    expect((await adm.post('/pods/slow.example/pause', { reason, until: inMonths })).body.reason).toBe('until_invalid')
    expect((await adm.post('/pods/slow.example/pause', { reason })).body).toMatchObject({
      changed: true,
      state: 'paused',
      waiting: 2,
      paused_until: expect.any(String),
    })
    expect((await adm.post('/pods/slow.example/pause', { reason })).body).toMatchObject({ changed: false })
    expect(await lease()).toEqual(new Map())
    expect((await mod.get('/pods?state=paused')).body).toHaveLength(1)

    expect((await adm.post('/pods/slow.example/resume', { reason })).body).toMatchObject({
      changed: true,
      state: 'proven',
      failures: 0,
    })
    expect((await adm.post('/pods/slow.example/resume', { reason })).body).toMatchObject({ changed: false })
    expect((await lease()).get(podId)).toMatchObject({ isLeased: true })
    const due = await takeDueDeliveries(api.pod.db, [{ podId, limit: 10 }])
    expect(due.map(({ id }) => id)).toEqual(ids)
    expect((await adm.get('/audit?action=pod.pause&action=pod.resume')).body).toHaveLength(2)
  })

  it('are changed with the version of their page although deliveries are added meanwhile, and not after a decision', async () => {
    const adm = await makeStaff(api, 'adm', 'admin')
    const podId = await podAt('busy.example', { port: 8443 })
    const path = '/pods/busy.example:8443'
    const change = (action: string, tag: string) =>
      api.call({
        ...{ method: 'POST', path: `/api/admin/v1${path}/${action}`, token: adm.token, body: { reason } },
        headers: { 'if-match': tag },
      })
    const tagNow = async () => String((await mod.get(path)).headers['etag'])
    const tag = await tagNow()
    await delivery(podId)
    expect(await tagNow()).not.toBe(tag)

    expect((await change('pause', tag)).status).toBe(200)
    expect((await change('resume', tag)).body).toMatchObject({ code: 412, reason: 'changed_meanwhile' })
    const now = await tagNow()
    const both = await Promise.all(['resume', 'resume'].map((action) => change(action, now)))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
  })

  it('are woken and probed by admins, with one probe in ten seconds and none of a blocked pod', async () => {
    const adm = await makeStaff(api, 'adm', 'admin')
    await podAt('probed.example', {
      failures: 9,
      nextTryAt: new Date(Date.now() + 3_600_000),
      offlineSince: new Date(),
    })
    const post = (action: string, body: object = {}) => adm.post(`/pods/probed.example/${action}`, body)

    expect((await mod.post('/pods/probed.example/wake', { reason })).status).toBe(403)
    expect((await post('wake', {})).body).toMatchObject({ code: 422, reason: 'reason_needed' })
    expect((await post('wake', { reason })).body).toMatchObject({
      changed: true,
      host: 'probed.example',
      failures: 0,
      next_try_at: null,
    })
    expect((await post('wake', { reason })).body).toMatchObject({ changed: false })
    expect((await adm.get('/audit?action=pod.wake')).body).toHaveLength(1)

    expect((await mod.post('/pods/probed.example/probe', {})).status).toBe(403)
    const answers = await Promise.all([post('probe'), post('probe')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429])
    expect(answers.find(({ status }) => status === 200)?.body).toMatchObject({ checked_at: expect.any(String) })
    await api.pod.db('pods').where({ host: 'probed.example' }).update({ checkedAt: null, blockedAt: new Date() })
    expect((await post('probe')).body).toMatchObject({ code: 409, reason: 'pod_blocked' })
  })
})

describe('people of a pod', () => {
  /** Runs the operation that a change of rules has started, as its job does. */
  async function restrict(): Promise<void> {
    const open = await api.pod
      .db('operations')
      .where({ kind: 'pod_rules.restrict' })
      .whereIn('state', ['queued', 'running'])
    for (const { id: operationId } of open) {
      const work = { data: { operationId }, finish: async () => {} }
      await runBackgroundTask(api.pod, work, restrictTaskHandlers, new AbortController().signal)
    }
  }
  const restrictionOf = async (guid: string) =>
    (await api.pod.db('people').where({ guid }).first('restriction')).restriction

  it('are silenced by a rule `limited`, including those who become known later, by pod or by address', async () => {
    const early = await addRemotePerson(api.pod, 'early@limit.example')
    const moved = await addRemotePerson(api.pod, 'moved@sub.limit.example')
    await api.pod
      .db('people')
      .where({ id: moved.id })
      .update({ podId: await podAt('host.example') })
    const other = await addRemotePerson(api.pod, 'other@host.example')
    const { body: rule } = await set('limit.example', 'limited')
    await restrict()
    const late = await addRemotePerson(api.pod, 'late@limit.example')

    expect(await Promise.all([early, moved, late, other].map(({ guid }) => restrictionOf(guid)))).toEqual([
      'silence',
      'silence',
      'silence',
      null,
    ])
    await mod.call('DELETE', `/pod_rules/${rule.id}?reason=over`)
    await restrict()
    expect(await Promise.all([early, moved, late].map(({ guid }) => restrictionOf(guid)))).toEqual([null, null, null])
  })

  it('are blocked by a rule `blocked`: their stored content is hidden until the rule is deleted', async () => {
    const rita = await addRemotePerson(api.pod, 'rita@hide.example')
    const { guid } = await addPost(api.pod, rita, { public: true, text: 'Hello' })
    const { body: rule } = await set('hide.example', 'blocked')
    await restrict()

    expect([(await api.alice.get(`/posts/${guid}`)).status, await restrictionOf(rita.guid)]).toEqual([404, 'block'])
    await mod.call('DELETE', `/pod_rules/${rule.id}?reason=over`)
    await restrict()
    expect((await api.alice.get(`/posts/${guid}`)).status).toBe(200)
  })

  it('are restricted in chunks, which begin again when the rules change meanwhile', async () => {
    const first = await addRemotePerson(api.pod, 'first@first.example')
    const { podId } = await addRemotePerson(api.pod, 'zoe@many.example')
    await api.pod.db.raw(
      `insert into people (guid, address, public_key, pod_id) select md5('many' || n), 'p' || n || '@many.example', 'none', ? from generate_series(1, 120) as n`,
      [podId],
    )
    await set('many.example', 'limited')
    await expect(finishBackgroundTasks(api.pod, crashInChunk(restrictTaskHandlers, 2))).rejects.toThrow(
      'the worker dies',
    )

    await set('first.example', 'limited')
    await restrict()

    expect(await restrictionOf(first.guid)).toBe('silence')
    expect(await api.pod.db('people').where({ podId, restriction: null })).toEqual([])
  })

  it('that were missed are found for ten minutes after a change of the rules, and then once a day', async () => {
    const { id, guid } = await addRemotePerson(api.pod, 'missed@missed.example')
    await set('missed.example', 'limited')
    await restrict()
    const miss = async (minutes: number) => {
      await api.pod.db('person_restrictions').where({ personId: id }).delete()
      await api.pod.db('people').where({ id }).update({ restriction: null })
      await restrictMissedPeople({ ...api.pod, now: () => new Date(Date.now() + minutes * 60_000) })
      await restrict()
      return restrictionOf(guid)
    }

    expect([await miss(9), await miss(11), await miss(24 * 60 + 1)]).toEqual(['silence', null, 'silence'])
  })

  it('are restricted although the work has lost its job', async () => {
    const { guid } = await addRemotePerson(api.pod, 'stalled@stalled.example')
    await set('stalled.example', 'limited')
    const ofTask = { name: 'run-operation' }
    await api.pod.db('outbox').where(ofTask).delete()
    const task = api.pod.db('operations').where({ kind: 'pod_rules.restrict' }).whereIn('state', ['queued', 'running'])
    await task.clone().update({ changedAt: new Date(Date.now() - 2 * 3_600_000) })

    await restrictMissedPeople(api.pod)
    expect(await api.pod.db('outbox').where(ofTask)).toHaveLength(1)
    await restrict()
    expect(await restrictionOf(guid)).toBe('silence')
  })
})
