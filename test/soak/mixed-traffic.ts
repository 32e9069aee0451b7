import { setTimeout as pause } from 'node:timers/promises'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { follow } from '../support/http/event-stream.js'
import { type Burst, type BurstSize, makeBurst, randomFrom, shuffle } from './burst-messages.js'
import { noUserActions, publishAll, runSession } from './client-sessions.js'
import type { MixedLoadPod } from './mixed-load-pod.js'
import { type AcknowledgedWork, findMixedViolations, findStreamViolations } from './mixed-outcome.js'
import { noRequests, openClient, type PersistentClient, type Requests } from './persistent-client.js'
import { type EncryptedEnvelope, makePrivateMessages, type PrivateMessages } from './private-messages.js'
import { type PodSample, startSampler } from './process-measurements.js'
import type { RemotePodsUnderLoad } from './remote-pods.js'
import { makeDeliveriesDue } from './subscribing-pods.js'
import { until } from './until.js'

interface MixedLoadOptions {
  readonly seed: number
  readonly minutes: number
  /** Public messages of one burst. */
  readonly messages: number
  report(line: string): void
}

interface MixedLoadReport {
  readonly samples: readonly PodSample[]
  /** Milliseconds from the last message of each burst until no work is left. */
  readonly lags: readonly number[]
  readonly requests: Requests
  /** Live events that clients have received. */
  readonly receivedEvents: number
  /** All violations, as sentences. */
  readonly violations: readonly string[]
}

const PRIVATE_MESSAGES = 20
const CONCURRENT_SENDERS = 16
const RETRY_INTERVAL_MS = 500
/** Time after a burst in which clients close their connections. Then the pod is at rest. */
const CONNECTIONS_CLOSED_AFTER_MS = 6_000
const REST_MS = 8_000
const SETTLED_WITHIN_MS = 120_000
const UNSENT_POST_INTERVAL = 5

/** The pods and clients of a run, and the work that was acknowledged so far. */
interface MixedLoad {
  readonly mixedLoadPod: MixedLoadPod
  readonly remotePods: RemotePodsUnderLoad
  readonly clients: readonly PersistentClient[]
  readonly acknowledged: AcknowledgedWork & { readonly bursts: Burst[]; readonly privateBatches: PrivateMessages[] }
}

/** Runs bursts with pauses for a number of minutes. At the end all unreachable pods respond again. */
export async function runMixedLoad(
  mixedLoadPod: MixedLoadPod,
  remotePods: RemotePodsUnderLoad,
  { seed, minutes, messages, report }: MixedLoadOptions,
): Promise<MixedLoadReport> {
  const { pod, web, worker, localUsers } = mixedLoadPod
  const requests = noRequests()
  const clients = localUsers.map((who) => openClient(web.base, who, requests))
  const acknowledged: MixedLoad['acknowledged'] = { bursts: [], privateBatches: [], actions: noUserActions(), requests }
  const load: MixedLoad = { mixedLoadPod, remotePods, clients, acknowledged }
  const listeners = localUsers.map(({ token }) => follow(() => ({ base: web.base, token })))
  await until('all streams are open', SETTLED_WITHIN_MS, async () => listeners.every(({ placed }) => placed))

  const lags: number[] = []
  const timeouts: string[] = []
  const recordTimeout = (error: unknown) => void timeouts.push(String(error))
  const sampler = startSampler(mixedLoadPod)
  for (let turn = 1; sampler.seconds() < minutes * 60; turn += 1) {
    sampler.phase = 'burst'
    const sent = await sendBurst(load, {
      messages,
      seed: seed + turn,
      invalid: 0.1,
      unsentPostInterval: UNSENT_POST_INTERVAL,
    })
    sampler.phase = 'settling'
    const sentAt = performance.now()
    await until('no work is left', SETTLED_WITHIN_MS, () => isIdle(pod)).catch(recordTimeout)
    lags.push(performance.now() - sentAt)
    report(`burst ${turn} of ${sent} messages: over at ${sampler.seconds().toFixed(0)} s`)
    await pause(CONNECTIONS_CLOSED_AFTER_MS)
    sampler.phase = 'rest'
    listeners[turn % listeners.length]?.interrupt()
    await pause(REST_MS)
    await sampler.takeSample('kept')
  }
  const samples = await sampler.end()

  remotePods.endOutage()
  await until('the unreachable pods have received all deliveries', SETTLED_WITHIN_MS, async () => {
    await makeDeliveriesDue(pod)
    return (await pod.db('deliveries').first('id')) === undefined && (await isIdle(pod))
  }).catch(recordTimeout)
  const events = listeners.map(({ events }) => events)
  for (const listener of listeners) listener.close()
  const violations = [
    ...timeouts,
    ...(await findMixedViolations(pod, acknowledged, [...web.logged, ...worker.logged])),
    ...(await remotePods.failures()),
    ...localUsers.flatMap((localUser, index) =>
      findStreamViolations(localUser, events[index] ?? [], acknowledged.privateBatches),
    ),
  ]
  return { samples, lags, requests, receivedEvents: events.flat().length, violations }
}

/** Sends the messages of a burst and runs the sessions of clients. Returns the number of messages. */
async function sendBurst(
  { mixedLoadPod, remotePods, clients, acknowledged }: MixedLoad,
  size: BurstSize,
): Promise<number> {
  const { web, localUsers } = mixedLoadPod
  const { authors, friends } = remotePods
  const { bursts, privateBatches, actions } = acknowledged
  const posts = await publishAll(clients, actions)
  const burst = makeBurst(authors, posts, size)
  serveRoots(remotePods, burst)
  const batch = makePrivateMessages(friends, localUsers, privateBatches.at(-1)?.conversations ?? [], PRIVATE_MESSAGES)
  bursts.push(burst)
  privateBatches.push(batch)

  const publicMessages = burst.envelopes.map((body) => ({ path: '/receive/public', body }))
  const queue = [...shuffle([...publicMessages, ...batch.encryptedEnvelopes], randomFrom(size.seed))]
  const sent = queue.length
  const friend = friends.slice(bursts.length % friends.length).slice(0, 1)
  const sessions = clients.map((client) => {
    const otherUsers = localUsers.filter((other) => other !== client.user)
    return runSession(client, posts, [...otherUsers, ...friend], actions)
  })
  await Promise.all([...sessions, ...Array.from({ length: CONCURRENT_SENDERS }, () => sendAll(web.base, queue))])
  return sent
}

/** Makes the pods of the authors serve their posts. */
function serveRoots({ fakePods, authors }: RemotePodsUnderLoad, { posts }: Burst): void {
  const byAddress = new Map(authors.map((person) => [person.address, person]))
  for (const post of posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) fakePods.serve(author, post)
  }
}

/** Sends until the queue is empty. A message is sent again until it gets 202. */
async function sendAll(base: string, queue: EncryptedEnvelope[]): Promise<void> {
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    while ((await postMessage(`${base}${next.path}`, next.body)) !== 202) await pause(RETRY_INTERVAL_MS)
  }
}

async function postMessage(url: string, body: string): Promise<number> {
  try {
    const response = await fetch(url, { method: 'POST', body })
    await response.text()
    return response.status
  } catch {
    return 0
  }
}
