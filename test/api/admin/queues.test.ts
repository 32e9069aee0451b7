import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { discardTaskHandlers } from '../../../src/domain/operations/queues.js'
import { listDeadLetters } from '../../../src/jobs/dead-letters/find-dead-letters.js'
import { discoverPersonJob, fetchStreamJob, receivePublicJob } from '../../../src/jobs/definitions.js'
import { enqueueJobsOfKind } from '../../../src/jobs/outbox/enqueue-jobs.js'
import { sweep } from '../../../workers/sweeper.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'
import { finishBackgroundTasks } from '../../support/pods/finish-background-tasks.js'
import { replayDeadLetters } from '../../support/queues/change-dead-letters.js'

let api: ApiPod
let adm: StaffClient
beforeAll(async () => {
  api = await startApiPod({ environment: { WRITE_LIMIT: '0' } })
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())
afterEach(async () => {
  api.pod.jobs.refuseJobsFor([])
})

async function actionsOn(queue: string): Promise<readonly string[]> {
  const { body } = await adm.get('/audit')
  return body
    .filter(({ target }: { target: { label: string } }) => target.label === queue)
    .map(({ action }: { action: string }) => action)
}

const reason = 'A test'

describe('the queues of the admin API', () => {
  it('show the runs of jobs a minute by how they ended', async () => {
    const counted = (end: string, minutesAgo: number, count: number) => ({
      ...{ name: 'pod_jobs_run_total', labels: JSON.stringify({ queue: 'notify', end }), count },
      minute: api.pod.db.raw(`date_trunc('minute', now()) - make_interval(mins => ?)`, [minutesAgo]),
    })
    await api.pod.db('figures').insert([counted('done', 3, 30), counted('done', 30, 30), counted('failed', 3, 15)])

    const { body } = await adm.get('/queues')
    expect(body.find(({ name }: { name: string }) => name === 'notify').per_minute).toEqual({
      ...{ last_1: 0, last_15: 3, last_60: 1.25 },
      by_end: {
        done: { last_1: 0, last_15: 2, last_60: 1 },
        failed: { last_1: 0, last_15: 1, last_60: 0.25 },
        put_back: { last_1: 0, last_15: 0, last_60: 0 },
      },
    })
    await api.pod.db('figures').delete()
  })

  it('are listed with their work, and paused and resumed with one audit entry each', async () => {
    const { body } = await adm.get('/queues')
    expect(body.find(({ name }: { name: string }) => name === 'relay')).toMatchObject({
      ...{ state: 'running', stopped: null, waiting: 0, active: 0, delayed: 0, failed: 0, oldest_seconds: null },
      ...{ per_minute: { last_1: 0, last_15: 0, last_60: 0 }, wait_ms: { p50: null, p95: null } },
    })

    const until = new Date(Date.now() + 3_600_000).toISOString()
    expect((await adm.post('/queues/relay/pause', { reason, until })).body).toMatchObject({
      changed: true,
      queue: { name: 'relay', state: 'paused', stopped: { by: 'adm', reason, until } },
    })
    expect((await adm.post('/queues/relay/pause', { reason, until })).body).toMatchObject({ changed: false })
    expect((await adm.post('/queues/relay/resume', { reason })).body).toMatchObject({
      changed: true,
      queue: { state: 'running', stopped: null },
    })
    expect((await adm.post('/queues/relay/resume', { reason })).body).toMatchObject({ changed: false })
    expect(await actionsOn('relay')).toEqual(['queue.resume', 'queue.pause'])
  })

  it('refuse a pause without a reason, until a time in the past, of an unknown queue, and of the queue that finds lost work', async () => {
    const answers = await Promise.all([
      adm.post('/queues/relay/pause', {}),
      adm.post('/queues/relay/pause', { reason, until: '2020-01-01' }),
      adm.post('/queues/unknown/pause', { reason }),
      adm.post('/queues/maintenance/pause', { reason }),
      adm.post('/queues/maintenance/discard', { reason, confirm: 'maintenance' }),
    ])
    expect(answers.map(({ body }) => [body.code, body.reason])).toEqual([
      [422, 'reason_needed'],
      [422, 'field_invalid'],
      [404, 'not_found'],
      [422, 'queue_not_pausable'],
      [422, 'queue_not_pausable'],
    ])
  })

  it('are drained after a confirmation; the inbound endpoint then answers 503 for two minutes', async () => {
    const asked = await adm.post('/queues/inbound/drain', { reason })
    expect(asked.body).toMatchObject({
      code: 409,
      reason: 'confirmation_needed',
      preview: { waiting: 0, active: 0, delayed: 0 },
    })
    expect((await adm.post('/queues/inbound/drain', { reason, confirm: 'inbound' })).body).toMatchObject({
      queue: { state: 'drained' },
    })

    const refused = await api.app.inject({ method: 'POST', url: '/receive/public', payload: '<xml/>' })
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '120'])

    await adm.post('/queues/inbound/resume', { reason })
    const accepted = await api.app.inject({ method: 'POST', url: '/receive/public', payload: '<xml/>' })
    expect(accepted.statusCode).toBe(202)
    await api.pod.jobs.discard('inbound')
  })
})

describe('a paused inbound queue', () => {
  it('accepts messages with 202, which wait until it is resumed', async () => {
    expect((await adm.post('/queues/inbound/pause', { reason })).body).toMatchObject({ queue: { state: 'paused' } })

    const accepted = await api.app.inject({ method: 'POST', url: '/receive/public', payload: '<xml/>' })
    expect(accepted.statusCode).toBe(202)
    const inbound = async () => (await adm.get('/queues')).body.find(({ name }: { name: string }) => name === 'inbound')
    expect(await inbound()).toMatchObject({ state: 'paused', waiting: 1, active: 0 })

    await adm.post('/queues/inbound/resume', { reason })
    expect(await inbound()).toMatchObject({ state: 'running', waiting: 1 })
    await api.pod.jobs.discard('inbound')
  })
})

