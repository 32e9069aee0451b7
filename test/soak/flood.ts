import { setTimeout as pause } from 'node:timers/promises'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { queueBackends } from '../support/queues/queue-backends.js'
import { noUserActions, publishAll } from './client-sessions.js'
import { type FloodMessage, makeMessages, makeRoot, sendAtRate, sendFlood, watchArrivals } from './flood-load.js'
import type { SoakOptions } from './main.js'
import { type MixedLoadPod, startMixedLoadPod } from './mixed-load-pod.js'
import { noRequests, openClient, type Requests } from './persistent-client.js'
import { startRemotePods } from './remote-pods.js'
import { until } from './until.js'

/** Messages used to measure how many the pod processes per second. */
const PROBE_MESSAGES = 3_000
const SECONDS = 6
/** Minimum size; a shorter queue would be empty before any other source had to wait. */
const FLOOD_MESSAGES = 3 * (RECEIVE_LIMITS.fairFromMessages + RECEIVE_LIMITS.messagesPerShare)
/** Shares of the flood and of the other sources in the messages that the pod can process. */
const FLOOD_SHARE = 0.8
const OTHERS_SHARE = 0.2
const FLOODER = '198.51.100.1'
/** One message in this many of the flooding source is measured. */
const SAMPLE_INTERVAL = 20
const STORED_WITHIN_MS = 180_000

/** Limits during the flood: three times the latency without a flood. Latencies below the tolerated values are never a violation. */
const MAX_SLOWDOWN = 3
/** Minimum ratio of the median latencies of the flooder and of the others. A lower one means that no flood took place. */
const MIN_FLOODER_FACTOR = 2
const TOLERATED_LATENCY_MS = 1_000
const TOLERATED_RESPONSE_MS = 500
const REQUEST_INTERVAL_MS = 100

/**
 * One source sends four of five messages, and all of them are queued before those of the other sources. Returns whether other sources
 * and clients are not delayed.
 */
export async function soakFlood({ seed, store: onlyStore, size = PROBE_MESSAGES }: SoakOptions): Promise<boolean> {
  const violations: string[] = []
  for (const { store } of queueBackends.filter((backend) => onlyStore === undefined || backend.store === onlyStore)) {
    console.log(`One source floods the queue, with the queue in ${store}, seed ${seed}`)
    await using mixedLoadPod = await startMixedLoadPod(store)
    violations.push(...(await measureFlood(mixedLoadPod, size)))
  }
  for (const violation of violations) console.log(`  WRONG: ${violation}`)
  return violations.length === 0
}

async function measureFlood(mixedLoadPod: MixedLoadPod, size: number): Promise<readonly string[]> {
  const { pod, web, localUsers } = mixedLoadPod
  await using remotePods = await startRemotePods(pod, localUsers)
  const root = await makeRoot(remotePods.authors, web.base)
  await storeMessages(mixedLoadPod, makeMessages(root, size / 4)) // warm-up
  const probe = makeMessages(root, size)
  const startedAt = performance.now()
  await storeMessages(mixedLoadPod, probe)
  const perSecond = size / ((performance.now() - startedAt) / 1_000)
  console.log(`  the pod stores ${perSecond.toFixed(0)} messages per second`)

  const countFor = (fraction: number) => Math.round(fraction * perSecond * SECONDS)
  const flooding = makeMessages(root, Math.max(countFor(FLOOD_SHARE), FLOOD_MESSAGES))
  const baseline = await measure(mixedLoadPod, makeMessages(root, countFor(OTHERS_SHARE)), [])
  const flooded = await measure(mixedLoadPod, makeMessages(root, countFor(OTHERS_SHARE)), flooding)
  for (const [name, measured] of Object.entries({ baseline, flooded })) {
    console.log(`  ${name.padEnd(8)} ${lineOf(measured)}`)
  }
  const maxLatencyMs = Math.max(MAX_SLOWDOWN * percentile(baseline.others, 0.99), TOLERATED_LATENCY_MS)
  const maxResponseMs = Math.max(MAX_SLOWDOWN * percentile(baseline.responseTimes, 0.95), TOLERATED_RESPONSE_MS)
  const wasHeldBack = percentile(flooded.flooder, 0.5) >= MIN_FLOODER_FACTOR * percentile(flooded.others, 0.5)
  return [
    ...baseline.failed,
    ...flooded.failed,
    ...(baseline.lost + flooded.lost > 0 ? [`${baseline.lost + flooded.lost} messages are lost`] : []),
    ...(percentile(flooded.others, 0.99) <= maxLatencyMs
      ? []
      : [`messages of others took more than ${maxLatencyMs.toFixed(0)} ms (p99)`]),
    ...(wasHeldBack ? [] : ['the messages of the flooder were not delayed']),
    ...(percentile(flooded.responseTimes, 0.95) <= maxResponseMs
      ? []
      : [`clients waited for more than ${maxResponseMs.toFixed(0)} ms (p95)`]),
  ]
}

