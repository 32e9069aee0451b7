import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { addPodChecks } from '../../src/federation/discovery/scheduled-pod-checks.js'
import { checkPodJob } from '../../src/jobs/definitions.js'
import { readWorkStatus } from '../../src/jobs/operations/work-status.js'
import { startDeliveries, startDeliveriesAfterCommit } from '../../src/jobs/outbox/start-deliveries.js'
import { Person } from '../../src/persistence/models/person.js'
import type { RemotePod } from '../../src/persistence/models/remote-pod.js'
import { type DuePod, findOverduePods } from '../../src/persistence/outbound/due-deliveries.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import { maintenanceHandlers, prune } from '../../workers/handlers/maintenance.js'
import { outboundHandlers, outboundSlowHandlers } from '../../workers/handlers/outbound.js'
import { inProcessDelivery } from '../../workers/in-process-runs/in-process-handlers.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { sweep } from '../../workers/sweeper.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { addRecordingPod, type RecordingPod, writeMessage } from '../support/federation/recording-pod.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

const handlers = { outbound: outboundHandlers, 'outbound-slow': outboundSlowHandlers, maintenance: maintenanceHandlers }
const queues = ['outbound', 'outbound-slow', 'maintenance'] as const

describe.each(queueBackends)('the outbound queues, with the queue in $store', (backend) => {
  let stores: TestStores
  let fakePods: FakePods
  let pod: QueuePod
  let ann: Person
  let workers: RunningWorkers | undefined
  let hosts = 0

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = { ...(await stores.openPod()), crypto: fixedKeyCrypto(), remotePods: fakePods.remotePods() }
    const { address } = await createUser(pod, { username: 'ann', password: 'the password of ann' })
    ann = await Person.byAddress(pod.db, address).throwIfNotFound()
  })
  afterAll(async () => {
    await stores.close()
    await fakePods.close()
  })
  beforeEach(async () => {
    await stores.emptyQueue()
    for (const table of ['deliveries', 'outbound_messages', 'periodic', 'pods']) await pod.db(table).delete()
  })
  afterEach(async () => {
    await workers?.close()
    workers = undefined
  })

  async function otherPod(changes: Partial<RemotePod> = {}): Promise<RecordingPod> {
    hosts += 1
    return addRecordingPod(fakePods, pod, `w${hosts}.example:3000`, changes)
  }

  async function write(...pods: readonly RecordingPod[]): Promise<void> {
    const entity: Entity = {
      type: 'status_message',
      author: ann.address,
      guid: newGuid(),
      created_at: new Date(),
      text: 'Hello',
      photos: [],
      public: true,
    }
    await writeMessage(pod, { senderId: ann.id, entity, pods: pods.map(({ id }) => id) })
  }

  async function enqueueFor(...pods: readonly RecordingPod[]): Promise<void> {
    await startDeliveries(pod, await duePodsOf(pods))
  }

  function duePodsOf(pods: readonly RecordingPod[]): Promise<readonly DuePod[]> {
    return Promise.all(
      pods.map(async (other) => ({ podId: other.id, isProven: (await other.row()).lastSuccessAt !== null })),
    )
  }

  /** Makes deliveries due for the sweeper. */
  async function passRetryTime(): Promise<void> {
    await pod.db('deliveries').update({ dueAt: pod.db.raw(`due_at - interval '10 seconds'`) })
  }

  it('deliver after the commit of a transaction', async () => {
    const [fresh, provenPod] = [await otherPod(), await otherPod({ lastSuccessAt: new Date() })]
    await write(fresh, provenPod)
    workers = startTestWorkers(pod, { handlers, queues })

    const duePods = await duePodsOf([fresh, provenPod])
    await pod.db.transaction(async (transaction) => startDeliveriesAfterCommit(pod, transaction, duePods))
    await untilIdle(pod)

    expect([fresh, provenPod].map(({ received: got }) => got.length)).toEqual([1, 1])
    expect((await fresh.row()).lastSuccessAt).toEqual(expect.any(Date))
  })

  it('have no job for a proven pod in the process that has written its deliveries', async () => {
    const [fresh, provenPod] = [await otherPod(), await otherPod({ lastSuccessAt: new Date() })]
    workers = startTestWorkers(pod, { handlers, queues, inProcessDelivery })
    const addEach = vi.spyOn(pod.jobs, 'addEach')
    await write(fresh, provenPod)

    await enqueueFor(fresh, provenPod)
    await untilIdle(pod)
    await workers.close()

    expect([fresh, provenPod].map(({ received }) => received.length)).toEqual([1, 1])
    const jobs = addEach.mock.calls.flatMap(([job, each]) => each.map(() => job.queue))
    expect(jobs).toEqual(['outbound-slow'])
    addEach.mockRestore()
  })

  it('deliver no message of a transaction that is rolled back', async () => {
    const addEach = vi.fn(pod.jobs.addEach)
    const watched = { ...pod, jobs: { ...pod.jobs, addEach } }
    const other = await otherPod()
    const enqueueIn = (fails: boolean) =>
      pod.db.transaction(async (transaction) => {
        startDeliveriesAfterCommit(watched, transaction, [{ podId: other.id, isProven: false }])
        if (fails) throw new Error('something is wrong')
      })

    await expect(enqueueIn(true)).rejects.toThrow('something is wrong')
    expect(addEach).not.toHaveBeenCalled()
    await enqueueIn(false)
    expect(addEach).toHaveBeenCalledOnce()
  })

  it('receive their jobs in chunks of pods, so that other work does not wait for all of them', async () => {
    const addEach = vi.fn(pod.jobs.addEach)
    const duePods = Array.from({ length: 1_100 }, (_, podId) => ({ podId, isProven: false }))

    await startDeliveries({ jobs: { ...pod.jobs, addEach } }, duePods)

    const chunks = addEach.mock.calls.map(([, each]) => each.length).filter((length) => length > 0)
    expect(chunks).toEqual([500, 500, 100])
    expect(await waiting('outbound-slow')).toBe(1_100)
  })

  it('have one job for many proven pods', async () => {
    const pods = await Promise.all(Array.from({ length: 70 }, () => otherPod({ lastSuccessAt: new Date() })))
    await write(...pods)

    await enqueueFor(...pods)

    expect(await waiting('outbound')).toBe(2)
    workers = startTestWorkers(pod, { handlers, queues: ['outbound'] })
    await untilIdle(pod)
    expect(pods.map(({ received }) => received.length)).toEqual(pods.map(() => 1))
    expect(await pod.db('pods').whereNotNull('drainedBy')).toEqual([])
  })

  it('have one job for a pod, and one more that follows the running one', async () => {
    const other = await otherPod()
    await write(other)
    for (let n = 0; n < 5; n += 1) await enqueueFor(other)
    expect((await pod.jobs.counts('outbound-slow')).waiting).toBe(1)

    const firstRequest = new Promise<() => void>((resolve) => {
      fakePods.script(`${other.host}/receive/public`, (request, response) => {
        request.resume()
        resolve(() => response.writeHead(202).end())
      })
    })
    let runs = 0
    const counted: typeof outboundSlowHandlers = {
      ...outboundSlowHandlers,
      deliver(...job) {
        runs += 1
        return outboundSlowHandlers.deliver(...job)
      },
    }
    workers = startTestWorkers(pod, { handlers: { 'outbound-slow': counted }, queues: ['outbound-slow'] })
    const answerFirst = await firstRequest
    await write(other)
    for (let n = 0; n < 5; n += 1) await enqueueFor(other)
    const whileItRuns = await pod.jobs.counts('outbound-slow')
    fakePods.script(`${other.host}/receive/public`, (request, response) => {
      request.resume()
      response.writeHead(202).end()
    })
    answerFirst()
    await untilIdle(pod)

    expect(whileItRuns).toMatchObject({ waiting: 0, active: 1 })
    expect(runs).toBe(2)
    expect(await other.deliveries()).toEqual([])
  })

  it('check a pod before they deliver to others that may never respond', async () => {
    const silent = await Promise.all([1, 2, 3, 4].map(() => otherPod()))
    for (const each of silent) each.respondWith('nothing')
    const checked = await otherPod()
    await write(...silent)
    await enqueueFor(...silent)
    await pod.jobs.addEach(checkPodJob, [{ deduplicationKey: 'check', data: { podId: checked.id } }])
    const oneSlot = { ...pod, config: { ...pod.config, workerConcurrency: { 'outbound-slow': 1 } } }
    workers = startTestWorkers(oneSlot, {
      handlers,
      queues: ['outbound-slow'],
      timing: { abortAfterMs: 10 },
    })

    await vi.waitFor(async () => expect((await checked.row()).checkedAt).not.toBeNull(), {
      interval: 20,
    })

    expect(silent.flatMap(({ received: got }) => got).length).toBeLessThanOrEqual(1)
  })

  it('get lost jobs back from the sweeper, in the right queue', async () => {
    const [fresh, provenPod] = [await otherPod(), await otherPod({ lastSuccessAt: new Date() })]
    const [soon, blocked] = [await otherPod({ nextTryAt: inAnHour() }), await otherPod({ blockedAt: new Date() })]
    const held = await otherPod({ drainedBy: '00000000-0000-4000-8000-000000000000', drainedUntil: inAnHour() })
    await write(fresh, provenPod, soon, blocked, held)

    await sweep(pod)
    expect([await waiting('outbound'), await waiting('outbound-slow')]).toEqual([0, 0]) // their jobs may be in transit
    await passRetryTime()
    await sweep(pod)
    await sweep(pod)

    expect([await waiting('outbound'), await waiting('outbound-slow')]).toEqual([1, 1])
    workers = startTestWorkers(pod, { handlers, queues: ['outbound', 'outbound-slow'] })
    await vi.waitFor(async () => expect(await pod.db('deliveries')).toHaveLength(3), { interval: 20 })
    expect([fresh, provenPod, soon, blocked, held].map(({ received: got }) => got.length)).toEqual([1, 1, 0, 0, 0])
  })

  it('are swept first for responding pods, for any number of other pods', async () => {
    const dead = [await otherPod(), await otherPod({ failures: 1, lastSuccessAt: new Date() })] // in order of id
    const provenPod = await otherPod({ lastSuccessAt: new Date() })
    await write(...dead, provenPod)
    await passRetryTime()

    expect(await findOverduePods(pod.db, 1)).toEqual([{ podId: provenPod.id, isProven: true }])
    expect((await findOverduePods(pod.db, 3)).map(({ podId }) => podId)).toEqual([
      provenPod.id,
      ...dead.map(({ id }) => id),
    ])
  })

  it('recover by themselves after the queue was emptied', async () => {
    const pods = await Promise.all(Array.from({ length: 20 }, () => otherPod()))
    await write(...pods)
    await enqueueFor(...pods)
    await stores.emptyQueue()
    await passRetryTime()

    workers = startTestWorkers(pod, { handlers, queues })
    await untilIdle(pod)

    expect(pods.map(({ received: got }) => got.length)).toEqual(pods.map(() => 1))
  })

  it('are not delayed by pods that never respond', async () => {
    const silent = await Promise.all(Array.from({ length: 20 }, () => otherPod()))
    for (const each of silent) each.respondWith('nothing')
    const healthy = await otherPod({ lastSuccessAt: new Date() })
    await write(...silent, healthy)
    const config = { ...pod.config, workerConcurrency: { 'outbound-slow': 4 } }
    workers = startTestWorkers({ ...pod, config }, { handlers, queues, timing: { abortAfterMs: 0 } })

    await enqueueFor(...silent)
    await vi.waitFor(async () => expect((await pod.jobs.counts('outbound-slow')).active).toBe(4), {
      interval: 10,
    })
    await enqueueFor(healthy)
    await vi.waitFor(async () => expect(await healthy.deliveries()).toEqual([]), { interval: 10 })

    expect(healthy.received).toHaveLength(1)
    expect(silent.filter(({ received: got }) => got.length > 0).length).toBeLessThanOrEqual(4)
  })

  it('give up deliveries to sleeping or blocked pods', async () => {
    const asleep = await otherPod({ offlineSince: daysAgo(15) })
    const tired = await otherPod({ offlineSince: daysAgo(13) })
    const blocked = await otherPod({ blockedAt: new Date() })
    await write(asleep, tired, blocked)

    await prune(pod)

    expect(await asleep.deliveries()).toMatchObject([{ state: 'dead', lastFault: 'pod_asleep' }])
    expect(await tired.deliveries()).toMatchObject([{ state: 'waiting' }])
    expect(await blocked.deliveries()).toMatchObject([{ state: 'dead', lastFault: 'pod_blocked' }])
    expect((await readWorkStatus(pod)).deliveries).toEqual({ due: 1, waiting: 1, dead: 2 })
  })

  it('check every pod once a day, and soon an offline pod that has sent a message', async () => {
    const [fresh, old, heard] = [
      await otherPod({ checkedAt: new Date() }),
      await otherPod({ checkedAt: daysAgo(1), offlineSince: daysAgo(20), nextTryAt: inAnHour(), failures: 9 }),
      await otherPod({ checkedAt: new Date(Date.now() - 31 * 60_000), offlineSince: daysAgo(20), checkWanted: true }),
    ]
    const blocked = await otherPod({ checkedAt: daysAgo(2), blockedAt: new Date() })
    const heardJustNow = await otherPod({ checkedAt: new Date(), checkWanted: true })
    for (const { host } of [old, heard]) fakePods.script(`${host}/`, (_request, response) => response.end('a pod'))
    workers = startTestWorkers(pod, { handlers, queues: ['outbound-slow'] })

    await addPodChecks(pod)
    await untilIdle(pod)

    const isChecked = (other: RecordingPod) => fakePods.requests.some((request) => request === `${other.host}/`)
    expect([fresh, old, heard, blocked, heardJustNow].map(isChecked)).toEqual([false, true, true, false, false])
    const awake = { offlineSince: null, nextTryAt: null, checkWanted: false, status: 'version_failed' }
    expect(await old.row()).toMatchObject(awake)
    expect(await heard.row()).toMatchObject(awake)
    await addPodChecks(pod)
    expect(await waiting('outbound-slow')).toBe(0)
  })

  async function waiting(queue: 'outbound' | 'outbound-slow'): Promise<number> {
    return (await pod.jobs.counts(queue)).waiting
  }
})

function inAnHour(): Date {
  return new Date(Date.now() + 60 * 60 * 1_000)
}

function daysAgo(days: number): Date {
  return new Date(Date.now() - days * 24 * 60 * 60 * 1_000)
}
