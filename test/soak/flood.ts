import { setTimeout as pause } from 'node:timers/promises'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { queueBackends } from '../support/queues/queue-backends.js'
import { noUserActions, publishAll } from './client-sessions.js'
import { type FloodMessage, flood, makeMessages, makeRoot, sendAtRate, watchArrivals } from './flood-load.js'
import type { SoakOptions } from './main.js'
import { type MixedLoadPod, startMixedLoadPod } from './mixed-load-pod.js'
import { noRequests, openClient, type Requests } from './persistent-client.js'
import { startRemotePods } from './remote-pods.js'
import { until } from './until.js'

/** Messages used to measure how many the pod processes per second. */
const PROBE = 3_000
const SECONDS = 6
/** Minimum size; a shorter queue would be empty before any other source had to wait. */
const FLOOD_MESSAGES = 3 * (RECEIVE_LIMITS.fairFromMessages + RECEIVE_LIMITS.messagesPerShare)
/** Fraction of the messages the pod can process while others send theirs. */
const FLOOD = 0.8
const OTHERS = 0.2
const FLOODER = '198.51.100.1'
/** One in this many messages of the flooding source. */
const LOOKED_AT = 20
const DONE_WITHIN = 180_000

/** Others wait no longer than three times as long as without a flood, or a second; clients no longer than half a second. */
const SLOWER = 3
/** Half of the flooder's wait at least twice as long as half of the others', or nothing was seen of a flood. */
const LATER = 2
const LATEST_MS = 1_000
const LATEST_ANSWER_MS = 500
const ASK_INTERVAL_MS = 100

/**
 * One source sends four of five messages, as many as the pod can process in the meantime, and all of them are queued before those of
 * other sources; reports whether other sources and clients are delayed.
 */
export async function soakFlood({ seed, store: onlyStore, size = PROBE }: SoakOptions): Promise<boolean> {
  const wrongs: string[] = []
  for (const { store } of queueBackends.filter((backend) => onlyStore === undefined || backend.store === onlyStore)) {
    console.log(`One source fills the queue, with the queue in ${store}, seed ${seed}`)
    await using mixedLoadPod = await startMixedLoadPod(store)
    wrongs.push(...(await underFlood(mixedLoadPod, size)))
  }
  for (const wrong of wrongs) console.log(`  WRONG: ${wrong}`)
  return wrongs.length === 0
}

async function underFlood(mixedLoadPod: MixedLoadPod, size: number): Promise<readonly string[]> {
  const { pod, web, localUsers } = mixedLoadPod
  await using remotePods = await startRemotePods(pod, localUsers)
  const root = await makeRoot(remotePods.authors, web.base)
  await takeIn(mixedLoadPod, makeMessages(root, size / 4)) // warm-up
  const probe = makeMessages(root, size)
  const began = performance.now()
  await takeIn(mixedLoadPod, probe)
  const perSecond = size / ((performance.now() - began) / 1_000)
  console.log(`  it takes in ${perSecond.toFixed(0)} messages a second`)

  const many = (part: number) => Math.round(part * perSecond * SECONDS)
  const flooding = makeMessages(root, Math.max(many(FLOOD), FLOOD_MESSAGES))
  const calm = await measure(mixedLoadPod, makeMessages(root, many(OTHERS)), [])
  const flooded = await measure(mixedLoadPod, makeMessages(root, many(OTHERS)), flooding)
  for (const [name, measured] of Object.entries({ calm, flooded })) {
    console.log(`  ${name.padEnd(8)} ${lineOf(measured)}`)
  }
  const latest = Math.max(SLOWER * p(calm.others, 0.99), LATEST_MS)
  const latestAnswer = Math.max(SLOWER * p(calm.answers, 0.95), LATEST_ANSWER_MS)
  const wasHeldBack = p(flooded.flooder, 0.5) >= LATER * p(flooded.others, 0.5)
  return [
    ...calm.failed,
    ...flooded.failed,
    ...(calm.lost + flooded.lost > 0 ? [`${calm.lost + flooded.lost} messages are lost`] : []),
    ...(p(flooded.others, 0.99) <= latest ? [] : [`others had to wait for more than ${latest.toFixed(0)} ms (p99)`]),
    ...(wasHeldBack ? [] : ['the flooder had no longer to wait than others']),
    ...(p(flooded.answers, 0.95) <= latestAnswer
      ? []
      : [`clients had to wait for more than ${latestAnswer.toFixed(0)} ms (p95)`]),
  ]
}

