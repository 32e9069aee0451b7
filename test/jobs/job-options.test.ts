import { type Job, type JobsOptions, UnrecoverableError } from 'bullmq'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { makePhotoJob, receivePublicJob } from '../../src/jobs/definitions.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import { JOB_DEFINITIONS as jobs } from '../../src/jobs/queues/job-options.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import { createMessageReader, splitJob } from '../../workers/messages-of-job.js'
import { sweep } from '../../workers/sweeper.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { replayDeadLetters } from '../support/queues/change-dead-letters.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

/** Options that belong to one job and not to its definition. */
const OF_ONE_JOB = ['deduplication', 'timestamp', 'jobId', 'delay', 'prevMillis', 'repeat']

describe.each(queueBackends)('the options of a job, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())
  afterEach(async () => {
    await pod.db('outbox').delete()
    await stores.emptyQueue()
  })

  /** Runs this many jobs; returns their options by queue and name. */
  async function optionsOfNext(
    count: number,
    handle: (job: Job) => Promise<void> = async () => {},
  ): Promise<Readonly<Record<string, JobsOptions>>> {
    const seen: Job[] = []
    const run = async (job: Job) => {
      seen.push(job)
      await handle(job)
    }
    const workers = QUEUES.map((queue) =>
      pod.jobs.serve(queue, run, { concurrency: 4, lockMs: 5_000, stalledCheckMs: 5_000, backoff: () => 10 }),
    )
    try {
      await vi.waitFor(() => expect(seen).toHaveLength(count), { interval: 20 })
    } finally {
      await Promise.all(workers.map((worker) => worker.close()))
    }
    return Object.fromEntries(seen.map(({ queueName, name, opts }) => [`${queueName} ${name}`, ofDefinition(opts)]))
  }

  /** Inserts outbox rows whose jobs are lost. */
  async function writeLostRows(failedAt: Date | null = null): Promise<void> {
    const sweepAt = pod.db.raw(`now() - interval '1 second'`)
    await pod
      .db('outbox')
      .insert(jobs.map(({ queue, name }) => ({ queue, name, data: {}, payload: '-', sweepAt, failedAt })))
  }

  it('are those of its definition when it is enqueued', async () => {
    for (const job of jobs) await pod.jobs.add(job, {})
    for (const job of jobs) await pod.jobs.addAll(job, [{}])
    expect(await optionsOfNext(2 * jobs.length)).toEqual(defined)
  })

  it('are those of its definition when it is enqueued with a deduplication key', async () => {
    for (const job of jobs) await pod.jobs.addEach(job, [{ deduplicationKey: job.name, data: {} }])
    expect(await optionsOfNext(jobs.length)).toEqual(defined)
  })

  it('are those of its definition when it is written to the outbox in a transaction', async () => {
    await pod.db.transaction(async (transaction) => {
      for (const job of jobs) await enqueueJob(pod, transaction, job, {})
    })
    expect(await optionsOfNext(jobs.length)).toEqual(defined)
  })

  it('are those of its definition when the sweeper adds it again', async () => {
    await writeLostRows()
    await sweep(pod)
    expect(await optionsOfNext(jobs.length)).toEqual(defined)
  })

  it('are those of its definition when the dead letter of an outbox row is replayed', async () => {
    await writeLostRows(new Date())
    expect(await replayDeadLetters(pod)).toBe(jobs.length)
    expect(await optionsOfNext(jobs.length)).toEqual(defined)
  })

  it('stay the same when the dead letter of a job without a row is replayed', async () => {
    const priority = 7
    const upload = { guid: 'g', file: 'f', name: 'n', userId: 1, use: 'pending', aspectIds: [] } as const
    await pod.jobs.add(makePhotoJob, upload, { priority })
    const before = await optionsOfNext(1, () => Promise.reject(new UnrecoverableError('given up')))
    expect(await replayDeadLetters(pod)).toBe(1)
    const after = await optionsOfNext(1)
    expect(after).toEqual(before)
    expect(after['photos make-photo']).toEqual({ ...ofDefinition(makePhotoJob.options), priority })
  })

  it('are those of its definition, with the priority of the packed job, when a packed job is split', async () => {
    const priority = 10
    const packed = { acceptedAt: new Date().toISOString(), messages: ['one', 'two'] }
    await pod.jobs.add(receivePublicJob, packed, { priority })
    const alone: JobsOptions[] = []
    await optionsOfNext(3, async (job) => {
      if (job.data.messages.length === 1) return void alone.push(ofDefinition(job.opts))
      await splitJob(pod, job, await createMessageReader(pod)(job), { alone: true })
    })
    const options = { ...ofDefinition(receivePublicJob.options), priority }
    expect(alone).toEqual([options, options])
  })
})

const defined = Object.fromEntries(jobs.map(({ queue, name, options }) => [`${queue} ${name}`, ofDefinition(options)]))

/** A job without a number of attempts has one attempt. */
function ofDefinition(options: JobsOptions): JobsOptions {
  return { attempts: 1, ...Object.fromEntries(Object.entries(options).filter(([name]) => !OF_ONE_JOB.includes(name))) }
}
