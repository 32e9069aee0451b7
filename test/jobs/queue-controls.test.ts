import type { Job } from 'bullmq'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import {
  discardJobs,
  discardTaskHandlers,
  drainQueue,
  findQueue,
  type JobPage,
  listJobs,
  listQueues,
  pauseQueue,
  promoteJobs,
  type QueueOverview,
  resumeQueue,
} from '../../src/domain/operations/queues.js'
import { defineJob, receivePublicJob, retriedForHours } from '../../src/jobs/definitions.js'
import { startHeartbeat } from '../../src/jobs/operations/heartbeat.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import { runOrAddAfterCommit } from '../../src/jobs/outbox/run-or-add.js'
import { createQueueControl } from '../../src/jobs/queues/control-queues.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import { QueueUnavailable } from '../../src/jobs/queues/queue-unavailable.js'
import { replayQuarantined } from '../../src/persistence/inbound/quarantine.js'
import { listProcesses } from '../../src/persistence/operations/processes.js'
import { sampleQueues } from '../../workers/sample-queues.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { sweep } from '../../workers/sweeper.js'
import { crashInChunk, finishBackgroundTasks } from '../support/pods/finish-background-tasks.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

const countJob = defineJob<{ key: string }>()('notify', 'count', { ...retriedForHours, attempts: 1 })
const laterJob = defineJob<{ key: string }>()('notify', 'count-later', {
  ...retriedForHours,
  attempts: 1,
  priority: 10,
})
const change = { reason: 'a test' }
const actor = COMMAND_ACTOR