describe('the jobs of a queue', () => {
  it('are listed page by page without their data, and delayed ones are made due by name', async () => {
    const add = (address: string, delay: number) =>
      api.pod.jobs.add(fetchStreamJob, { address }, { deduplicationKey: address, delay })
    for (const name of ['ann', 'ben', 'cid']) await add(`${name}@far.example`, 3_600_000)

    const page = await adm.get('/queues/fetch/jobs?state=delayed&per_page=2')
    const rest = await adm.get(page.links.next ?? '')
    expect([...page.body, ...rest.body]).toMatchObject(
      Array.from({ length: 3 }, () => ({ name: 'fetch-stream', attempts: 0, fault: null, finished_at: null })),
    )
    expect(JSON.stringify([page.body, rest.body])).not.toContain('far.example')

    expect((await adm.post('/queues/fetch/promote', { reason, name: 'other' })).body).toEqual({ count: 0 })
    await add('dot@other.example', 3_600_000)
    expect((await adm.post('/queues/fetch/promote', { reason, pod: 'OTHER.example' })).body).toEqual({ count: 1 })
    expect((await adm.post('/queues/fetch/promote', { reason, pod: 'other.example' })).body).toEqual({ count: 0 })
    expect((await adm.post('/queues/fetch/promote', { reason, name: 'fetch-stream' })).body).toEqual({ count: 3 })
    expect((await adm.get('/queues/fetch/jobs')).body).toHaveLength(4)
  })

  it('are discarded after a confirmation; those of outbox rows are added again', async () => {
    const { waiting: before } = await api.pod.jobs.counts('fetch')
    const id = await api.pod.db.transaction(async (transaction) => {
      const [row = 0] = await enqueueJobsOfKind(api.pod, transaction, discoverPersonJob, [
        { address: 'dee@far.example' },
      ])
      return row
    })
    await vi.waitFor(async () => expect((await api.pod.jobs.counts('fetch')).waiting).toBe(before + 1))

    expect((await adm.post('/queues/fetch/discard', { reason })).body).toMatchObject({ reason: 'confirmation_needed' })
    const { waiting } = await api.pod.jobs.counts('fetch')
    expect((await adm.post('/queues/fetch/discard', { reason, confirm: 'fetch' })).body).toEqual({ count: waiting })
    expect((await adm.get('/queues/fetch/jobs')).body).toEqual([])
    await sweep(api.pod)
    expect((await adm.get('/queues/fetch/jobs')).body).toMatchObject([{ name: 'discover-person' }])
    await api.pod.db('outbox').where({ id }).delete()
  })
})

describe('discarded messages', () => {
  it('become dead letters, one for each, and are received again when they are replayed', async () => {
    await api.pod.jobs.pause('inbound')
    const payloads = ['<one/>', '<two/>']
    await api.pod.jobs.add(receivePublicJob, { acceptedAt: new Date(0).toISOString(), messages: payloads })

    expect((await adm.post('/queues/inbound/discard', { reason, confirm: 'inbound' })).body).toEqual({ count: 2 })
    expect((await adm.get('/queues/inbound/jobs')).body).toEqual([])
    const dead = await listDeadLetters(api.pod, { fault: 'discarded' })
    expect(dead).toMatchObject([{ queue: 'inbound' }, { queue: 'inbound' }])

    expect(await replayDeadLetters(api.pod, { fault: 'discarded' })).toBe(2)
    // After the commit the rows are handed to the queue.
    await vi.waitFor(async () => expect((await adm.get('/queues/inbound/jobs')).body).toHaveLength(2))
    const rows = await api.pod.db('outbox').where({ queue: 'inbound' }).orderBy('id').select('payload', 'acceptedAt')
    expect(rows).toEqual(payloads.map((payload) => ({ payload, acceptedAt: new Date(0) })))
    await api.pod.db('outbox').delete()
    await api.pod.jobs.discard('inbound')
    await api.pod.jobs.resume('inbound')
  })

  it('of more than 200 jobs are stored by an operation, of which a queue has one at a time', async () => {
    await api.pod.jobs.pause('inbound')
    const accepted = { acceptedAt: new Date(0).toISOString(), messages: ['<xml/>'] }
    await api.pod.jobs.addAll(receivePublicJob, Array(201).fill(accepted))
    const confirmed = { reason, confirm: 'inbound' }

    const { status, headers, body } = await adm.post('/queues/inbound/discard', confirmed)
    expect([status, headers['location']]).toEqual([202, `/api/admin/v1/operations/${body.id}`])
    expect(body).toMatchObject({ kind: 'queue.discard', state: 'queued', total: 201 })
    expect((await adm.post('/queues/inbound/discard', confirmed)).body).toMatchObject({
      ...{ code: 409, reason: 'operation_running' },
    })
    await finishBackgroundTasks(api.pod, discardTaskHandlers)

    expect((await adm.get(`/operations/${body.id}`)).body).toMatchObject({ state: 'done', done: 201, skipped: 0 })
    expect((await adm.get('/audit?action=queue.discard')).body[0]).toMatchObject({
      ...{ target: { label: 'inbound' }, after: { count: 201 } },
    })
    expect(await api.pod.db('outbox').where({ queue: 'inbound' }).whereNotNull('failedAt')).toHaveLength(201)
    await api.pod.db('outbox').delete()
    await api.pod.jobs.resume('inbound')
  })
})
