import type { Job } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { openPacking, type PackingLimits } from '../../src/jobs/inbound/pack-messages.js'
import { openQueueSizeEstimate } from '../../src/jobs/inbound/queue-size-estimate.js'
import type { QueueCounts } from '../../src/jobs/queues/inspect-queues.js'
import { INBOUND_QUEUES } from '../../src/jobs/queues/queue-names.js'
import type { Services } from '../../src/services/services.js'
import { recordInboundQueue } from '../support/queues/inbound-queue-recorder.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

const anybody = { ip: '192.0.2.1' }

/** The real queue may need more than a second on a busy machine. */
const PATIENT: PackingLimits = { ...RECEIVE_LIMITS, bytes: 1e9, acknowledgedMs: 60_000 }

describe.each(queueBackends)('the packing of messages into jobs, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: Services
  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(() => stores.close())

  it('has a message in the queue when the promise resolves, with its time of arrival', async () => {
    const now = new Date('2024-05-06T07:08:09.123Z')
    const packing = openPacking({ ...pod, now: () => now }, PATIENT)

    await packing.acceptPublic('an envelope', anybody)
    await packing.acceptPrivate({ recipientGuid: 'somebody', envelope: 'an encrypted envelope' }, anybody)

    const jobs: Job[] = []
    for (const queue of INBOUND_QUEUES) {
      const job = await pod.jobs.oldestWaiting(queue)
      if (job) jobs.push(job)
    }
    expect(jobs.map(({ name, data }) => [name, data])).toEqual([
      [
        'receive-public',
        { acceptedAt: now.toISOString(), messages: [{ envelope: 'an envelope', source: anybody.ip }] },
      ],
      [
        'receive-private',
        {
          acceptedAt: now.toISOString(),
          messages: [{ recipientGuid: 'somebody', envelope: 'an encrypted envelope', source: anybody.ip }],
        },
      ],
    ])
    packing.close()
    await using taken = recordInboundQueue(pod)
    await taken.until(2)
  })

  it('packs at most 128 messages or 256 KB into a job, and a larger message alone', async () => {
    const packing = openPacking(pod, PATIENT)
    const large = 'x'.repeat(1_000_000)
    const messages = [...Array.from({ length: 300 }, (_, number) => `message ${number}`), large, 'y'.repeat(200_000)]

    await Promise.all(messages.map((message) => packing.acceptPublic(message, anybody)))

    packing.close()
    await using taken = recordInboundQueue(pod)
    const came = (await taken.until(messages.length)).map(({ envelope }) => envelope)
    expect(came.toSorted()).toEqual(messages.toSorted())
    expect(Math.max(...taken.jobs)).toBe(128)
    expect(taken.jobs.length).toBeLessThanOrEqual(6)
  })

  it('packs messages of a source apart that sends more than its share of a second', async () => {
    const { added, pod } = cannedQueue({ inbound: 0 })
    const packing = openPacking(pod, { ...RECEIVE_LIMITS, bytes: 1e9, sharedMessagesPerSecond: 3 })
    const fast = { ip: '2001:db8::1:2' }
    for (const number of [1, 2, 3, 4]) await packing.acceptPublic(`message ${number}`, fast)
    await packing.acceptPublic('from its site', { ip: '2001:db8:0:1::1' })
    await packing.acceptPublic('from another site', { ip: '2001:db8:1::1' })

    packing.close()
    expect(added.map(({ priority }) => priority)).toEqual([undefined, undefined, undefined, 10, 10, undefined])
  })

  it('gives other sources precedence over a source that fills the queue', async () => {
    const packing = openPacking(pod, {
      ...PATIENT,
      fairFromMessages: 2,
      messagesPerShare: 3,
      pollIntervalMs: 60_000,
    })
    const flooder = { ip: '2001:db8::1:2' }
    const sameHouse = { ip: '2001:db8:0:0:ffff::1' }
    for (const number of [1, 2, 3, 4, 5, 6, 7]) await packing.acceptPublic(`flood ${number}`, flooder)
    await packing.acceptPublic('flood from beside', sameHouse)

    await packing.acceptPublic('from somebody else', { ip: '2001:db8:0:1::1' })

    packing.close()
    await using taken = recordInboundQueue(pod)
    const order = (await taken.until(9)).map(({ envelope }) => envelope)
    expect(order.indexOf('from somebody else')).toBe(6) // two before counting starts, three of the guaranteed share, and the first look
    expect(order.at(-1)).toBe('flood from beside')
  })
})

