import { Job } from 'bullmq'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Refusal } from '../../src/domain/refusals.js'
import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import { showDeadLetter } from '../../src/jobs/dead-letters/show-dead-letter.js'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { NewerVersionNeeded } from '../../src/jobs/job-version.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../src/jobs/outbox/load-job.js'
import { sweepAllNow } from '../../src/jobs/outbox/sweep-rows.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import type { Handler } from '../../workers/run-job.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { sweep } from '../../workers/sweeper.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

const countJob = defineJob<{ key: string }>()('notify', 'count', { ...retriedForHours, attempts: 3 })
const rowJob = defineJob<{ outboxId: number }>()('notify', 'count', retriedForHours)

describe.each(queueBackends)('a worker, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let workers: RunningWorkers | undefined

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod({ definitions: [countJob] })
    await pod.db.schema.createTable('effects', (table) => table.text('key').notNullable())
  })
  afterAll(() => stores.close())
  beforeEach(async () => {
    await workers?.close()
    await stores.emptyQueue()
    await pod.db('outbox').delete()
    await pod.db('effects').delete()
    return () => workers?.close()
  })

  /** Starts a worker with this handler. */
  function work(count: Handler, timing = {}): void {
    workers = startTestWorkers(pod, { queues: ['notify'], handlers: { notify: { count } }, timing })
  }

  function enqueue(key: string): Promise<void> {
    return pod.db.transaction((transaction) => enqueueJob(pod, transaction, countJob, { key }))
  }

  /** A handler whose effect and completion are one transaction. */
  const count: Handler = async ({ db }, work: JobContext<{ key: string }>) => {
    await db.transaction(async (transaction) => {
      await transaction('effects').insert({ key: work.data.key })
      await work.finish(transaction)
    })
  }

  const effects = (): Promise<string[]> => pod.db('effects').orderBy('key').pluck('key')

  it('runs a job of the outbox, and deletes its row together with the effect', async () => {
    work(count)
    await enqueue('one')
    await untilIdle(pod)

    expect(await effects()).toEqual(['one'])
    expect(await pod.db('outbox')).toEqual([])
  })

  it('deletes the row of a handler that has no transaction of its own', async () => {
    const seen: string[] = []
    work(async (_, { data }: JobContext<{ key: string }>) => void seen.push(data.key))
    await enqueue('one')
    await untilIdle(pod)

    expect(seen).toEqual(['one'])
    expect(await pod.db('outbox')).toEqual([])
  })

  if (backend.store === 'Redis') {
    it('drops a job that Redis has evicted, and runs the job of its outbox row', async () => {
      await enqueue('one')
      await vi.waitFor(async () => expect((await pod.jobs.counts('notify')).waiting).toBe(1))
      const { id = '' } = (await pod.jobs.oldestWaiting('notify')) ?? {}
      await stores.redis?.evict(`notify:${id}`)

      work(count)
      await vi.waitFor(async () => expect(await pod.jobs.counts('notify')).toMatchObject({ waiting: 0, active: 0 }))
      expect(await pod.jobs.find('notify', id)).toBeUndefined()
      await sweepAllNow(pod.db)
      await sweep(pod)
      await untilIdle(pod)

      expect(await effects()).toEqual(['one'])
      expect(await listDeadLetters(pod)).toEqual([])
    })
  }

  it('has one effect when two workers run the same job at once', async () => {
    let begun = 0
    const both = withResolvers<void>()
    work(async (inner, work: JobContext<never>, deadline) => {
      begun += 1
      if (begun === 2) both.resolve()
      await both.promise
      await count(inner, work, deadline)
    })
    const [{ id }] = await pod
      .db('outbox')
      .insert({ queue: 'notify', name: 'count', data: '{"key":"one"}' })
      .returning('id')
    await pod.jobs.add(rowJob, { outboxId: id })
    await pod.jobs.add(rowJob, { outboxId: id })
    await untilIdle(pod)

    expect(begun).toBe(2)
    expect(await effects()).toEqual(['one'])
    expect((await pod.jobs.counts('notify')).failed).toBe(0)
  })

  it('has no effect when the row is deleted', async () => {
    work(count)
    await pod.jobs.add(rowJob, { outboxId: 4711 })
    await untilIdle(pod)

    expect(await effects()).toEqual([])
    expect((await pod.jobs.counts('notify')).failed).toBe(0)
  })

  it.each([
    ['a refusal', new Refusal('not_author', 'no')],
    ['a message that is wrong', new ProtocolError('InvalidSignature', 'no')],
  ])('drops %s after one run', async (_, error) => {
    const handler = vi.fn(() => Promise.reject(error))
    work(handler)
    await enqueue('one')
    await untilIdle(pod)

    expect(handler).toHaveBeenCalledTimes(1)
    expect(await pod.db('outbox')).toEqual([])
    expect((await pod.jobs.counts('notify')).failed).toBe(0)
  })

  it('retries a failed job until it succeeds', async () => {
    let runs = 0
    work(async (inner, work: JobContext<never>, deadline) => {
      runs += 1
      if (runs < 3) throw new Error('not this time')
      await count(inner, work, deadline)
    })
    await enqueue('one')
    await untilIdle(pod)

    expect(runs).toBe(3)
    expect(await effects()).toEqual(['one'])
  })

  it('keeps a job that failed too often as a dead letter without the error messages', async () => {
    const handler = vi.fn(() => Promise.reject(new TypeError('Alice told Bob a secret')))
    work(handler)
    await enqueue('one')
    const dead = { queue: 'notify', name: 'count', fault: 'internal', attempts: 3 }
    await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([dead]))

    expect(handler).toHaveBeenCalledTimes(3)
    const [letter] = await listDeadLetters(pod)
    const shown = await showDeadLetter(pod, letter?.id ?? '')
    expect(shown).toMatchObject({ data: { key: 'one' }, payload: null, stack: expect.stringContaining('TypeError') })
    expect(shown?.stack).toContain('run-job.test.ts')
    expect(JSON.stringify(await pod.jobs.failed('notify', 0, 10))).not.toContain('secret')
  })

  it('keeps a temporary protocol fault under its own name', async () => {
    work(() => Promise.reject(new ProtocolError('DiscoveryFailed', 'no such person today')))
    await enqueue('one')

    await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([{ fault: 'DiscoveryFailed' }]))
  })

  describe('puts back a job that needs a newer version, without counting an attempt,', () => {
    const onceMore = { ...retriedForHours, attempts: 1 }
    const newerCountJob = defineJob<{ key: string }>()('notify', 'count', onceMore, 2)
    const strangeJob = defineJob<{ key: string }>()('notify', 'of-tomorrow', onceMore)
    /** A pod of the next release on the same stores. */
    let newerPod: QueuePod
    beforeAll(async () => {
      newerPod = await stores.openPod({ definitions: [newerCountJob, strangeJob] })
    })

    /** The newer release adds a job directly, and one with an outbox row. */
    async function addBoth(job: typeof newerCountJob | typeof strangeJob): Promise<void> {
      await newerPod.jobs.add(job, { key: 'direct' })
      await newerPod.db.transaction((transaction) => enqueueJob(newerPod, transaction, job, { key: 'row' }))
    }

    async function untilPutBack(jobs: number, times: number): Promise<void> {
      await vi.waitFor(async () => {
        const [waiting, delayed] = await Promise.all(
          (['waiting', 'delayed'] as const).map((state) => pod.jobs.list('notify', state, 0, 10)),
        )
        const found = await Promise.all(
          [...(waiting ?? []), ...(delayed ?? [])].map(({ id }) => pod.jobs.find('notify', id)),
        )
        expect(found.filter((job) => job !== undefined && job.data.timesPutBack >= times)).toHaveLength(jobs)
      })
    }

    /** The worker of the newer release: each job is its first attempt, and no suspect. */
    async function expectRunByNewer(name: string): Promise<void> {
      await workers?.close()
      const runs: unknown[] = []
      const handle: Handler = async (_, { data }: JobContext<{ key: string }>) => void runs.push(data.key)
      workers = startTestWorkers(newerPod, { queues: ['notify'], handlers: { notify: { [name]: handle } } })
      await untilIdle(newerPod)
      expect(runs.sort()).toEqual(['direct', 'row'])
      expect(await listDeadLetters(newerPod)).toEqual([])
    }

    it('because its name is unknown', async () => {
      work(count)
      await addBoth(strangeJob)
      await untilPutBack(2, 3)

      expect(await listDeadLetters(pod)).toEqual([])
      await expectRunByNewer('of-tomorrow')
    })

    it('because its data is newer', async () => {
      const handler = vi.fn(count)
      work(handler)
      await addBoth(newerCountJob)
      await untilPutBack(2, 3)

      expect(handler).not.toHaveBeenCalled()
      expect(await listDeadLetters(pod)).toEqual([])
      await expectRunByNewer('count')
    })

    it('because its name is that of a property of every object', async () => {
      work(count)
      await pod.jobs.add(defineJob<object>()('notify', 'constructor', retriedForHours), {})
      await untilPutBack(1, 1)
    })

    it('because its handler finds data of a newer version', async () => {
      work(() => Promise.reject(new NewerVersionNeeded('This program has no operation x.')))
      await enqueue('one')
      await untilPutBack(1, 3)
    })

    it('and runs it as usual afterwards: its starts are those of no killed worker', async () => {
      let runs = 0
      work(async (inner, work: JobContext<never>, deadline) => {
        runs += 1
        if (runs < 4) throw new NewerVersionNeeded('later')
        await count(inner, work, deadline)
      })
      const job = vi.spyOn(Job.prototype, 'updateData')
      await enqueue('one')
      await untilIdle(pod)

      expect(await effects()).toEqual(['one'])
      const noted = job.mock.calls.map(([data]) => data)
      expect(noted).toMatchObject([{ timesPutBack: 1 }, { timesPutBack: 2 }, { timesPutBack: 3 }])
      job.mockRestore()
    })

    it('but drops one that a schedule adds again', async () => {
      const schedule = { job: defineJob<object>()('notify', 'scheduled', { attempts: 1 }), intervalMs: 3_600_000 }
      await pod.jobs.keepSchedules('notify', [schedule])
      const states = ['waiting', 'delayed'] as const
      const [job] = (await Promise.all(states.map((state) => pod.jobs.list('notify', state, 0, 10)))).flat()
      if (job === undefined) throw new Error('The schedule has added no job.')
      work(count)
      await pod.jobs.promote('notify', { limit: 10, onPromoted: () => {} })
      await vi.waitFor(async () => expect(await pod.jobs.find('notify', job.id)).toBeUndefined())
      expect(await pod.jobs.counts('notify')).toMatchObject({ failed: 0 })
      await pod.jobs.endOtherSchedules('notify', [])
    })
  })

  it('aborts a handler that takes too long, also when it ignores the signal', async () => {
    const signals: AbortSignal[] = []
    work(
      (_, __, deadline) => {
        signals.push(deadline)
        return new Promise(() => {})
      },
      { timeoutMs: 20 },
    )
    await enqueue('one')

    await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([{ fault: 'timeout', attempts: 3 }]))
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true])
  })

  it('waits for an unavailable database without using up an attempt', async () => {
    const attempts: number[] = []
    const trouble = Object.assign(new Error('terminating connection due to administrator command'), { code: '57P01' })
    work(
      async (inner, work: JobContext<never>, deadline) => {
        attempts.push(1)
        if (attempts.length < 3) throw trouble
        await count(inner, work, deadline)
      },
      { backoff: () => 3_600_000 },
    )
    await enqueue('one')
    await untilIdle(pod)

    expect(attempts).toHaveLength(3)
    expect(await effects()).toEqual(['one'])
  })

  it('gives up a job that causes the database error itself', async () => {
    const handler = vi.fn(() => Promise.reject(Object.assign(new Error('statement timeout'), { code: '57014' })))
    work(handler)
    await enqueue('one')

    await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([{ fault: 'internal' }]))
    expect(handler).toHaveBeenCalledTimes(3 * 2)
  })
})

function withResolvers<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((resolver) => {
    resolve = resolver
  })
  return { promise, resolve }
}
