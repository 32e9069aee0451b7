import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import { openTcpProxy } from '../support/http/tcp-proxy.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { startProcess, type TestProcess } from '../support/processes/child-process.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers } from '../support/queues/test-workers.js'
import { noOpJob } from './no-op.js'

const worker = new URL('no-op-worker.ts', import.meta.url).pathname

describe.each(queueBackends)('a worker that receives a stop signal, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let running: TestProcess | undefined

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
    await pod.db.schema.createTable('effects', (table) => table.integer('key').notNullable())
  })
  afterAll(() => stores.close())
  beforeEach(() => () => running?.kill())

  it('finishes its active jobs, fetches no more, and exits with code 0', async () => {
    const { databaseUrl, redisUrl, prefix } = stores
    // With a second slot the worker would have requested another job already, which could arrive at the same moment.
    running = startProcess(worker, { databaseUrl, redisUrl, prefix, jobs: 0, concurrency: 'notify=1' })
    await running.messageWith('ready')
    await pod.db.transaction((transaction) => enqueueJob(pod, transaction, noOpJob, { key: 1, milliseconds: 500 }))
    await running.messageWith('begun')

    running.signal('SIGTERM')
    await running.messageWith('stopping')
    await pod.db.transaction((transaction) => enqueueJob(pod, transaction, noOpJob, { key: 2 }))

    expect(await running.ended).toEqual({ code: 0, signal: null })
    expect(await pod.db('effects').pluck('key')).toEqual([1])
    expect(await pod.jobs.counts('notify')).toMatchObject({ active: 0, delayed: 0, failed: 0 })
    expect(await pod.db('outbox').select('data')).toEqual([{ data: { key: 2 } }])
  })

  it('ends at once without active jobs while the queue is unavailable', async () => {
    const proxy = await openTcpProxy(Number(new URL(stores.redisUrl ?? stores.databaseUrl).port))
    const proxiedPod = await stores.openPod(stores.queueThrough(proxy))
    const workers = startTestWorkers(proxiedPod, {
      queues: ['fetch'],
      handlers: {},
      timing: { abortAfterMs: 3_600_000, closeWithinMs: 3_600_000 },
    })
    await vi.waitFor(async () => expect(await pod.jobs.workers('fetch')).toBe(1))

    await proxy.close()

    await workers.close()
  })

  it('returns a job that does not finish in time to the queue, as one failed attempt', async () => {
    const endless = defineJob<object>()('fetch', 'endless', retriedForHours)
    const started = withResolvers()
    const deadlines: AbortSignal[] = []
    const workers = startTestWorkers(pod, {
      queues: ['fetch'],
      handlers: {
        fetch: {
          endless(_, __, deadline) {
            deadlines.push(deadline)
            started.resolve()
            return new Promise(() => {})
          },
        },
      },
      timing: { abortAfterMs: 50, closeWithinMs: 10_000, backoff: () => 3_600_000 },
    })
    await pod.jobs.add(endless, {})
    await started.promise

    await workers.close()

    expect(deadlines.map(({ aborted }) => aborted)).toEqual([true])
    expect(await pod.jobs.counts('fetch')).toMatchObject({ active: 0, delayed: 1, failed: 0 })
  })
})

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((resolver) => {
    resolve = resolver
  })
  return { promise, resolve }
}