/** A queue that accepts everything and reports the length that the test sets. */
function cannedQueue(counts: { inbound: number }, memory = { isFree: true }) {
  const added: { readonly priority: number | undefined; readonly messages: number }[] = []
  const jobs: Pick<Services['jobs'], 'add' | 'counts' | 'hasFreeMemory'> = {
    async add(_job, data, { priority } = {}) {
      const { messages } = data as { readonly messages: readonly unknown[] }
      added.push({ priority, messages: messages.length })
      counts.inbound += 1
    },
    hasFreeMemory: async () => memory.isFree,
    async counts(queue): Promise<QueueCounts> {
      return { waiting: queue === 'inbound' ? counts.inbound : 0, active: 0, delayed: 0, failed: 0 }
    },
  }
  return { added, pod: { jobs: jobs as Services['jobs'], config: readConfig({}), now: () => new Date() } }
}

describe('a job on its way to the queue', () => {
  it('is joined by a second concurrent job of 32 messages, and followed by the rest when it has arrived', async () => {
    const { pod } = cannedQueue({ inbound: 0 })
    const jobs: { readonly messages: number; arrive(): void }[] = []
    const add: Services['jobs']['add'] = (_job, data) =>
      new Promise((resolve) => {
        const { messages } = data as { readonly messages: readonly unknown[] }
        jobs.push({ messages: messages.length, arrive: resolve })
      })
    const packing = openPacking({ ...pod, jobs: { ...pod.jobs, add } })
    const send = async (count: number) => {
      const accepted = Array.from({ length: count }, () => packing.acceptPublic('an envelope', anybody))
      await new Promise(setImmediate)
      return accepted
    }
    const sizes = () => jobs.map(({ messages }) => messages)
    const accepted = await send(1)
    expect(sizes()).toEqual([1])

    accepted.push(...(await send(31)))
    expect(sizes()).toEqual([1])
    accepted.push(...(await send(1)))
    expect(sizes()).toEqual([1, 32])

    accepted.push(...(await send(5)))
    jobs[1]?.arrive()
    await Promise.all(accepted.slice(1, 33))
    expect(sizes()).toEqual([1, 32])
    jobs[0]?.arrive()
    await accepted[0]
    await vi.waitFor(() => expect(sizes()).toEqual([1, 32, 5]))
    jobs[2]?.arrive()
    await Promise.all(accepted)
    packing.close()
  })
})

