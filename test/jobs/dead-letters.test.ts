import { Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type JobPage, listJobs } from '../../src/domain/operations/queues.js'
import type { JobSummary } from '../../src/jobs/bullmq/job-summaries.js'
import {
  countDeadLetters,
  countDeadLettersByEach,
  countFailedJobs,
} from '../../src/jobs/dead-letters/count-dead-letters.js'
import type { DeadLetterFilter, DeadLetterPosition } from '../../src/jobs/dead-letters/dead-letter.js'
import { findDeadLetters, listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import { showDeadLetter } from '../../src/jobs/dead-letters/show-dead-letter.js'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../src/jobs/outbox/load-job.js'
import { openSharedMetrics } from '../../src/operations/shared-metrics.js'
import type { Services } from '../../src/services/services.js'
import type { Handler } from '../../workers/run-job.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { dropDeadLetters, replayDeadLetters } from '../support/queues/change-dead-letters.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

const countJob = defineJob<{ key: string }>()('notify', 'count', { ...retriedForHours, attempts: 1 })

describe.each(queueBackends)('dead letters, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let workers: RunningWorkers
  let broken = true

  const count: Handler = async ({ db }, work: JobContext<{ key: string }>) => {
    if (broken) throw new Error('this handler is broken')
    await db.transaction(async (transaction) => {
      await transaction('effects').insert({ key: work.data.key })
      await work.finish(transaction)
    })
  }

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod({ definitions: [countJob] })
    await pod.db.schema.createTable('effects', (table) => table.text('key').notNullable())
    workers = startTestWorkers(pod, { queues: ['notify'], handlers: { notify: { count } } })
  })
  afterAll(async () => {
    await workers.close()
    await stores.close()
  })
  beforeEach(async () => {
    broken = true
    await dropDeadLetters(pod)
    await pod.db('effects').delete()
  })

  /** Both kinds: of an outbox row, and of a job without one. */
  async function addTwoDeadLetters(): Promise<void> {
    await pod.db.transaction((transaction) => enqueueJob(pod, transaction, countJob, { key: 'row' }))
    await pod.jobs.add(countJob, { key: 'job' })
    const dead = { fault: 'internal', attempts: 1 }
    await untilFailed(2)
    expect(await listDeadLetters(pod)).toMatchObject([dead, dead])
  }

  /** The row of a job is marked before the queue has ended the job. */
  async function untilFailed(failed: number): Promise<void> {
    await vi.waitFor(async () => expect(await pod.jobs.counts('notify')).toMatchObject({ active: 0, failed }), {
      interval: 20,
    })
  }

  const effects = (): Promise<string[]> => pod.db('effects').orderBy('key').pluck('key')

  it('are listed, and shown one by one', async () => {
    await addTwoDeadLetters()

    const letters = await listDeadLetters(pod)
    expect(letters.map(({ id }) => id).sort()).toEqual([
      expect.stringMatching(/^notify\/\S+$/),
      expect.stringMatching(/^outbox-\d+$/),
    ])
    for (const letter of letters) {
      expect(letter).toMatchObject({ queue: 'notify', name: 'count', fault: 'internal', attempts: 1 })
      expect(letter.failedAt.getTime()).toBeGreaterThanOrEqual(letter.createdAt.getTime())
    }
    const shown = await Promise.all(letters.map(({ id }) => showDeadLetter(pod, id)))
    expect(shown.map((letter) => letter?.data)).toEqual(expect.arrayContaining([{ key: 'row' }, { key: 'job' }]))
    expect(await showDeadLetter(pod, 'outbox-0')).toBeUndefined()
  })

  it('are a metric, each once: a failed job of a row is not counted beside its row', async () => {
    await addTwoDeadLetters()

    const counts = [{ queue: 'notify', fault: 'internal', count: 1 }]
    expect(await countFailedJobs(pod, 100)).toEqual({ counts, isCut: false })
    const text = await metricsOf(pod)
    expect(text).toContain('pod_dead_letters{queue="notify",fault="internal"} 2\n')
    expect(text).toContain('pod_dead_letters_incomplete 0\n')
  })

  it('are counted before the first scrape, which does not wait for the count', async () => {
    await addTwoDeadLetters()
    const queuesWithFailedJobs = vi.fn(pod.jobs.queuesWithFailedJobs)
    const registry = new Registry()

    const scrape = openSharedMetrics(registry, { ...pod, jobs: { ...pod.jobs, queuesWithFailedJobs } })
    expect(queuesWithFailedJobs).toHaveBeenCalledTimes(1)
    await scrape()

    expect(await registry.metrics()).toContain('pod_dead_letters{queue="notify",fault="internal"} 2\n')
    expect(queuesWithFailedJobs).toHaveBeenCalledTimes(1)
  })

  async function metricsOf(services: QueuePod): Promise<string> {
    const registry = new Registry()
    await openSharedMetrics(registry, services)()
    return registry.metrics()
  }

  it('are no metric while the failed jobs cannot be read: alert rules would take the rows alone for all', async () => {
    await addTwoDeadLetters()
    const queuesWithFailedJobs = () => Promise.reject(new Error('the queue is away'))

    const text = await metricsOf({ ...pod, jobs: { ...pod.jobs, queuesWithFailedJobs } })

    expect(text).not.toMatch(/^pod_dead_letters/m)
    expect(text).toContain('pod_queue_paused{queue="notify"} 0\n')
  })

  it('are counted without reading all failed jobs: those of rows are among the jobs that are read', async () => {
    await pod.jobs.add(countJob, { key: 'oldest' })
    await untilFailed(1)
    for (const key of ['one', 'two'])
      await pod.db.transaction((transaction) => enqueueJob(pod, transaction, countJob, { key }))
    await untilFailed(3)

    expect(await countFailedJobs(pod, 2)).toEqual({ counts: [], isCut: true })
    const counts = [{ queue: 'notify', fault: 'internal', count: 1 }]
    expect(await countFailedJobs(pod, 3)).toEqual({ counts, isCut: false })
    expect(await countFailedJobs(pod, 4)).toEqual({ counts, isCut: false })
  })

  it('are filtered by queue and by fault, up to a limit', async () => {
    await addTwoDeadLetters()

    expect(await listDeadLetters(pod, { queue: 'fetch' })).toEqual([])
    expect(await listDeadLetters(pod, { queue: 'notify' })).toHaveLength(2)
    expect(await listDeadLetters(pod, { fault: 'crashed' })).toEqual([])
    expect(await listDeadLetters(pod, { fault: 'internal' })).toHaveLength(2)
    expect(await listDeadLetters(pod, {}, 1)).toHaveLength(1)
  })

  it('are counted by several properties at once, up to the latest; each list of failed jobs is read once', async () => {
    for (const key of ['one', 'two', 'three']) await pod.jobs.add(countJob, { key })
    await untilFailed(3)
    const countFailedWithoutRow = vi.fn(pod.jobs.countFailedWithoutRow)
    const source = { ...pod, jobs: { ...pod.jobs, countFailedWithoutRow } }

    const counts = await countDeadLettersByEach(source, {}, ['queue', 'fault', 'pod'], { groups: 10, latest: 2 })

    expect([...counts]).toEqual([
      ['queue', [{ value: 'notify', count: 2 }]],
      ['fault', [{ value: 'internal', count: 2 }]],
      ['pod', [{ value: null, count: 2 }]],
    ])
    expect(countFailedWithoutRow).toHaveBeenCalledTimes(1)
  })

  it('are counted by hour, of a time and with a fault', async () => {
    await addTwoDeadLetters()
    const count = (filter: DeadLetterFilter) => countDeadLetters(pod, filter, 'hour', { groups: 10 })
    const [first] = await listDeadLetters(pod)
    const [hour, later] = [first?.failedAt ?? new Date(0), new Date(Date.now() + 3_600_000)]

    const counted = await count({})
    expect(counted.reduce((sum, each) => sum + each.count, 0)).toBe(2)
    expect(counted.map(({ value }) => value)).toContain(`${hour.toISOString().slice(0, 13)}:00:00Z`)
    expect(await count({ until: later, fault: 'internal' })).toEqual(counted)
    expect([await count({ since: later }), await count({ fault: 'crashed' })]).toEqual([[], []])
  })

  it('of one fault are found without reading the failed jobs of the others', async () => {
    for (const key of ['one', 'two', 'three']) await pod.jobs.add(countJob, { key })
    await untilFailed(3)
    const failedWithoutRow = vi.fn(pod.jobs.failedWithoutRow)
    const source = { ...pod, jobs: { ...pod.jobs, failedWithoutRow } }

    expect(await listDeadLetters(source, { queue: 'notify', fault: 'crashed' }, 1)).toEqual([])
    expect(failedWithoutRow).toHaveBeenCalledTimes(1)
    expect(await listDeadLetters(source, { queue: 'notify', fault: 'internal' }, 1)).toHaveLength(1)
    expect(failedWithoutRow).toHaveBeenCalledTimes(2)
  })

  it('among the failed jobs are listed after a job, also after that job was deleted', async () => {
    for (const key of ['one', 'two', 'three']) await pod.jobs.add(countJob, { key })
    await untilFailed(3)
    const ids = (await pod.jobs.list('notify', 'failed', 0, 3)).map(({ id }) => id)
    const page = async (where: Omit<JobPage, 'limit'>) => {
      const listed = await listJobs(pod, 'notify', 'failed', { ...where, limit: 1 })
      return { ...listed, ids: listed.items.map(({ id }) => id) }
    }

    const first = await page({})
    const second = await page({ after: first.last })
    expect([first.ids, second.ids, (await page({ before: second.first })).ids]).toEqual([[ids[0]], [ids[1]], [ids[0]]])
    await (await pod.jobs.find('notify', ids[0] ?? ''))?.remove()
    expect((await page({ after: second.last })).ids).toEqual([ids[2]])
    expect((await page({ after: first.last })).ids).toEqual([ids[1]])
    expect((await page({ before: second.first })).ids).toEqual([ids[1]])
  })

  it('that failed in the same millisecond are listed after one of them that was deleted', async () => {
    const jobs = ['a', 'b', 'c'].map((id) => ({ id, finishedAt: 1 }) as JobSummary)
    const source = {
      jobs: { ...pod.jobs, list: async (_queue, _state, from, count) => jobs.slice(from, from + count) } as Pick<
        Services,
        'jobs'
      >['jobs'],
    }
    const page = async (where: Omit<JobPage, 'limit'>) =>
      (await listJobs(source, 'notify', 'failed', { ...where, limit: 2 })).items.map(({ id }) => id)
    const { last } = await listJobs(source, 'notify', 'failed', { limit: 2 })
    jobs.splice(1, 1)

    expect([await page({ after: last }), await page({ before: last })]).toEqual([['c'], ['a']])
  })

  it('run again when they are replayed, and are deleted', async () => {
    await addTwoDeadLetters()
    broken = false

    expect(await replayDeadLetters(pod)).toBe(2)
    await untilIdle(pod)

    expect(await effects()).toEqual(['job', 'row'])
    expect(await listDeadLetters(pod)).toEqual([])
    expect(await replayDeadLetters(pod)).toBe(0)
    expect(await pod.db('outbox')).toEqual([])
  })

  it('become dead letters again when the cause persists', async () => {
    await addTwoDeadLetters()

    await replayDeadLetters(pod)

    await untilFailed(2)
    expect(await listDeadLetters(pod)).toHaveLength(2)
  })

  it('are left to the sweeper when the queue does not accept them', async () => {
    await addTwoDeadLetters()
    const addOutboxRows = () => Promise.reject(new Error('the queue is away'))

    await replayDeadLetters({ ...pod, jobs: { ...pod.jobs, addOutboxRows } })

    const due = pod.db('outbox').whereNull('failedAt').where('sweepAt', '<=', pod.db.fn.now())
    expect(await due.select('data')).toEqual([{ data: { key: 'row' } }])
    await pod.db('outbox').delete()
    // The job without a row runs again, and fails again before the next test begins.
    await untilFailed(1)
  })

  it('are replayed and discarded one by one', async () => {
    await addTwoDeadLetters()
    const letters = await listDeadLetters(pod)
    const row = letters.find(({ id }) => id.startsWith('outbox-'))
    const job = letters.find(({ id }) => id.startsWith('notify/'))
    broken = false

    expect(await replayDeadLetters(pod, { ids: [row?.id ?? ''] })).toBe(1)
    await untilIdle(pod)
    expect(await effects()).toEqual(['row'])
    expect(await dropDeadLetters(pod, { ids: [job?.id ?? ''] })).toBe(1)

    expect(await listDeadLetters(pod)).toEqual([])
    expect(await pod.jobs.counts('notify')).toMatchObject({ waiting: 0, failed: 0 })
  })

  it('of outbox rows still exist after the queue was emptied, and are replayed from the rows', async () => {
    await addTwoDeadLetters()

    await stores.emptyQueue()
    expect(await listDeadLetters(pod)).toMatchObject([
      { id: expect.stringMatching(/^outbox-/), fault: 'internal', attempts: 1 },
    ])
    broken = false
    expect(await replayDeadLetters(pod)).toBe(1)
    await untilIdle(pod)

    expect(await effects()).toEqual(['row'])
    expect(await listDeadLetters(pod)).toEqual([])
  })

  it('are read page by page in both directions, also those of one millisecond', async () => {
    await addTwoDeadLetters()
    const { id: senderId, podId } = await addRemotePerson(pod, 'quin@far.example')
    await pod.db.raw(
      `insert into outbox (queue, name, data, failed_at)
       select 'fetch', 'fetch-entity', '{"fault":"gone","from":"quin@far.example"}', timestamptz '2026-01-01T01:00Z' + number / 3 * interval '1 ms'
       from generate_series(1, 7) as number`,
    )
    await pod.db.raw(
      `with message as (
         insert into outbound_messages (record, guid, verb, sender_id, public, entity)
         select 'post', 'g' || number, 'create', :senderId::bigint, true, '<post/>' from generate_series(1, 4) as number
         returning id
       )
       insert into deliveries (message_id, pod_id, state, last_fault, died_at)
       select id, :podId, 'dead', 'refused', '2026-01-01T01:00:00.001Z' from message`,
      { podId, senderId },
    )
    const all = await findDeadLetters(pod, {}, { limit: 100 })
    expect(all).toHaveLength(13)

    const read = async (direction: 'before' | 'after', start: DeadLetterPosition | undefined) => {
      const found: string[] = []
      let position = start
      for (;;) {
        const page = await findDeadLetters(pod, {}, { [direction]: position, limit: 2 })
        found.push(...page.map(({ id }) => id))
        if (page.length < 2) return found
        position = page.at(-1)
      }
    }
    const ids = all.map(({ id }) => id)
    expect(await read('before', undefined)).toEqual(ids)
    expect(await read('after', all.at(-1))).toEqual(ids.slice(0, -1).reverse())
    expect(await dropDeadLetters(pod, { pod: 'far.example' })).toBe(11)
    expect(await listDeadLetters(pod)).toHaveLength(2)
  })

  it('are discarded with their rows', async () => {
    await addTwoDeadLetters()

    expect(await dropDeadLetters(pod)).toBe(2)

    expect(await listDeadLetters(pod)).toEqual([])
    expect(await pod.db('outbox')).toEqual([])
    expect(await pod.jobs.counts('notify')).toMatchObject({ waiting: 0, failed: 0 })
  })
})
