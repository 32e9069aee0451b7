import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { SYSTEM_ACTOR } from '../../src/domain/moderation/actor.js'
import { runBackgroundTask, startBackgroundTask } from '../../src/domain/operations/background-tasks.js'
import { birthdaysJob, defineJob, pruneJob, retriedForHours } from '../../src/jobs/definitions.js'
import { checkForDueWork } from '../../src/jobs/operations/due-work.js'
import { findUnservedQueues } from '../../src/jobs/operations/probe-queues.js'
import { isIdle, readWorkStatus } from '../../src/jobs/operations/work-status.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import type { Schedule } from '../../src/jobs/queues/schedule-jobs.js'
import { FailedJob } from '../../workers/failed-job.js'
import { maintenanceHandlers, maintenanceSchedules, prune } from '../../workers/handlers/maintenance.js'
import type { Handler } from '../../workers/run-job.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { startSweeping, sweep } from '../../workers/sweeper.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { replayDeadLetters } from '../support/queues/change-dead-letters.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

const greet = defineJob<{ name: string }>()('notify', 'greet', retriedForHours)
const handlers = { maintenance: maintenanceHandlers, notify: { greet: async () => {} } }

describe.each(queueBackends)('maintenance, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let workers: RunningWorkers | undefined

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())
  beforeEach(async () => {
    await stores.emptyQueue()
    for (const table of ['outbox', 'waiting', 'periodic', 'deliveries', 'outbound_messages', 'people', 'pods']) {
      await pod.db(table).delete()
    }
    return () => workers?.close()
  })

  it('sweeps leftovers on schedule', async () => {
    await pod.db('outbox').insert({ queue: 'notify', name: 'greet', sweepAt: new Date(0) })

    workers = startTestWorkers(pod, { handlers })

    await vi.waitFor(async () => expect(await pod.db('outbox')).toEqual([]), { interval: 20 })
    await untilIdle(pod)
    // The row is deleted before the sweep that enqueued its job ends.
    const workStatus = () => readWorkStatus(pod)
    await vi.waitFor(async () => expect(await workStatus()).toMatchObject({ lastSweep: expect.any(Number) }), 10_000)
  })

  it('creates birthday notifications on schedule', async () => {
    workers = startTestWorkers(pod, { handlers })

    const begun = () => pod.db('periodic').where({ name: 'birthdays' })
    await vi.waitFor(async () => expect(await begun()).toHaveLength(1), { interval: 20 })
  })

  it('has a job of its own for each work of a minute, so that an error in one does not keep the others back', async () => {
    const broken = { ...pod, config: undefined } as never
    const run = (name: 'check-attendance' | 'check-pods') =>
      maintenanceHandlers[name]?.(broken, { data: {} } as never, new AbortController().signal)
    await expect(run('check-attendance')).rejects.toThrow()
    await run('check-pods')
    expect(maintenanceSchedules.map(({ job }) => job.name)).toEqual(
      expect.arrayContaining(['check-pods', 'check-attendance', 'end-pod-rules', 'end-network-rules']),
    )
  })

  it('sweeps nothing while another process sweeps', async () => {
    await pod.db('outbox').insert({ queue: 'notify', name: 'greet', sweepAt: new Date(0) })

    await pod.db.transaction(async (other) => {
      await other.raw(`select pg_advisory_xact_lock(hashtextextended('sweep', 0))`)
      await sweep(pod)
    })

    expect(await pod.db('outbox').select('sweepAt')).toEqual([{ sweepAt: new Date(0) }])
    expect(await pod.db('periodic')).toEqual([])
  })

  it('sweeps messages whose waiting time has expired', async () => {
    await insertWaiting(pod)

    await sweep(pod)

    expect(await pod.db('outbox').select('queue', 'payload')).toEqual([{ queue: 'inbound', payload: 'one' }])
    expect(await pod.db('waiting')).toEqual([])
  })

  if (backend.store === 'Redis') {
    it('enqueues a delivery again when Redis has evicted the job and kept its deduplication key', async () => {
      await insertDelivery(pod, { dueAt: new Date(0) })
      await sweep(pod)

      await stores.redis?.evict('outbound-slow:prioritized')
      await sweep(pod)
      await sweep(pod)

      expect(await pod.jobs.counts('outbound-slow')).toMatchObject({ waiting: 1 })
    })
  }

  it('creates its schedule once, and again when it was lost', async () => {
    const schedule = { job: pruneJob, intervalMs: 2_000 }
    const other = { job: birthdaysJob, intervalMs: 3_600_000 }
    const keep = (...schedules: Schedule[]) => pod.jobs.keepSchedules('maintenance', schedules)

    expect(await keep(schedule)).toBe(true)
    expect(await keep(schedule)).toBe(false)
    expect(await keep(schedule, other)).toBe(true)
    expect(await keep(schedule, other)).toBe(false)
    await stores.emptyQueue()
    expect(await keep(schedule)).toBe(true)
    expect(await keep({ ...schedule, intervalMs: 3_000 })).toBe(true)
    expect(await pod.jobs.counts('maintenance')).toMatchObject({ failed: 0 })
  })

  it('marks an operation as failed when its job has no attempts left; the replayed job completes it', async () => {
    await pod.db('operations').delete()
    const failing = async () => {
      throw new FailedJob('broken', 'dead')
    }
    workers = startTestWorkers(pod, { handlers: { ...handlers, maintenance: { 'run-operation': failing } } })
    const operation = { kind: 'people.content', target: 'people', total: 0, reason: 'For a test' } as const
    await pod.db.transaction((transaction) => startBackgroundTask(pod, transaction, SYSTEM_ACTOR, operation))
    const states = () => pod.db('operations').select('state', 'errors')
    await vi.waitFor(async () => expect(await states()).toEqual([{ state: 'failed', errors: ['broken'] }]), 10_000)

    await workers.close()
    workers = startTestWorkers(pod, { handlers })
    expect(await replayDeadLetters(pod)).toBe(1)

    await vi.waitFor(async () => expect(await states()).toMatchObject([{ state: 'done' }]), 10_000)
  })

  it('puts back the job of an operation of an unknown kind', async () => {
    await pod.db('operations').delete()
    const run: Handler = (services, work, deadline) => runBackgroundTask(services, work, {}, deadline)
    workers = startTestWorkers(pod, { handlers: { ...handlers, maintenance: { 'run-operation': run } } })
    const operation = { kind: 'people.content', target: 'people', total: 0, reason: 'For a test' } as const
    await pod.db.transaction((transaction) => startBackgroundTask(pod, transaction, SYSTEM_ACTOR, operation))
    const isPutBack = async () => (await listJobs()).some(({ data }) => data.timesPutBack > 0)
    const listJobs = async () => {
      const delayed = await pod.jobs.list('maintenance', 'delayed', 0, 100)
      const jobs = await Promise.all(delayed.map(({ id }) => pod.jobs.find('maintenance', id)))
      return jobs.flatMap((job) => job ?? [])
    }
    await vi.waitFor(async () => expect(await isPutBack()).toBe(true), 10_000)

    expect(await pod.db('operations').pluck('state')).not.toContain('failed')
    await workers.close()
    workers = startTestWorkers(pod, { handlers })
    await vi.waitFor(async () => expect(await pod.db('operations').pluck('state')).toEqual(['done']), 10_000)
  })

  it('removes schedules of other versions', async () => {
    const former = { job: defineJob<object>()('maintenance', 'former', retriedForHours), intervalMs: 3_600_000 }
    const kept = { job: pruneJob, intervalMs: 3_600_000 }
    await pod.jobs.keepSchedules('maintenance', [former, kept])

    await pod.jobs.endOtherSchedules('maintenance', [kept])

    expect(await pod.jobs.keepSchedules('maintenance', [kept])).toBe(false)
    expect(await pod.jobs.keepSchedules('maintenance', [former])).toBe(true)
  })

  it('sweeps repeatedly', async () => {
    const sweeping = startSweeping(pod, 10)
    const insertLeftRow = () => pod.db('outbox').insert({ queue: 'fetch', name: 'greet', sweepAt: new Date(0) })
    for (let row = 1; row <= 2; row += 1) {
      await insertLeftRow()
      await vi.waitFor(async () => expect(await pod.jobs.counts('fetch')).toMatchObject({ waiting: row }), 5_000)
    }

    await sweeping.stop()
  })

  it('ends rules for pods whose time is over', async () => {
    const rule = { state: 'blocked', reason: 'Spam', source: 'manual', createdBy: 'command', subdomains: true }
    await pod.db('podRules').insert([
      { ...rule, domain: 'over.example', until: new Date(0) },
      { ...rule, domain: 'later.example', until: pod.db.raw(`now() + interval '1 day'`) },
    ])
    const sweeping = startSweeping(pod, 10)

    await vi.waitFor(async () => expect(await pod.db('podRules').pluck('domain')).toEqual(['later.example']), 5_000)

    await sweeping.stop()
    await pod.db('podRules').delete()
  })

  it('deletes messages and lookups beyond the limits also while rules for pods cannot be ended', async () => {
    await pod.db.raw(`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`)
    await pod.db.raw('create trigger refuse before delete on pod_rules for each row execute function refuse()')
    const rule = { state: 'blocked', reason: 'Spam', source: 'manual', createdBy: 'command', subdomains: true }
    await pod.db('podRules').insert({ ...rule, domain: 'over.example', until: new Date(0) })
    await pod.db('outbox').insert({ queue: 'notify', name: 'greet', failedAt: pod.db.fn.now() })
    const times = {
      createdAt: pod.db.raw(`now() - interval '1 day'`),
      nextTryAt: pod.db.raw(`now() + interval '1 day'`),
    }
    await pod.db('signerLookups').insert({ address: 'bob@far.example', host: 'far.example', ...times })
    const warn = vi.spyOn(pod.log, 'warn')
    const sweeping = startSweeping(pod, 10)

    await vi.waitFor(async () => expect(await pod.db('signerLookups')).toEqual([]), 5_000)

    await sweeping.stop()
    expect(warn.mock.calls.map(([, text]) => text)).toContain('rules for pods not ended')
    warn.mockRestore()
    await pod.db.raw('drop function refuse cascade')
    await pod.db('podRules').delete()
  })

  it('reports every twenty seconds that it sweeps, although nothing is due', async () => {
    expect(await checkForDueWork(pod)).toMatchObject({ hasDueWork: false, isRunRecordStale: true })
    const sweeping = startSweeping(pod, 10)
    await vi.waitFor(async () =>
      expect(await checkForDueWork(pod)).toMatchObject({ hasDueWork: false, isRunRecordStale: false }),
    )

    await pod.db('periodic').update({ lastRunAt: pod.db.raw(`now() - interval '21 seconds'`) })
    await vi.waitFor(async () =>
      expect(await checkForDueWork(pod)).toMatchObject({ hasDueWork: false, isRunRecordStale: false }),
    )
    await sweeping.stop()
    await pod.db('periodic').update({ lastRunAt: pod.db.raw(`now() - interval '21 seconds'`) })
    expect(await checkForDueWork(pod)).toMatchObject({ hasDueWork: false, isRunRecordStale: true })
  })

  it.each<[string, (pod: QueuePod) => Promise<unknown>]>([
    ['an outbox row', ({ db }) => db('outbox').insert({ queue: 'notify', name: 'greet', sweepAt: new Date(0) })],
    ['a message that has waited long enough', (waiting) => insertWaiting(waiting)],
    ['a delivery without a job', (busy) => insertDelivery(busy, { dueAt: new Date(0) })],
  ])('sweeps at once what is due: %s', async (_, insert) => {
    await sweep(pod)
    await insert(pod)
    expect(await checkForDueWork(pod)).toMatchObject({ hasDueWork: true })
  })

  it('is healthy while every worker receives events of its queue and a process sweeps', async () => {
    workers = startTestWorkers(pod, { handlers })
    const running = workers
    await vi.waitFor(async () => expect(await running.health()).toMatchObject({ isReady: true, hasDatabase: true }), {
      interval: 50,
    })
    expect(await running.health()).toMatchObject({ hasQueue: true, unresponsive: [], lastSweep: expect.any(Number) })

    await pod.db('periodic').update({ lastRunAt: new Date(0) })
    await running.close()
    expect(await running.health()).toMatchObject({
      isReady: false,
      hasDatabase: true,
      hasQueue: true,
      unresponsive: QUEUES,
    })
  })

  it('reports the queues without a worker', async () => {
    workers = startTestWorkers(pod, { handlers, queues: ['notify', 'fetch'] })
    expect(await findUnservedQueues(pod, ['notify', 'fetch'], 10_000)).toEqual([])

    expect(await findUnservedQueues(pod, ['notify', 'outbound'], 300)).toEqual(['outbound'])
    expect(await pod.db('outbox')).toEqual([])
  })

  it('counts the pending work', async () => {
    await pod.jobs.add(greet, { name: 'Alice' })
    await pod.jobs.add(greet, { name: 'Bob' }, { delay: 3_600_000 })
    await pod.db('outbox').insert([
      { queue: 'notify', name: 'greet' },
      { queue: 'notify', name: 'greet', failedAt: pod.db.fn.now() },
    ])
    await insertDelivery(pod, { dueAt: new Date(0) })

    const workStatus = await readWorkStatus(pod)

    expect(workStatus.queues?.notify).toEqual({
      waiting: 1,
      active: 0,
      delayed: 1,
      failed: 0,
      oldestWaiting: expect.any(Number),
      workers: 0,
    })
    expect(workStatus.queues?.fetch).toMatchObject({ waiting: 0, oldestWaiting: null })
    expect(workStatus).toMatchObject({
      outbox: { waiting: 1, dead: 1, oldest: expect.any(Number) },
      waitingFor: {},
      deliveries: { due: 1, waiting: 1, dead: 0 },
      podsAsleep: 0,
      lastSweep: null,
    })
  })

  it('counts the workers of all processes', async () => {
    workers = startTestWorkers(pod, { handlers, queues: ['notify'] })
    const other = await stores.openPod()
    const otherWorkers = startTestWorkers(other, { handlers, queues: ['notify'] })

    await vi.waitFor(async () => expect(await pod.jobs.workers('notify')).toBe(2))
    expect(await pod.jobs.workers('fetch')).toBe(0)
    await otherWorkers.close()
  })

  it.each<[string, (pod: QueuePod) => Promise<unknown>]>([
    ['a job waits', ({ jobs }) => jobs.add(greet, { name: 'Alice' })],
    ['a job comes later', ({ jobs }) => jobs.add(greet, { name: 'Alice' }, { delay: 60_000 })],
    ['an outbox row waits', ({ db }) => db('outbox').insert({ queue: 'notify', name: 'greet' })],
    ['a delivery is due', (busy) => insertDelivery(busy, { dueAt: new Date(0) })],
  ])('is not idle while %s', async (_, insert) => {
    await pod.jobs.keepSchedules('maintenance', [{ job: pruneJob, intervalMs: 3_600_000 }])
    expect(await isIdle(pod)).toBe(true)

    await insert(pod)

    expect(await isIdle(pod)).toBe(false)
  })

  if (backend.store === 'Redis') {
    it('is idle despite a scheduled job that Redis has evicted', async () => {
      await pod.jobs.keepSchedules('maintenance', [{ job: pruneJob, intervalMs: 3_600_000 }])
      workers = startTestWorkers(pod, { handlers, queues: ['maintenance'] })
      const next = () => pod.jobs.counts('maintenance')
      await vi.waitFor(
        async () => expect(await next()).toMatchObject({ waiting: 0, delayed: maintenanceSchedules.length }),
        10_000,
      )
      await workers.close()

      await stores.redis?.evict('maintenance:repeat:prune:*')

      expect(await isIdle(pod)).toBe(true)
      expect((await readWorkStatus(pod)).queues?.maintenance).toMatchObject({ delayed: 0 })
    })
  }

  it.each<[string, (pod: QueuePod) => Promise<unknown>]>([
    ['a dead letter', ({ db }) => db('outbox').insert({ queue: 'notify', name: 'greet', failedAt: db.fn.now() })],
    ['a delivery for later', (pod) => insertDelivery(pod, { dueAt: new Date(Date.now() + 3_600_000) })],
    [
      'a delivery to a pod that rests',
      (pod) => insertDelivery(pod, { dueAt: new Date(0) }, { nextTryAt: new Date(Date.now() + 3_600_000) }),
    ],
  ])('is idle in spite of %s', async (_, insert) => {
    await insert(pod)

    expect(await isIdle(pod)).toBe(true)
  })

  it('prunes expired data, and nothing else', async () => {
    const old = new Date(Date.now() - 31 * 86_400_000)
    await pod.db('outbox').insert([
      { queue: 'notify', name: 'old', failedAt: old, createdAt: old },
      { queue: 'notify', name: 'fresh', failedAt: pod.db.fn.now() },
      { queue: 'notify', name: 'waiting', createdAt: old },
    ])
    await insertDelivery(pod, { state: 'dead', diedAt: old }, {}, { guid: 'given-up', createdAt: old })
    await insertDelivery(pod, { dueAt: old }, {}, { guid: 'still-tried', createdAt: old })
    await insertDelivery(pod, { state: 'dead', diedAt: new Date() }, {}, { guid: 'freshly-dead', createdAt: old })
    const [person] = await pod.db('people').select('id')
    await pod.db('tombstones').insert([
      {
        targetType: 'post',
        guid: 'ancient',
        deletedById: person.id,
        createdAt: new Date(Date.now() - 401 * 86_400_000),
      },
      { targetType: 'post', guid: 'old', deletedById: person.id, createdAt: old },
    ])
    await pod.db('oidcRecords').insert([
      { model: 'Session', idHash: Buffer.alloc(32, 1), payload: '{}', expiresAt: old },
      { model: 'Session', idHash: Buffer.alloc(32, 2), payload: '{}', expiresAt: new Date(Date.now() + 3_600_000) },
      { model: 'Grant', idHash: Buffer.alloc(32, 3), payload: '{}', expiresAt: null },
    ])

    await prune(pod)

    expect(await pod.db('outbox').orderBy('id').pluck('name')).toEqual(['fresh', 'waiting'])
    expect(await pod.db('outboundMessages').orderBy('id').pluck('guid')).toEqual(['still-tried', 'freshly-dead'])
    expect(await pod.db('deliveries')).toHaveLength(2)
    expect(await pod.db('tombstones').pluck('guid')).toEqual(['old'])
    expect(await pod.db('oidcRecords').orderBy('idHash').pluck('model')).toEqual(['Session', 'Grant'])
    expect(await pod.db('periodic').pluck('name')).toContain('prune')
  })
})

let deliveries = 0

async function insertDelivery({ db }: QueuePod, delivery: object, pod = {}, message = {}): Promise<void> {
  deliveries += 1
  const [{ id: podId }] = await db('pods')
    .insert({ host: `far-${deliveries}.example`, ...pod })
    .returning('id')
  const author = { guid: `0123456789abcde${deliveries}`, address: `bob${deliveries}@far.example`, publicKey: 'key' }
  const [{ id: senderId }] = await db('people').insert(author).returning('id')
  const usual = {
    record: 'post',
    guid: `post-${deliveries}`,
    verb: 'create',
    senderId,
    public: true,
    entity: '<post/>',
  }
  const [{ id: messageId }] = await db('outboundMessages')
    .insert({ ...usual, ...message })
    .returning('id')
  await db('deliveries').insert({ messageId, podId, ...delivery })
}

async function insertWaiting({ db }: QueuePod): Promise<void> {
  await db('waiting').insert({
    waitsFor: 'post:0000000000000001',
    name: 'receive-public',
    payload: 'one',
    acceptedAt: new Date(0),
    digest: Buffer.alloc(32),
    times: 1,
    dueAt: new Date(0),
  })
}
