import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { QueueUnavailable } from '../../src/jobs/queues/queue-unavailable.js'
import { openTcpProxy, type TcpProxy } from '../support/http/tcp-proxy.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

const greet = defineJob<{ name: string }>()('notify', 'greet', retriedForHours)

describe.each(queueBackends)('a producer, with the queue in $store', (backend) => {
  let stores: TestStores
  let proxy: TcpProxy

  beforeAll(async () => {
    stores = await openTestStores(backend)
    proxy = await openTcpProxy(Number(new URL(stores.redisUrl ?? stores.databaseUrl).port))
  })
  afterAll(async () => {
    await stores.close()
    await proxy.close()
  })

  /** Connects to the queue through the proxy, and to the database directly. */
  function openBehindProxy(): Promise<QueuePod> {
    return stores.openPod(stores.queueThrough(proxy))
  }

  function waiting(pod: QueuePod): Promise<number> {
    return pod.jobs.counts('notify').then(({ waiting }) => waiting)
  }

  async function untilAcknowledged(pod: QueuePod): Promise<void> {
    await vi.waitFor(() => pod.jobs.add(greet, { name: 'anybody' }), { interval: 50 })
  }

  it('has its job in the queue when the promise resolves', async () => {
    const pod = await stores.openPod()
    await untilAcknowledged(pod)
    const before = await waiting(pod)

    await pod.jobs.add(greet, { name: 'Alice' })

    expect(await waiting(pod)).toBe(before + 1)
  })

  it('adds an equal job only once while the first waits', async () => {
    const pod = await stores.openPod()
    await untilAcknowledged(pod)
    const before = await waiting(pod)

    await pod.jobs.add(greet, { name: 'Alice' }, { deduplicationKey: 'greet-alice' })
    await pod.jobs.add(greet, { name: 'Alice' }, { deduplicationKey: 'greet-alice' })

    expect(await waiting(pod)).toBe(before + 1)
  })

  it('gets an error at once when the queue becomes unavailable, and works again after recovery', async () => {
    const pod = await openBehindProxy()
    await untilAcknowledged(pod)

    await proxy.refuse()
    await expect(pod.jobs.add(greet, { name: 'Alice' })).rejects.toThrow(QueueUnavailable)

    await proxy.recover()
    await untilAcknowledged(pod)
  })

  it('gets an error when the queue is frozen, instead of waiting for it', async () => {
    const pod = await openBehindProxy()
    await untilAcknowledged(pod)

    proxy.freeze()
    await expect(pod.jobs.add(greet, { name: 'Alice' })).rejects.toThrow(QueueUnavailable)

    await proxy.recover()
    await untilAcknowledged(pod)
  })

  it('gets an error when the queue is frozen at its first job, and works after recovery', async () => {
    const pod = await openBehindProxy()

    proxy.freeze()
    await expect(pod.jobs.add(greet, { name: 'Alice' })).rejects.toThrow(QueueUnavailable)

    await proxy.recover()
    await untilAcknowledged(pod)
  })

  it('starts without the queue, gets an error, and works when the queue becomes available', async () => {
    await proxy.refuse()
    const pod = await openBehindProxy()
    await expect(pod.jobs.add(greet, { name: 'Alice' })).rejects.toThrow(QueueUnavailable)

    await proxy.recover()
    await untilAcknowledged(pod)
  })

  it('starts while the queue is frozen, gets an error, and works after recovery', async () => {
    proxy.freeze()
    const opening = openBehindProxy()
    const refusal = opening.then((pod) =>
      expect(pod.jobs.add(greet, { name: 'Alice' })).rejects.toThrow(QueueUnavailable),
    )
    await refusal

    await proxy.recover()
    await untilAcknowledged(await opening)
  })
})
