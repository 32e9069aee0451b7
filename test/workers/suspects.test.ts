import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ObservedWorker } from '../../src/jobs/bullmq/observed-worker.js'
import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import { defineJob, receivePublicJob, retriedForHours } from '../../src/jobs/definitions.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../src/jobs/outbox/load-job.js'
import { createMessageReader, splitJob } from '../../workers/messages-of-job.js'
import { createJobRunner, type Handler } from '../../workers/run-job.js'
import { createSuspectRunner } from '../../workers/suspects.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { replayDeadLetters } from '../support/queues/change-dead-letters.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { untilIdle } from '../support/queues/test-workers.js'

const countJob = defineJob<{ key: string }>()('notify', 'count', retriedForHours)

describe.each(queueBackends)('a job that kills its worker, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
    await pod.db.schema.createTable('effects', (table) => table.text('key').notNullable())
  })
  afterAll(() => stores.close())

  /** Runs one worker after another; `die` ends one as kill -9 does: its jobs stay active and their locks are not renewed. */
  function startMortalWorkers(handler: (die: () => Promise<never>) => Handler): { close(): Promise<void> } {
    let worker: ObservedWorker
    function start(): void {
      let dead = false
      const die = async () => {
        if (!dead) {
          dead = true
          await worker.close(true)
          start()
        }
        return new Promise<never>(() => {})
      }
      const count: Handler = async (inner, work, deadline) => {
        if (dead) return new Promise(() => {})
        return handler(die)(inner, work, deadline)
      }
      const run = createJobRunner(pod, {
        handlers: { count },
        timeoutMs: 60_000,
        abortSignal: new AbortController().signal,
        runSuspect: createSuspectRunner(),
        putBackDelay: () => 10,
      })
      const alive: typeof run = (job) => (dead ? new Promise(() => {}) : run(job))
      worker = pod.jobs.serve('notify', alive, { concurrency: 32, lockMs: 300, stalledCheckMs: 150, backoff: () => 10 })
    }
    start()
    return { close: () => worker.close() }
  }

  it('is split into one job per message, once, although the worker is killed during the split', async () => {
    const messages = ['one', 'two', 'three']
    await pod.jobs.add(receivePublicJob, { acceptedAt: new Date().toISOString(), messages })
    const job = await pod.jobs.oldestWaiting('inbound')
    if (job === undefined) throw new Error('The job has just been added.')

    for (let run = 1; run <= 2; run += 1) {
      await splitJob(pod, job, await createMessageReader(pod)(job), { alone: false })
    }

    expect((await pod.jobs.counts('inbound')).waiting).toBe(1 + messages.length)
    await stores.emptyQueue()
  })

  it('becomes a dead letter after five starts alone, and its neighbours are stored', async () => {
    let starts = 0
    let poisonous = true
    const workers = startMortalWorkers((die) => async ({ db }, work: JobContext<{ key: string }>) => {
      if (work.data.key === 'poison' && poisonous) {
        starts += 1
        await die()
      }
      await db.transaction(async (transaction) => {
        await transaction('effects').insert({ key: work.data.key })
        await work.finish(transaction)
      })
    })
    await pod.db.transaction(async (transaction) => {
      for (let index = 0; index < 20; index += 1) {
        await enqueueJob(pod, transaction, countJob, { key: index === 7 ? 'poison' : `${index}` })
      }
    })

    await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([{ fault: 'crashed' }]), {
      timeout: 18_000,
      interval: 50,
    })
    await untilIdle(pod)
    expect(starts).toBe(6) // once in the batch, five times alone
    expect(await pod.db('effects').pluck('key')).toHaveLength(19)
    expect(await pod.db('effects').distinct('key').pluck('key')).toHaveLength(19)

    poisonous = false
    await replayDeadLetters(pod)
    await untilIdle(pod)
    expect(await pod.db('effects').where({ key: 'poison' })).toHaveLength(1)
    expect(await listDeadLetters(pod)).toEqual([])
    await workers.close()
  }, 40_000)
})