describe.each(queueBackends)('stopped queues, in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let workers: RunningWorkers
  let heartbeat: ReturnType<typeof startHeartbeat>
  const ran: string[] = []

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod({ definitions: [countJob, laterJob] })
    workers = startTestWorkers(pod, {
      queues: ['notify'],
      handlers: {
        notify: {
          count: async (_pod, { data }) => {
            ran.push((data as { key: string }).key)
          },
        },
      },
    })
    heartbeat = startHeartbeat(pod, { kind: 'worker', queues: ['notify'], runningJobs: workers.runningJobs })
  })
  afterAll(async () => {
    await heartbeat.close()
    await workers.close()
    await stores.close()
  })
  beforeEach(async () => {
    await resumeQueue(pod, actor, 'notify', change)
    await heartbeat.beatNow()
    await heartbeat.beatNow()
    ran.length = 0
  })

  const notifyQueue = async () => (await listQueues(pod))?.find(({ name }) => name === 'notify')

  it('are read by name without counting the jobs of other queues', async () => {
    const counts = vi.spyOn(pod.jobs, 'counts')
    try {
      expect(await findQueue(pod, 'notify')).toMatchObject({ name: 'notify', state: 'running', waiting: 0 })
      expect(counts.mock.calls).toEqual([['notify']])
    } finally {
      counts.mockRestore()
    }
  })

  it('are drained although this process cannot apply it yet: it is stored, and an error would say that it is not', async () => {
    const refuseJobsFor = () => {
      throw new Error('the states cannot be read')
    }
    const failing = { ...pod, jobs: { ...pod.jobs, refuseJobsFor } }
    const warn = vi.spyOn(pod.log, 'warn')
    try {
      expect(await drainQueue(failing, actor, 'notify', { ...change, confirm: 'notify' })).toBe(true)
      expect(warn.mock.calls.map(([, text]) => text)).toContain('state of the queue not applied yet')
    } finally {
      warn.mockRestore()
    }
    await heartbeat.beatNow()
    await heartbeat.beatNow()

    expect(await notifyQueue()).toMatchObject({ state: 'drained' })
    expect(pod.jobs.acceptsJobs('notify')).toBe(false)
  })

  it('are paused and resumed although the queue store does not answer: the next heartbeat applies it', async () => {
    const away = async () => {
      throw new QueueUnavailable('The queue is unavailable.')
    }
    const failing = { ...pod, jobs: { ...pod.jobs, pause: away, resume: away } }
    expect(await pauseQueue(failing, actor, 'notify', change)).toBe(true)
    await heartbeat.beatNow()
    expect(await pod.jobs.isPaused('notify')).toBe(true)

    expect(await resumeQueue(failing, actor, 'notify', change)).toBe(true)
    await heartbeat.beatNow()
    expect(await pod.jobs.isPaused('notify')).toBe(false)
  })

  it('run again although a pause takes effect only after the queue was resumed', async () => {
    await pod.jobs.pause('notify')

    await heartbeat.beatNow()
    expect(await pod.jobs.isPaused('notify')).toBe(false)
  })

  it('are counted together as each of them alone', async () => {
    await vi.waitFor(async () => expect(await notifyQueue()).toMatchObject({ workers: 1 }))
    await pauseQueue(pod, actor, 'notify', change)
    await pod.jobs.add(countJob, { key: 'waits' })
    await pod.jobs.add(laterJob, { key: 'waits with a priority' })
    await pod.jobs.add(countJob, { key: 'is delayed' }, { delay: 3_600_000 })
    const statesOf = (queues: readonly (QueueOverview | undefined)[]) =>
      queues.map((queue) => queue && { ...queue, oldestSeconds: queue.oldestSeconds !== null })

    const together = statesOf((await listQueues(pod)) ?? [])
    const alone = statesOf(await Promise.all(QUEUES.map((name) => findQueue(pod, name))))

    expect(together).toEqual(alone)
    expect(await notifyQueue()).toMatchObject({ waiting: 2, delayed: 1, workers: 1 })
    await pod.jobs.discard('notify')
  })

  it('accept work while paused, count it as waiting, and run it when they are resumed', async () => {
    await pauseQueue(pod, actor, 'notify', change)
    await pod.jobs.add(countJob, { key: 'one' })

    expect(await notifyQueue()).toMatchObject({
      state: 'paused',
      waiting: 1,
      requested: { actor: 'command', reason: 'a test' },
    })
    expect(await isIdle(pod, ['notify'])).toBe(false)
    expect(ran).toEqual([])

    await resumeQueue(pod, actor, 'notify', change)
    await vi.waitFor(() => expect(ran).toEqual(['one']))
    expect(await notifyQueue()).toMatchObject({ state: 'running', waiting: 0 })
  })

  it('stay paused when the queue store was emptied, and run again when the time is over', async () => {
    await pauseQueue(pod, actor, 'notify', change)
    await stores.emptyQueue()
    expect(await pod.jobs.isPaused('notify')).toBe(false)

    await heartbeat.beatNow()
    expect(await pod.jobs.isPaused('notify')).toBe(true)

    await pauseQueue(pod, actor, 'notify', { ...change, until: new Date(Date.now() - 1_000) })
    await heartbeat.beatNow()
    await heartbeat.beatNow()
    expect(await pod.jobs.isPaused('notify')).toBe(false)
  })

  it('add no jobs while they are drained; the work waits in the database', async () => {
    await drainQueue(pod, actor, 'notify', { ...change, confirm: 'notify' })
    await heartbeat.beatNow()
    await heartbeat.beatNow()

    await expect(pod.jobs.add(countJob, { key: 'lost' })).rejects.toThrow(QueueUnavailable)
    await pod.db.transaction((transaction) => enqueueJob(pod, transaction, countJob, { key: 'kept' }))
    await pod.db('outbox').update({ sweepAt: new Date(0) })
    await sweep(pod)
    expect(await notifyQueue()).toMatchObject({ state: 'drained', waiting: 0 })
    expect(ran).toEqual([])

    await resumeQueue(pod, actor, 'notify', change)
    await heartbeat.beatNow()
    await heartbeat.beatNow()
    await pod.db('outbox').update({ sweepAt: new Date(0) })
    await sweep(pod)
    await vi.waitFor(() => expect(ran).toEqual(['kept']))
    await pod.db('outbox').delete()
  })

  it('list their jobs without the data, and lose those that have not begun on request', async () => {
    await pauseQueue(pod, actor, 'notify', change)
    await pod.jobs.add(countJob, { key: 'now' })
    await pod.jobs.add(countJob, { key: 'later' }, { delay: 3_600_000 })

    const shown = { name: 'count', attempts: 0, fault: null, finishedAt: null, addedAt: expect.any(Number) }
    for (const state of ['waiting', 'delayed'] as const) {
      const [job, ...more] = await pod.jobs.list('notify', state, 0, 10)
      expect([job, more]).toMatchObject([shown, []])
      expect(Object.keys(job ?? {})).not.toContain('data')
    }
    expect(await discardJobs(pod, actor, 'notify', { ...change, confirm: 'notify' })).toEqual({ count: 2 })
    await resumeQueue(pod, actor, 'notify', change)
    expect(await isIdle(pod, ['notify'])).toBe(true)
    expect(ran).toEqual([])
  })

  it('list waiting jobs page by page in the order in which they run, those with a priority last, also while paused', async () => {
    await pauseQueue(pod, actor, 'notify', change)
    expect(await notifyQueue()).toMatchObject({ waiting: 0, oldestSeconds: null })
    await pod.jobs.add(laterJob, { key: 'last' })
    expect(await notifyQueue()).toMatchObject({ waiting: 1, oldestSeconds: expect.any(Number) })
    for (let added = 1; added <= 5; added += 1) await pod.jobs.add(countJob, { key: String(added) })

    const keys = async (from: number) => {
      const jobs = await pod.jobs.list('notify', 'waiting', from, 2)
      return Promise.all(jobs.map(async ({ id }) => (await pod.jobs.find('notify', id))?.data.key))
    }
    expect([await keys(0), await keys(2), await keys(4), await keys(6)]).toEqual([
      ['1', '2'],
      ['3', '4'],
      ['5', 'last'],
      [],
    ])
    expect((await pod.jobs.oldestWaiting('notify'))?.data).toEqual({ key: 'last' })
    await discardJobs(pod, actor, 'notify', { ...change, confirm: 'notify' })
  })

  it('list the jobs after a job and before it, also after changes of the list', async () => {
    await pauseQueue(pod, actor, 'notify', change)
    for (let added = 1; added <= 7; added += 1) await pod.jobs.add(countJob, { key: String(added) })
    const page = async (where: Omit<JobPage, 'limit'> = {}) => {
      const listed = await listJobs(pod, 'notify', 'waiting', { ...where, limit: 2 })
      const found = await Promise.all(listed.items.map(({ id }) => pod.jobs.find('notify', id)))
      return { ...listed, keys: found.map((job) => job?.data.key) }
    }
    const remove = async (id: string | undefined) => (await pod.jobs.find('notify', id ?? ''))?.remove()

    const first = await page()
    expect([first.keys, first.first]).toEqual([['1', '2'], undefined])
    await remove(first.items[0]?.id)
    const second = await page({ after: first.last })
    expect(second.keys).toEqual(['3', '4'])
    expect((await page({ before: second.first })).keys).toEqual(['2'])
    for (const { id } of second.items) await remove(id)
    // Both have run, and those before them: the list begins with the jobs after them.
    await remove(first.items[1]?.id)
    expect((await page({ after: second.last })).keys).toEqual(['5', '6'])
    await discardJobs(pod, actor, 'notify', { ...change, confirm: 'notify' })
  })

  it('list the delayed jobs after a job that runs now, which changes the order of no other', async () => {
    const delays = [1, 2, 3, 4, 5].map((hours) => hours * 3_600_000)
    for (const delay of delays) await pod.jobs.add(countJob, { key: String(delay) }, { delay })
    const page = async (where: Omit<JobPage, 'limit'> = {}) =>
      listJobs(pod, 'notify', 'delayed', { ...where, limit: 2 })

    const first = await page()
    const second = await page({ after: first.last })
    await (await pod.jobs.find('notify', second.items[1]?.id ?? ''))?.remove()
    const third = await page({ after: second.last })
    const fourth = await page({
      after: third.items.length > 0 ? { id: 'gone', place: 4, finishedAt: null } : undefined,
    })

    const ids = [first, second, third].flatMap(({ items }) => items.map(({ id }) => id))
    expect([ids.length, new Set(ids).size]).toEqual([5, 5])
    expect([fourth.items, fourth.first?.id, fourth.last]).toEqual([[], 'gone', undefined])
    await discardJobs(pod, actor, 'notify', { ...change, confirm: 'notify' })
  })

  it('lose many inbound jobs by an operation, which continues after a crash and leaves jobs that were added later', async () => {
    await pod.jobs.pause('inbound')
    const accepted = { acceptedAt: new Date(0).toISOString(), messages: ['<xml/>'] }
    const add = async (count: number, delay = 0) => {
      for (let added = 0; added < count; added += 1) await pod.jobs.add(receivePublicJob, accepted, { delay })
    }
    await add(150)
    await add(150, 3_600_000)

    const { count, task } = await discardJobs(pod, actor, 'inbound', { ...change, confirm: 'inbound' })
    expect([count, task]).toMatchObject([300, { kind: 'queue.discard', target: 'inbound', total: 300 }])
    await vi.waitUntil(() => Date.now() > Date.parse(String(task?.details['addedBy'])))
    await add(1)
    // They are before the older delayed jobs, and more than a chunk.
    await add(201, 60_000)
    await expect(finishBackgroundTasks(pod, crashInChunk(discardTaskHandlers, 2))).rejects.toThrow('the worker dies')
    await finishBackgroundTasks(pod, discardTaskHandlers)

    expect(await pod.jobs.counts('inbound')).toMatchObject({ waiting: 1, delayed: 201 })
    const dead = pod.db('outbox').where({ queue: 'inbound' }).whereRaw(`data ->> 'fault' = 'discarded'`)
    expect(await dead).toHaveLength(300)
    await pod.db('outbox').delete()
    for (const queue of ['inbound', 'maintenance'] as const) await pod.jobs.discard(queue)
    await pod.jobs.resume('inbound')
  })

  it('have an audit entry for discarded jobs, and are swept, although the queue did not answer in time', async () => {
    await pauseQueue(pod, actor, 'notify', change)
    await pod.jobs.add(countJob, { key: 'now' })
    await pod.db.transaction((transaction) => enqueueJob(pod, transaction, countJob, { key: 'of a row' }))
    await vi.waitFor(async () => expect(await notifyQueue()).toMatchObject({ waiting: 2 }))
    await pod.db('outbox').update({ sweepAt: pod.db.raw(`now() + interval '1 hour'`) })
    const discard: typeof pod.jobs.discard = async (queue) => {
      await pod.jobs.discard(queue)
      throw new QueueUnavailable('The queue did not answer within 1000 ms.')
    }
    const late = { ...pod, jobs: { ...pod.jobs, discard } }

    await expect(discardJobs(late, actor, 'notify', { ...change, confirm: 'notify' })).rejects.toThrow(QueueUnavailable)
    expect(await latestEntry()).toMatchObject({ action: 'queue.discard', after: { count: 2 } })
    expect(await pod.db('outbox').whereRaw('sweep_at <= now()')).toHaveLength(1)
    await pod.db('outbox').delete()
  })

  const latestEntry = () => pod.db('audit_entries').orderBy('id', 'desc').first('action', 'after')
  const deadMessages = () => pod.db('outbox').where({ queue: 'inbound' }).whereNotNull('failedAt')
  /** The pod with removals of jobs that end differently. */
  const withRemove = (remove: (job: Job) => Promise<void>): QueuePod => {
    const find: typeof pod.jobs.find = async (queue, id) => {
      const job = await pod.jobs.find(queue, id)
      return job && Object.assign(Object.create(job), { remove: () => remove(job) })
    }
    return { ...pod, jobs: { ...pod.jobs, find } }
  }
  const addMessages = (...messages: readonly string[]) =>
    pod.jobs.add(receivePublicJob, { acceptedAt: new Date(0).toISOString(), messages })

  it('keep the messages of an inbound job whose removal takes effect although its answer is lost', async () => {
    await pod.jobs.pause('inbound')
    await addMessages('<one/>', '<two/>')
    const cut = withRemove(async (job) => {
      await job.remove()
      throw new Error('Connection is closed.')
    })
    expect(await discardJobs(cut, actor, 'inbound', { ...change, confirm: 'inbound' })).toEqual({ count: 2 })
    expect(await pod.jobs.counts('inbound')).toMatchObject({ waiting: 0 })
    expect(await deadMessages()).toHaveLength(2)
    await pod.db('outbox').delete()

    await addMessages('<three/>')
    const lost = withRemove(() => Promise.reject(new Error('Connection is closed.')))
    await expect(discardJobs(lost, actor, 'inbound', { ...change, confirm: 'inbound' })).rejects.toThrow(
      QueueUnavailable,
    )
    expect(await deadMessages()).toHaveLength(1)
    await pod.db('outbox').delete()
    await pod.jobs.discard('inbound')
    await pod.jobs.resume('inbound')
  })

  it('leave the messages of an inbound job to the worker that has begun it', async () => {
    await pod.jobs.pause('inbound')
    await addMessages('<one/>')
    const ends: (() => void)[] = []
    let serving: ReturnType<typeof pod.jobs.serve> | undefined
    const begun = withRemove(async (job) => {
      const isRunning = new Promise<void>((resolve) => {
        const run = () =>
          new Promise<void>((end) => {
            ends.push(end)
            resolve()
          })
        serving = pod.jobs.serve('inbound', run, {
          ...{ concurrency: 1, lockMs: 30_000, stalledCheckMs: 30_000, backoff: () => 0 },
        })
      })
      await pod.jobs.resume('inbound')
      await isRunning
      await job.remove()
    })
    expect(await discardJobs(begun, actor, 'inbound', { ...change, confirm: 'inbound' })).toEqual({ count: 0 })
    expect(await deadMessages()).toEqual([])
    for (const end of ends) end()
    await serving?.close()
  })

  it('end the replay of a rejected message that is discarded', async () => {
    await pod.jobs.pause('inbound')
    const [{ id } = { id: 0 }] = await pod
      .db('quarantine')
      .insert({ receivedAt: new Date(), fault: 'Filtered', payload: '<xml/>', bytes: 6, isWhole: true, digest: 'd' })
      .returning('id')
    await pod.db.transaction(async (transaction) => {
      runOrAddAfterCommit(pod, transaction, await replayQuarantined(transaction, [id], { isReleased: false }))
    })
    await vi.waitFor(async () => expect(await pod.jobs.counts('inbound')).toMatchObject({ waiting: 1 }))

    await discardJobs(pod, actor, 'inbound', { ...change, confirm: 'inbound' })
    expect(await pod.db('quarantine').where({ id }).first('state', 'result')).toEqual({
      state: 'replayed',
      result: 'discarded',
    })
    await pod.db('outbox').delete()
    await pod.jobs.resume('inbound')
  })

  it('end a promotion whose jobs all refuse it, and record the jobs that were promoted before an outage', async () => {
    await pauseQueue(pod, actor, 'notify', change)
    const job = { name: 'count', data: {}, promote: () => Promise.reject(new Error('READONLY')) }
    const request = vi.fn(async () => Array(100).fill(job))
    const control = createQueueControl({ request } as never)
    await control.promote('notify', { limit: 1_000, onPromoted: () => {} })
    expect(request).toHaveBeenCalledTimes(1)

    await pod.jobs.add(countJob, { key: 'later' }, { delay: 3_600_000 })
    const promote: typeof pod.jobs.promote = async (queue, promotion) => {
      await pod.jobs.promote(queue, promotion)
      throw new QueueUnavailable('The queue is unavailable.')
    }
    const failing = { ...pod, jobs: { ...pod.jobs, promote } }
    await expect(promoteJobs(failing, actor, 'notify', change)).rejects.toThrow(QueueUnavailable)
    expect(await latestEntry()).toMatchObject({ action: 'queue.promote', after: { count: 1 } })
    await pod.jobs.discard('notify')
  })

  it('run delayed jobs at once on request', async () => {
    await pod.jobs.add(countJob, { key: 'later' }, { delay: 3_600_000 })

    expect(await promoteJobs(pod, actor, 'notify', change)).toBe(1)
    await vi.waitFor(() => expect(ran).toEqual(['later']))
    await untilIdle(pod)
  })

  it('cannot be the queue that finds lost work, nor stopped without a reason', async () => {
    await expect(pauseQueue(pod, actor, 'maintenance', change)).rejects.toMatchObject({ reason: 'queue_not_pausable' })
    await expect(drainQueue(pod, actor, 'maintenance', change)).rejects.toMatchObject({ reason: 'queue_not_pausable' })
    await expect(pauseQueue(pod, actor, 'notify', { ...change, reason: ' ' })).rejects.toMatchObject({
      reason: 'reason_needed',
    })
  })

  it('are sampled only while jobs wait', async () => {
    await sampleQueues(pod)
    expect(await pod.db('queue_samples').count()).toMatchObject([{ count: 0 }])
    await pauseQueue(pod, actor, 'notify', change)
    await pod.jobs.add(countJob, { key: 'sampled' })
    await sampleQueues(pod)
    await sampleQueues(pod)
    expect(await pod.db('queue_samples').select('queue', 'waiting')).toEqual([{ queue: 'notify', waiting: 1 }])
  })

  it('belong to processes that are listed until their heartbeat stops', async () => {
    await heartbeat.beatNow()
    expect(await listProcesses(pod.db)).toMatchObject([
      { kind: 'worker', pid: process.pid, facts: { queues: ['notify'], jobs: [] } },
    ])
    await pod.db('processes').update({ seenAt: pod.db.raw(`now() - interval '31 seconds'`) })
    expect(await listProcesses(pod.db)).toEqual([])
  })
})
