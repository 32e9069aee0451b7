import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../src/jobs/outbox/load-job.js'
import type { Handler } from '../../workers/run-job.js'
import { openTcpProxy, type TcpProxy } from '../support/http/tcp-proxy.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers } from '../support/queues/test-workers.js'

const countJob = defineJob<{ key: string }>()('notify', 'count', retriedForHours)

/** Only the worker connects to its queue through the proxy. */
describe.each(queueBackends)('a worker whose queue in $store becomes unavailable', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let proxy: TcpProxy

  const count: Handler = async ({ db }, work: JobContext<{ key: string }>) => {
    await db.transaction(async (transaction) => {
      await transaction('effects').insert({ key: work.data.key })
      await work.finish(transaction)
    })
  }
  const options = { queues: ['notify'], handlers: { notify: { count } } } as const

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
    proxy = await openTcpProxy(Number(new URL(stores.redisUrl ?? stores.databaseUrl).port))
    await pod.db.schema.createTable('effects', (table) => table.text('key').notNullable())
  })
  afterAll(async () => {
    await stores.close()
    await proxy.close()
  })

  async function expectJobToRun(key: string): Promise<void> {
    await pod.db.transaction((transaction) => enqueueJob(pod, transaction, countJob, { key }))
    await vi.waitFor(async () => expect(await pod.db('effects').pluck('key')).toContain(key), {
      timeout: 15_000,
      interval: 20,
    })
  }

  it('resumes without a restart after the queue was cut off or frozen', async () => {
    const proxiedPod = await stores.openPod(stores.queueThrough(proxy))
    const workers = startTestWorkers({ ...proxiedPod, db: pod.db }, options)
    await expectJobToRun('before')

    await proxy.refuse()
    await expect(proxiedPod.jobs.counts('notify')).rejects.toThrow('queue')
    await proxy.recover()
    await expectJobToRun('after the cut')

    proxy.freeze()
    await expect(proxiedPod.jobs.counts('notify')).rejects.toThrow('queue')
    await proxy.recover()
    await expectJobToRun('after the freeze')
    await workers.close()
  }, 180_000)

  it('starts to work when the queue becomes available after the worker', async () => {
    await proxy.refuse()
    const proxiedPod = await stores.openPod(stores.queueThrough(proxy))
    const workers = startTestWorkers({ ...proxiedPod, db: pod.db }, options)
    await expect(proxiedPod.jobs.counts('notify')).rejects.toThrow('queue')

    await proxy.recover()
    await expectJobToRun('late')
    await workers.close()
  }, 30_000)

  it('can be closed while the queue is unavailable', async () => {
    const proxiedPod = await stores.openPod(stores.queueThrough(proxy))
    const workers = startTestWorkers(
      { ...proxiedPod, db: pod.db },
      { ...options, timing: { abortAfterMs: 300, closeWithinMs: 600 } },
    )
    await expectJobToRun('once more')

    await proxy.refuse()
    await workers.close()
    await proxiedPod.close()
    await proxy.recover()
  }, 30_000)
})
