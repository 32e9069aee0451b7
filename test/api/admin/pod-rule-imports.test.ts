import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { importTaskHandlers } from '../../../src/domain/moderation/pods/pod-rule-imports.js'
import { runBackgroundTask } from '../../../src/domain/operations/background-tasks.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let adm: StaffClient
beforeAll(async () => {
  api = await startSampleApiPod()
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())
beforeEach(async () => {
  for (const table of ['pod_rules', 'pod_rule_imports', 'operations']) await api.pod.db(table).delete()
})

const reason = 'A shared list'

async function plan(csv: string, mode = 'keep') {
  const boundary = randomUUID()
  const part = (name: string, value: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; ${name}\r\n\r\n${value}\r\n`
  const answer = await api.app.inject({
    method: 'POST',
    url: '/api/admin/v1/pod_rules/imports',
    headers: { authorization: `Bearer ${adm.token}`, 'content-type': `multipart/form-data; boundary=${boundary}` },
    payload: `${part('name="mode"', mode)}${part('name="file"; filename="list.csv"', csv)}--${boundary}--\r\n`,
  })
  return { status: answer.statusCode, body: answer.json() }
}

const never = new AbortController().signal

/** Runs the operation as its job does. */
async function run(operationId: number, deadline = never): Promise<void> {
  await runBackgroundTask(api.pod, { data: { operationId }, finish: async () => {} }, importTaskHandlers, deadline)
}

async function apply(id: number, body: object = {}) {
  const { preview } = (await adm.get(`/pod_rules/imports/${id}`)).body
  const answer = await adm.post(`/pod_rules/imports/${id}/apply`, { reason, confirm: String(preview.chosen), ...body })
  if (answer.status === 202) await run(answer.body.id)
  return answer
}

const rules = async () => api.pod.db('pod_rules').orderBy('domain').select('domain', 'state', 'source', 'publicComment')
const exported = async () =>
  (await api.app.inject({ url: '/api/admin/v1/pod_rules/export', headers: { authorization: `Bearer ${adm.token}` } }))
    .body
const set = (domain: string, state: string) => adm.post('/pod_rules', { domain, state, reason, confirm: domain })

describe('the plan of an import', () => {
  it('skips severities that are names of the language', async () => {
    const { body } = await plan('domain,severity\nodd.example,constructor\nodder.example,__proto__\n')

    expect(body.rows).toMatchObject([
      { domain: 'odd.example', verdict: 'skip' },
      { domain: 'odder.example', verdict: 'skip' },
    ])
  })

  it('names the effect of each row, and changes nothing', async () => {
    await set('known.example', 'blocked')
    const own = new URL(api.pod.config.url).hostname
    const csv = `\uFEFFSEVERITY,#domain,public_comment,obfuscate\r\n${[
      'suspend,NEW.Example,"Spam, ads",TRUE',
      'suspend,ex***le.com,,',
      `suspend,${own},,`,
      'suspend,co.uk,,',
      'noop,quiet.example,,',
      'suspend,new.example,,',
      'suspend,sub.known.example,,',
      'suspend,not a host,,',
      'suspend,port.example:3000,,',
      'suspend,known.example:3000,,',
      'suspend,port.example:70000,,',
      'suspend,nul\0.exa\0mple,a\0b,',
      ',limit.example,,',
      'LIMIT,limit.example,,',
    ].join('\r\n')}\r\n`

    const { status, body } = await plan(csv)

    expect(status).toBe(202)
    expect(body.rows.map(({ domain, verdict, fault }: Record<string, unknown>) => [domain, verdict, fault])).toEqual([
      ['new.example', 'add', null],
      ['ex***le.com', 'skip', 'obfuscated'],
      [own, 'skip', 'own_pod'],
      ['co.uk', 'skip', 'too_broad'],
      ['quiet.example', 'skip', 'noop'],
      ['new.example', 'skip', 'duplicate'],
      ['sub.known.example', 'covered', null],
      ['not a host', 'skip', 'invalid'],
      ['port.example', 'add', null],
      ['known.example', 'covered', null],
      ['port.example:70000', 'skip', 'invalid'],
      ['nul.example', 'add', null],
      ['limit.example', 'add', null],
      ['limit.example', 'skip', 'duplicate'],
    ])
    expect(body.preview).toMatchObject({ add: 4, covered: 2, skip: 8, chosen: 4 })
    expect(await rules()).toHaveLength(1)
  })

  it('does not choose rows that end relations of local users', async () => {
    const quin = await addRemotePerson(api.pod, 'quin@deep.kin.example')
    await api.pod
      .db('contacts')
      .insert({ userId: api.bob.viewer.userId, personId: quin.id, sharing: true, receiving: true })

    const { body } = await plan('kin.example\nother.example\n')

    expect(body.rows).toMatchObject([
      { domain: 'kin.example', chosen: false, preview: { contacts: 1 } },
      { domain: 'other.example', chosen: true, preview: { contacts: 0 } },
    ])
    await apply(body.id, { ids: [body.rows[0].id], confirm: '1' })
    expect(await rules()).toMatchObject([{ domain: 'kin.example' }])
  })

  it('refuses lists that are too long, forms without a list, and broken CSV', async () => {
    const long = Array.from({ length: 20_001 }, (_, index) => `h${index}.example`).join('\n')

    expect((await plan(long)).body).toMatchObject({ code: 422, reason: 'too_many_rows' })
    expect((await plan('domain\n"a.example')).body).toMatchObject({ code: 422, reason: 'csv_invalid' })
    expect((await plan('a.example', 'hard')).body).toMatchObject({ code: 422, field: 'mode' })
    expect((await adm.post('/pod_rules/imports', {})).body).toMatchObject({ code: 422, reason: 'file_missing' })
  })
})

describe('an import', () => {
  it('restores an exported list byte for byte, and is one entry of the audit log', async () => {
    await set('b.example', 'blocked')
    await set('a.example', 'limited')
    await set('b.b.example', 'blocked')
    await set('exempt.b.example', 'normal')
    await set('a.example:3000', 'blocked')
    await set('a.example:443', 'blocked')
    await api.pod.db('pod_rules').where({ domain: 'b.example' }).update({ rejectMedia: true, publicComment: '=x, "y"' })
    await adm.post('/pod_rules', { domain: 'c.example', state: 'blocked', public_comment: '😀'.repeat(2_000), reason })
    const before = await exported()
    await api.pod.db('pod_rules').delete()

    const { body } = await plan(before)
    const started = await apply(body.id)

    expect(await exported()).toBe(before)
    expect((await adm.get(`/operations/${started.body.id}`)).body).toMatchObject({ state: 'done', done: 6, total: 6 })
    expect((await adm.get('/audit?action=pod_rules.import')).body[0]).toMatchObject({
      batch_id: body.id,
      after: { rules: 6 },
      actor: { guid: adm.person.guid, name: 'adm', role: 'admin' },
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    })
    expect((await apply(body.id)).body).toMatchObject({ code: 409, reason: 'bad_transition' })
  })

  it('keeps rules, makes them stricter, or replaces them, as the mode says', async () => {
    const suspend = 'domain,severity\nm.example,suspend'
    const silence = 'domain,severity\nm.example,silence'
    const modes = [
      ['keep', 'normal', suspend, 'normal'],
      ['keep', 'limited', suspend, 'limited'],
      ['stricter', 'limited', suspend, 'blocked'],
      ['stricter', 'blocked', silence, 'blocked'],
      ['replace', 'limited', suspend, 'blocked'],
      ['replace', 'blocked', silence, 'limited'],
    ] as const
    for (const [mode, state, list, expected] of modes) {
      await api.pod.db('pod_rules').delete()
      await set('m.example', state)
      await apply((await plan(list, mode)).body.id)
      expect([mode, state, (await rules()).map((rule) => rule.state)]).toEqual([mode, state, [expected]])
    }
  })

  it('continues after a crash, and applies each row once', async () => {
    const { body } = await plan(Array.from({ length: 2_300 }, (_, index) => `h${index}.example`).join('\n'))
    const started = await adm.post(`/pod_rules/imports/${body.id}/apply`, { reason, confirm: '2300' })
    const { signal, abort } = abortAfter(1)

    await expect(run(started.body.id, signal)).rejects.toThrow()
    abort()
    expect((await adm.get(`/operations/${started.body.id}`)).body).toMatchObject({ state: 'running', done: 1_000 })
    await run(started.body.id)
    await run(started.body.id)

    expect((await adm.get(`/operations/${started.body.id}`)).body).toMatchObject({ state: 'done', done: 2_300 })
    expect(await api.pod.db('pod_rules').pluck('domain')).toHaveLength(2_300)
  })

  it('ends where an undo begins, which takes back what was applied', async () => {
    const { body } = await plan(Array.from({ length: 2_300 }, (_, index) => `e${index}.example`).join('\n'))
    const started = await adm.post(`/pod_rules/imports/${body.id}/apply`, { reason, confirm: '2300' })
    await expect(run(started.body.id, abortAfter(1).signal)).rejects.toThrow()

    const undone = await adm.post(`/pod_rules/imports/${body.id}/undo`, { reason, confirm: '2300' })
    await run(undone.body.id)
    await run(started.body.id)

    expect(await api.pod.db('pod_rules').whereLike('domain', 'e%')).toEqual([])
    expect((await adm.get(`/operations/${started.body.id}`)).body).toMatchObject({ state: 'done', done: 1_000 })
    expect((await adm.get(`/operations/${undone.body.id}`)).body).toMatchObject({ state: 'done', done: 1_000 })
  })

  it('is undone except for rules that were changed since, which needs the number of rows', async () => {
    await set('old.example', 'normal')
    const domains = Array.from({ length: 299 }, (_, index) => `u${index}.example`)
    const { body } = await plan([...domains, 'old.example'].join('\n'), 'replace')
    await apply(body.id)
    await set('u7.example', 'normal')

    expect((await adm.post(`/pod_rules/imports/${body.id}/undo`, { reason })).body).toMatchObject({
      reason: 'confirmation_needed',
      preview: { rows: 300 },
    })
    const undone = await adm.post(`/pod_rules/imports/${body.id}/undo`, { reason, confirm: '300' })
    await run(undone.body.id)

    expect(await rules()).toMatchObject([
      { domain: 'old.example', state: 'normal', source: 'manual' },
      { domain: 'u7.example', state: 'normal' },
    ])
    expect((await adm.get(`/operations/${undone.body.id}`)).body).toMatchObject({ done: 299, skipped: 1 })
  })
})

/** A deadline that has passed at its second check. */
function abortAfter(checks: number) {
  const controller = new AbortController()
  let left = checks
  const signal = new Proxy(controller.signal, {
    get(target, name) {
      if (name !== 'throwIfAborted') return Reflect.get(target, name, target)
      return () => {
        left -= 1
        if (left < 0) throw new Error('The worker has stopped.')
      }
    },
  })
  return { signal, abort: () => controller.abort() }
}