interface Measured {
  /** Milliseconds from sending a message until it is stored. */
  readonly others: readonly number[]
  /** The same for a sample of the messages of the flooding source. */
  readonly flooder: readonly number[]
  /** Milliseconds of the responses to clients. */
  readonly answers: readonly number[]
  readonly failed: readonly string[]
  readonly lost: number
}

/** Queues the flood before the worker resumes and other sources start. */
async function measure(
  mixedLoadPod: MixedLoadPod,
  messages: readonly FloodMessage[],
  flooding: readonly FloodMessage[],
): Promise<Measured> {
  const { pod, web, worker } = mixedLoadPod
  const over = new AbortController()
  const asking = askAgainAndAgain(mixedLoadPod, over.signal)
  const arrivals = watchArrivals(pod)
  const sentAt = new Map<string, number>()
  const expect = (guid: string, due: number) => {
    sentAt.set(guid, due)
    arrivals.expect(guid)
  }
  const looked = flooding.filter((_, index) => index % LOOKED_AT === 0)
  for (const { guid } of looked) arrivals.expect(guid)
  worker.signal('SIGSTOP')
  const flooder = flooding.length === 0 ? undefined : await flood(web.base, flooding, FLOODER)
  worker.signal('SIGCONT')
  await sendAtRate(web.base, messages, SECONDS, expect)
  for (const [index, { guid }] of flooding.entries()) sentAt.set(guid, flooder?.sentAt[index] ?? Number.NaN)
  over.abort()
  const requests = await asking
  await until('all of it is stored', DONE_WITHIN, () => isIdle(pod))
  const arrivedAt = await arrivals.end()
  const waited = (some: readonly FloodMessage[]) =>
    some.flatMap(({ guid }) => {
      const time = (arrivedAt.get(guid) ?? Number.NaN) - (sentAt.get(guid) ?? Number.NaN)
      return Number.isNaN(time) ? [] : [time]
    })
  const guids = [...messages, ...flooding].map(({ guid }) => guid)
  const stored = await pod.db('comments').whereIn('guid', guids).count().first()
  return {
    others: waited(messages),
    flooder: waited(looked),
    answers: requests.milliseconds,
    failed: requests.failed,
    lost: messages.length + (flooder?.accepted ?? 0) - Number(stored?.['count']),
  }
}

/** Two users read and one of them writes, at most ten times a second. */
async function askAgainAndAgain({ web, localUsers }: MixedLoadPod, over: AbortSignal): Promise<Requests> {
  const requests = noRequests()
  const [alice, bob] = localUsers.map((who) => openClient(web.base, who, requests))
  const actions = noUserActions()
  while (!over.aborted) {
    const next = pause(ASK_INTERVAL_MS)
    await Promise.all([alice?.get('/streams/main'), bob?.get('/notifications')])
    if (alice) await publishAll([alice], actions)
    await next
  }
  return requests
}

/** Resolves when all messages are stored. */
async function takeIn({ pod, web }: MixedLoadPod, messages: readonly FloodMessage[]): Promise<void> {
  await flood(web.base, messages, FLOODER)
  await until('all of it is stored', DONE_WITHIN, () => isIdle(pod, ['inbound', 'fetch']))
}

function lineOf({ others, flooder, answers }: Measured): string {
  const times = (values: readonly number[], part: number) =>
    `${p(values, 0.5).toFixed(0)} ms (p50) ${p(values, part).toFixed(0)} ms (p${part * 100})`
  const ofFlooder = flooder.length === 0 ? '' : `, of the flooder ${times(flooder, 0.99)}`
  return `others stored after ${times(others, 0.99)}${ofFlooder}, clients answered in ${times(answers, 0.95)}`
}

function p(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length * part)] ?? Number.NaN
}