describe('the admission of messages', () => {
  const limits: PackingLimits = { ...RECEIVE_LIMITS, bytes: 1_000, pollIntervalMs: 5 }
  const soon = { interval: 5 }

  it('is limited by the allowed total, held bytes included', () => {
    const packing = openPacking(cannedQueue({ inbound: 0 }).pod, limits)

    packing.hold({ ip: undefined }, 999)
    expect(packing.refusalOf(anybody)).toBeUndefined()
    packing.hold({ ip: undefined }, 1)
    expect(packing.refusalOf(anybody)).toBe('full')
    packing.hold({ ip: undefined }, -1)
    expect(packing.refusalOf(anybody)).toBeUndefined()
    packing.close()
  })

  it('stops while the queue is full, and resumes as soon as it is shorter', async () => {
    const counts = { inbound: 0 }
    const packing = openPacking(cannedQueue(counts).pod, limits)
    for (const size of [300, 300, 500]) await packing.acceptPublic('x'.repeat(size), anybody)
    expect(packing.refusalOf(anybody)).toBe('full')
    expect(packing.size()).toEqual({ heldBytes: 0, queuedBytes: 1_100, queuedMessages: 3 })

    counts.inbound = 2

    await vi.waitFor(() => expect(packing.refusalOf(anybody)).toBeUndefined(), soon)
    expect(packing.size()).toEqual({ heldBytes: 0, queuedBytes: 800, queuedMessages: 2 })
    packing.close()
  })

  it('stops for a process that starts when other processes have filled the queue', async () => {
    const packing = openPacking(cannedQueue({ inbound: 500_000 }).pod, { ...limits, bytes: 1e12 })
    expect(packing.refusalOf(anybody)).toBeUndefined()

    await vi.waitFor(() => expect(packing.refusalOf(anybody)).toBe('full'), soon)
    packing.close()
  })

  it('stops while the store of the queue is nearly full, and resumes when it has space', async () => {
    const memory = { isFree: false }
    const packing = openPacking(cannedQueue({ inbound: 0 }, memory).pod, limits)
    await vi.waitFor(() => expect(packing.refusalOf(anybody)).toBe('full'), soon)

    memory.isFree = true

    await vi.waitFor(() => expect(packing.refusalOf(anybody)).toBeUndefined(), soon)
    packing.close()
  })

  it('stops for a source that has used its share while the queue is long', async () => {
    const counts = { inbound: 20 }
    const { added, pod } = cannedQueue(counts)
    const packing = openPacking(pod, {
      ...limits,
      bytes: 1e9,
      fairFromMessages: 10,
      messagesPerShare: 2,
      messagesOfSource: 4,
    })
    packing.refusalOf(anybody)
    await vi.waitFor(() => expect(packing.size().queuedMessages).toBe(20), soon)

    for (const number of [1, 2, 3, 4]) {
      expect([number, packing.refusalOf(anybody)]).toEqual([number, undefined])
      await packing.acceptPublic('a message', anybody)
    }

    expect(packing.refusalOf(anybody)).toBe('over_share')
    expect(packing.refusalOf({ ip: '::ffff:192.0.2.1' })).toBe('over_share')
    expect(packing.refusalOf({ ip: '192.0.2.2' })).toBeUndefined()
    expect(added.slice(0, 4).map(({ priority }) => priority === undefined)).toEqual([true, true, false, false])
    for (const ip of ['127.0.0.1', '::1', '::ffff:10.1.2.3', '172.20.0.1', 'fd00::1', undefined]) {
      for (let message = 0; message < 5; message += 1) await packing.acceptPublic('a message', { ip })
      expect([ip, packing.refusalOf({ ip })]).toEqual([ip, undefined])
    }
    counts.inbound = 5
    await vi.waitFor(() => expect(packing.refusalOf(anybody)).toBeUndefined(), soon)
    packing.close()
  })

  it('separates all networks of one IPv6 /48 when they have sent a few shares together', async () => {
    const { added, pod } = cannedQueue({ inbound: 20 })
    const shares = { messagesPerShare: 2, messagesOfSource: 4, sharesOfSite: 2 }
    const packing = openPacking(pod, { ...limits, bytes: 1e9, fairFromMessages: 10, sources: 8, ...shares })
    packing.refusalOf(anybody)
    await vi.waitFor(() => expect(packing.size().queuedMessages).toBe(20), soon)

    // One message of each /64.
    for (let network = 1; network <= 10; network += 1) {
      await packing.acceptPublic('a message', { ip: `2001:db8:1:${network}::1` })
    }
    await packing.acceptPublic('a message', { ip: '2001:db8:2:1::1' })
    await packing.acceptPublic('a message', anybody)

    expect(added.map(({ priority }) => priority !== undefined)).toEqual([
      ...[false, false, false, false],
      ...[true, true, true, true, true, true],
      ...[false, false],
    ])
    expect(packing.refusalOf({ ip: '2001:db8:1:99::1' })).toBe('over_share')
    expect(packing.refusalOf({ ip: '2001:db8:2:1::1' })).toBeUndefined()
    packing.close()
  })

  it('separates one network of an IPv6 /48, and not its neighbours', async () => {
    const { added, pod } = cannedQueue({ inbound: 20 })
    const packing = openPacking(pod, {
      ...limits,
      bytes: 1e9,
      fairFromMessages: 10,
      messagesPerShare: 2,
      sharesOfSite: 2,
    })
    packing.refusalOf(anybody)
    await vi.waitFor(() => expect(packing.size().queuedMessages).toBe(20), soon)

    for (let message = 1; message <= 8; message += 1) {
      await packing.acceptPublic('a message', { ip: '2001:db8:1:1::1' })
    }
    await packing.acceptPublic('a message', { ip: '2001:db8:1:2::1' })

    expect(added.at(-2)?.priority).toBeDefined()
    expect(added.at(-1)?.priority).toBeUndefined()
    packing.close()
  })

  it('refuses all networks of one IPv6 /48 that hold a few shares of the bytes', () => {
    const packing = openPacking(cannedQueue({ inbound: 0 }).pod, { ...limits, bytes: 1_000, sharesOfSite: 2 })
    packing.hold({ ip: '2001:db8:1:1::1' }, 249)
    packing.hold({ ip: '2001:db8:1:2::1' }, 250)
    expect(packing.refusalOf({ ip: '2001:db8:1:3::1' })).toBeUndefined()

    packing.hold({ ip: '2001:db8:1:4::1' }, 1)

    expect(packing.refusalOf({ ip: '2001:db8:1:3::1' })).toBe('over_share')
    expect(packing.refusalOf({ ip: '2001:db8:2:1::1' })).toBeUndefined()
    packing.close()
  })

  it('refuses a source that holds its share of the bytes, and no other', () => {
    const packing = openPacking(cannedQueue({ inbound: 0 }).pod, { ...limits, bytes: 1_000 })
    packing.hold(anybody, 249)
    expect(packing.refusalOf(anybody)).toBeUndefined()

    packing.hold(anybody, 1)

    expect(packing.refusalOf(anybody)).toBe('over_share')
    expect(packing.refusalOf({ ip: '192.0.2.2' })).toBeUndefined()
    packing.hold(anybody, -250)
    expect(packing.refusalOf(anybody)).toBeUndefined()
    packing.close()
  })

  it('separates large messages of a source when they are many bytes in total', async () => {
    const { added, pod } = cannedQueue({ inbound: 0 })
    const packing = openPacking(pod, { ...limits, bytes: 1e9, fairFromBytes: 100, bytesPerShare: 250 })
    for (let message = 0; message < 5; message += 1) await packing.acceptPublic('x'.repeat(101), anybody)
    await packing.acceptPublic('of another source', { ip: '192.0.2.2' })

    expect(added.map(({ priority }) => priority === undefined)).toEqual([true, true, true, false, false, true])
    packing.close()
  })

  it('enqueues a small message without waiting for a large one', async () => {
    const { pod } = cannedQueue({ inbound: 0 })
    const add: Services['jobs']['add'] = async (_job, data) => {
      const { messages } = data as { readonly messages: readonly string[] }
      if (messages.some((message) => message.length > 1_000)) await new Promise(() => undefined)
    }
    const packing = openPacking({ ...pod, jobs: { ...pod.jobs, add } }, { ...limits, bytes: 1e9 })
    const large = 'x'.repeat(RECEIVE_LIMITS.bytesPerJob + 1)
    for (let message = 0; message < 3; message += 1) packing.acceptPublic(large, anybody).catch(() => undefined)
    await new Promise(setImmediate)

    await packing.acceptPublic('small', anybody)
    packing.close()
  })

  it('does not count a message that the queue rejected', async () => {
    const { pod } = cannedQueue({ inbound: 0 })
    const jobs = { ...pod.jobs, add: () => Promise.reject(new Error('away')) }
    const packing = openPacking({ ...pod, jobs }, limits)

    await expect(packing.acceptPublic('x'.repeat(900), anybody)).rejects.toThrow('away')

    expect(packing.size().queuedBytes).toBe(0)
    packing.close()
  })
})

describe('the queue size estimate', () => {
  it('removes the oldest jobs first', () => {
    const estimate = openQueueSizeEstimate()
    for (const bytes of [100, 20, 3]) estimate.add({ messages: 1, bytes }).acknowledged()

    estimate.beginCount()(2)

    expect(estimate.total()).toEqual({ messages: 2, bytes: 23 })
  })

  it('counts a message that arrives during the measurement once', () => {
    const estimate = openQueueSizeEstimate()
    const seen = estimate.beginCount()
    estimate.add({ messages: 2, bytes: 50 }).acknowledged()

    seen(0)
    expect(estimate.total()).toEqual({ messages: 2, bytes: 50 })

    estimate.beginCount()(1)
    expect(estimate.total()).toEqual({ messages: 2, bytes: 50 })
  })

  it('assumes that jobs of other processes are as large as its own recent ones', () => {
    const estimate = openQueueSizeEstimate()
    for (let job = 0; job < 200; job += 1) estimate.add({ messages: 10, bytes: 1_000 }).acknowledged()

    estimate.beginCount()(400)

    const { messages, bytes } = estimate.total()
    expect([Math.round(messages / 10), Math.round(bytes / 1_000)]).toEqual([400, 400])
  })
})
