import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { deliver } from '../../../src/federation/outbound/deliver.js'
import { DELIVERY_LIMITS, type DeliveryLimits } from '../../../src/federation/outbound/limits.js'
import { getSharedDelivery } from '../../../src/federation/outbound/shared-delivery.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { postBy } from '../../support/federation/entities.js'
import { addRecordingPod, type RecordingPod, writeMessage } from '../../support/federation/recording-pod.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let hosts = 0
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
})
afterAll(() => pod.close())

/** Pods that have answered before, each with this number of due deliveries. */
async function podsWithDeliveries(count: number, deliveries = 1): Promise<readonly RecordingPod[]> {
  const pods = await Promise.all(
    Array.from({ length: count }, () => {
      hosts += 1
      return addRecordingPod(pod.fakePods, pod, `r${hosts}.example:3000`, { lastSuccessAt: new Date() })
    }),
  )
  for (let written = 0; written < deliveries; written += 1) {
    await writeMessage(pod, { senderId: ann.id, entity: postBy(ann), pods: pods.map(({ id }) => id) })
  }
  return pods
}

async function run(pods: readonly RecordingPod[], limits: Partial<DeliveryLimits> = {}): Promise<void> {
  const signal = new AbortController().signal
  await deliver(
    pod,
    pods.map(({ id }) => id),
    { queue: 'outbound', signal, limits },
  )
}

/** Answers no request before this number of requests has come. */
function answerTogether(pods: readonly RecordingPod[]): void {
  const answers: (() => void)[] = []
  for (const { host } of pods) {
    pod.fakePods.script(`${host}/receive/public`, (request, response) => {
      request.resume()
      answers.push(() => response.writeHead(202).end())
      if (answers.length === pods.length) for (const remoteResponse of answers) remoteResponse()
    })
  }
}

async function leasedPods(): Promise<number> {
  const rows = await pod.db('pods').whereNotNull('drainedBy')
  return rows.length
}

it('a run for sixty pods takes a few statements more than a run for one', async () => {
  const [one, many] = [await podsWithDeliveries(1), await podsWithDeliveries(60)]
  await run(await podsWithDeliveries(1)) // opens connections
  answerTogether(one)
  answerTogether(many)

  const statementsOfOne = await statementsDuring(() => run(one), 'worker')
  const statements = await statementsDuring(() => run(many), 'worker')

  // The lease, the due rows, the message, its envelope and the results.
  expect(statementsOfOne).toBe(5)
  // Results that come in several groups.
  expect(statements).toBeLessThanOrEqual(statementsOfOne + 5)
  expect(await leasedPods()).toBe(0)
  for (const each of many) expect(await each.deliveries()).toEqual([])
})

it('a run for twenty pods with nine deliveries each takes less than a third of a statement for a delivery', async () => {
  const pods = await podsWithDeliveries(20, 9)

  const statements = await statementsDuring(() => run(pods), 'worker')

  expect(pods.map(({ received }) => received.length)).toEqual(pods.map(() => 9))
  expect(statements).toBeLessThan((20 * 9) / 3)
})

it('a pod that answers slowly holds neither the rounds nor the leases of the others', async () => {
  const [slow, ...others] = await podsWithDeliveries(4, 2)
  if (slow === undefined) throw new Error('There is no pod.')
  let remoteResponse: (() => void) | undefined
  pod.fakePods.script(`${slow.host}/receive/public`, (request, response) => {
    request.resume()
    remoteResponse = () => response.writeHead(202).end()
  })

  const running = run([slow, ...others])
  await vi.waitFor(async () => expect(await leasedPods()).toBe(1), { interval: 10 })

  for (const other of others) {
    expect(await other.deliveries()).toEqual([])
    expect(await other.row()).toMatchObject({ drainedBy: null, failures: 0 })
  }
  expect(await slow.row()).toMatchObject({ drainedBy: expect.any(String) })
  expect(await slow.deliveries()).toHaveLength(2)
  await vi.waitFor(() => expect(remoteResponse).toBeDefined(), { interval: 10 })
  pod.fakePods.script(`${slow.host}/receive/public`, (request, response) => {
    request.resume()
    response.writeHead(202).end()
  })
  remoteResponse?.()
  await running
  expect(await slow.deliveries()).toEqual([])
})

it('pods that end differently in one run each get their own state', async () => {
  const [well, refuses, away, moved, gone] = await podsWithDeliveries(5, 2)
  refuses?.respondWith(400)
  away?.respondWith(503)
  moved?.respondWith({ status: 301, headers: { location: '/elsewhere' } })
  gone?.respondWith('nothing')
  const pods = [well, refuses, away, moved, gone].flatMap((each) => each ?? [])

  await run(pods, { exchangeMs: 500 })

  const rows = await Promise.all(pods.map((each) => each.row()))
  expect(rows).toMatchObject([
    { status: 'no_errors', failures: 0, offlineSince: null, redirects: 0, nextTryAt: null },
    { status: 'http_failed', failures: 0, offlineSince: expect.any(Date), redirects: 0, nextTryAt: null },
    { status: 'http_failed', failures: 1, offlineSince: expect.any(Date), redirects: 0, nextTryAt: expect.any(Date) },
    { status: 'http_failed', failures: 0, offlineSince: expect.any(Date), redirects: 2, nextTryAt: null },
    { status: 'net_failed', failures: 1, offlineSince: expect.any(Date), redirects: 0, nextTryAt: expect.any(Date) },
  ])
  const attempts = await Promise.all(pods.map(async (each) => (await each.deliveries()).map((row) => row.attempts)))
  expect(attempts).toEqual([[], [1, 1], [0, 0], [1, 1], [0, 0]])
  expect(await leasedPods()).toBe(0)
})

it('two runs for the same pods send each delivery once', async () => {
  const pods = await podsWithDeliveries(8, 5)

  await Promise.all([run(pods), run(pods.toReversed()), run(pods)])

  expect(pods.map(({ received }) => received.length)).toEqual(pods.map(() => 5))
  expect(await leasedPods()).toBe(0)
})

it('pods that get no slot within the time of a run are enqueued again', async () => {
  const pods = await podsWithDeliveries(2)
  const { slots } = getSharedDelivery(pod.db)
  const { signal } = new AbortController()
  const releases = await Promise.all(
    Array.from({ length: DELIVERY_LIMITS.maxConcurrentPods }, () => slots.acquire(signal, pods)),
  )
  const waiting = (await pod.jobs.counts('outbound')).waiting

  const running = run(pods, { runMs: 0.001 })
  for (const release of releases) release()
  await running

  expect(pods.map(({ received }) => received.length)).toEqual([0, 0])
  expect((await pod.jobs.counts('outbound')).waiting).toBe(waiting + 1)
  expect(await leasedPods()).toBe(0)
})
