import { setTimeout as pause } from 'node:timers/promises'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { follow } from '../support/http/event-stream.js'
import { type Burst, type BurstSize, makeBurst, randomFrom, shuffle } from './burst-messages.js'
import { liveOn, noUserActions, publishAll } from './client-sessions.js'
import type { MixedLoadPod } from './mixed-load-pod.js'
import { type Life, wrongsHeard, wrongsOfLife } from './mixed-outcome.js'
import { noRequests, openClient, type PersistentClient, type Requests } from './persistent-client.js'
import { type EncryptedEnvelope, makeTalk, type Talk } from './private-messages.js'
import { startWatch, type VitalSigns } from './process-measurements.js'
import type { RemotePodsUnderLoad } from './remote-pods.js'
import { letTimePass } from './subscribing-pods.js'
import { until } from './until.js'

interface LifeMeasure {
  readonly seed: number
  readonly minutes: number
  /** Public messages of one burst. */
  readonly messages: number
  report(line: string): void
}

interface LifeReport {
  readonly signs: readonly VitalSigns[]
  /** Milliseconds from the last message of each burst until no work is left. */
  readonly lags: readonly number[]
  readonly requests: Requests
  readonly heard: number
  /** All violations, as sentences. */
  readonly wrongs: readonly string[]
}

const PRIVATELY = 20
const LANES = 16
const AGAIN_AFTER = 500
/** Time after which an idle pod counts as at rest: clients have closed their connections. */
const CALM_AFTER = 6_000
const REST = 8_000
const DONE_WITHIN = 120_000
const KEPT_BACK = 5

/** The load on a pod, and its results so far. */
interface Scene {
  readonly mixedLoadPod: MixedLoadPod
  readonly remotePods: RemotePodsUnderLoad
  readonly clients: readonly PersistentClient[]
  readonly life: Life & { readonly bursts: Burst[]; readonly talks: Talk[] }
}

/** Runs bursts with pauses for this many minutes; at the end all unreachable pods respond again. */
export async function live(
  mixedLoadPod: MixedLoadPod,
  remotePods: RemotePodsUnderLoad,
  { seed, minutes, messages, report }: LifeMeasure,
): Promise<LifeReport> {
  const { pod, web, worker, localUsers } = mixedLoadPod
  const requests = noRequests()
  const clients = localUsers.map((who) => openClient(web.base, who, requests))
  const life: Scene['life'] = { bursts: [], talks: [], actions: noUserActions(), requests }
  const scene: Scene = { mixedLoadPod, remotePods, clients, life }
  const listeners = localUsers.map(({ token }) => follow(() => ({ base: web.base, token })))
  await until('all listen', DONE_WITHIN, async () => listeners.every(({ placed }) => placed))

  const lags: number[] = []
  const late: string[] = []
  const tooLate = (error: unknown) => void late.push(String(error))
  const watch = startWatch(mixedLoadPod)
  for (let turn = 1; watch.seconds() < minutes * 60; turn += 1) {
    watch.phase = 'burst'
    const sent = await sendBurst(scene, { messages, seed: seed + turn, broken: 0.1, keptBack: KEPT_BACK })
    watch.phase = 'settling'
    const sentAt = performance.now()
    await until('nothing is left to do', DONE_WITHIN, () => isIdle(pod)).catch(tooLate)
    lags.push(performance.now() - sentAt)
    report(`burst ${turn} of ${sent} messages: over at ${watch.seconds().toFixed(0)} s`)
    await pause(CALM_AFTER)
    watch.phase = 'rest'
    listeners[turn % listeners.length]?.interrupt()
    await pause(REST)
    await watch.look('kept')
  }
  const signs = await watch.end()

  remotePods.endOutage()
  await until('what was away has everything', DONE_WITHIN, async () => {
    await letTimePass(pod)
    return (await pod.db('deliveries').first('id')) === undefined && (await isIdle(pod))
  }).catch(tooLate)
  const events = listeners.map(({ events }) => events)
  for (const listener of listeners) listener.close()
  const wrongs = [
    ...late,
    ...(await wrongsOfLife(pod, life, [...web.logged, ...worker.logged])),
    ...(await remotePods.failures()),
    ...localUsers.flatMap((localUser, index) => wrongsHeard(localUser, events[index] ?? [], life.talks)),
  ]
  return { signs, lags, requests, heard: events.flat().length, wrongs }
}

/** Sends all messages at once. Resolves with their number when all have responses. */
async function sendBurst({ mixedLoadPod, remotePods, clients, life }: Scene, size: BurstSize): Promise<number> {
  const { web, localUsers } = mixedLoadPod
  const { authors, friends } = remotePods
  const { bursts, talks, actions } = life
  const posts = await publishAll(clients, actions)
  const burst = makeBurst(authors, posts, size)
  serveRoots(remotePods, burst)
  const talk = makeTalk(friends, localUsers, talks.at(-1)?.conversations ?? [], PRIVATELY)
  bursts.push(burst)
  talks.push(talk)

  const inPublic = burst.envelopes.map((body) => ({ path: '/receive/public', body }))
  const line = [...shuffle([...inPublic, ...talk.encryptedEnvelopes], randomFrom(size.seed))]
  const sent = line.length
  const friend = friends.slice(bursts.length % friends.length).slice(0, 1)
  const living = clients.map((client) => {
    const fakePods = localUsers.filter((other) => other !== client.who)
    return liveOn(client, posts, [...fakePods, ...friend], actions)
  })
  await Promise.all([...living, ...Array.from({ length: LANES }, () => sendAll(web.base, line))])
  return sent
}

/** Every other pod returns a requested post. */
function serveRoots({ fakePods, authors }: RemotePodsUnderLoad, { posts }: Burst): void {
  const byAddress = new Map(authors.map((person) => [person.address, person]))
  for (const post of posts) {
    const author = byAddress.get(post.author)
    if (author !== undefined) fakePods.serve(author, post)
  }
}

/** Sends until the list is empty. Senders retry until they get 202. */
async function sendAll(base: string, line: EncryptedEnvelope[]): Promise<void> {
  for (let next = line.pop(); next !== undefined; next = line.pop()) {
    while ((await statusOf(`${base}${next.path}`, next.body)) !== 202) await pause(AGAIN_AFTER)
  }
}

async function statusOf(url: string, body: string): Promise<number> {
  try {
    const response = await fetch(url, { method: 'POST', body })
    await response.text()
    return response.status
  } catch {
    return 0
  }
}