interface FloodMeasurement {
  /** Milliseconds from sending a message until it is stored. */
  readonly others: readonly number[]
  /** The same times for a sample of the messages of the flooding source. */
  readonly flooder: readonly number[]
  /** Response times of client requests in milliseconds. */
  readonly responseTimes: readonly number[]
  readonly failed: readonly string[]
  readonly lost: number
}

/** Queues the flood while the worker is stopped, then resumes the worker and starts the other sources. */
async function measure(
  mixedLoadPod: MixedLoadPod,
  messages: readonly FloodMessage[],
  flooding: readonly FloodMessage[],
): Promise<FloodMeasurement> {
  const { pod, web, worker } = mixedLoadPod
  const over = new AbortController()
  const clientRequests = sendClientRequests(mixedLoadPod, over.signal)
  const arrivals = watchArrivals(pod)
  const sentAt = new Map<string, number>()
  const expect = (guid: string, due: number) => {
    sentAt.set(guid, due)
    arrivals.expect(guid)
  }
  const sampled = flooding.filter((_, index) => index % SAMPLE_INTERVAL === 0)
  for (const { guid } of sampled) arrivals.expect(guid)
  worker.signal('SIGSTOP')
  const flooder = flooding.length === 0 ? undefined : await sendFlood(web.base, flooding, FLOODER)
  worker.signal('SIGCONT')
  await sendAtRate(web.base, messages, SECONDS, expect)
  for (const [index, { guid }] of flooding.entries()) sentAt.set(guid, flooder?.sentAt[index] ?? Number.NaN)
  over.abort()
  const requests = await clientRequests
  await until('all messages are stored', STORED_WITHIN_MS, () => isIdle(pod))
  const arrivedAt = await arrivals.end()
  const latenciesOf = (some: readonly FloodMessage[]) =>
    some.flatMap(({ guid }) => {
      const time = (arrivedAt.get(guid) ?? Number.NaN) - (sentAt.get(guid) ?? Number.NaN)
      return Number.isNaN(time) ? [] : [time]
    })
  const guids = [...messages, ...flooding].map(({ guid }) => guid)
  const stored = await pod.db('comments').whereIn('guid', guids).count().first()
  return {
    others: latenciesOf(messages),
    flooder: latenciesOf(sampled),
    responseTimes: requests.milliseconds,
    failed: requests.failed,
    lost: messages.length + (flooder?.accepted ?? 0) - Number(stored?.['count']),
  }
}

/** Requests of two users, at most ten times per second, until the signal is aborted. */
async function sendClientRequests({ web, localUsers }: MixedLoadPod, over: AbortSignal): Promise<Requests> {
  const requests = noRequests()
  const [alice, bob] = localUsers.map((who) => openClient(web.base, who, requests))
  const actions = noUserActions()
  while (!over.aborted) {
    const next = pause(REQUEST_INTERVAL_MS)
    await Promise.all([alice?.get('/streams/main'), bob?.get('/notifications')])
    if (alice) await publishAll([alice], actions)
    await next
  }
  return requests
}

/** Sends messages, and waits until all are stored. */
async function storeMessages({ pod, web }: MixedLoadPod, messages: readonly FloodMessage[]): Promise<void> {
  await sendFlood(web.base, messages, FLOODER)
  await until('all messages are stored', STORED_WITHIN_MS, () => isIdle(pod, ['inbound', 'fetch']))
}

function lineOf({ others, flooder, responseTimes }: FloodMeasurement): string {
  const times = (values: readonly number[], fraction: number) =>
    `${percentile(values, 0.5).toFixed(0)} ms (p50) ${percentile(values, fraction).toFixed(0)} ms (p${fraction * 100})`
  const ofFlooder = flooder.length === 0 ? '' : `, those of the flooder after ${times(flooder, 0.99)}`
  return `others stored after ${times(others, 0.99)}${ofFlooder}, responses to clients in ${times(responseTimes, 0.95)}`
}

function percentile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length * fraction)] ?? Number.NaN
}
