import { setTimeout as pause } from 'node:timers/promises'
import {
  commentOf,
  type HostilePod,
  type LocalUser,
  postOf,
  type RemotePerson,
  type SignedMessage,
  sendMessage,
} from './hostile-pod.js'
import type { Arrival, RemoteHostName } from './remote-hosts.js'
import type { OrdinaryTimes } from './slowdown.js'

/** Requests per second by kind. They are low, so that the machine has capacity for the attack. */
const RATES = { reads: 8, localPosts: 2, remotePosts: 2, remoteComments: 2 } as const
const NEWCOMER_INTERVAL_SECONDS = 5
const READ_PATHS = ['/api/v1/streams/main', '/api/v1/user'] as const
/** Timeout of the client. */
const RESPONSE_TIMEOUT_MS = 20_000
/** Time after the last request until pending messages count as lost. */
const COMPLETE_WITHIN_MS = 30_000
/** Interval of the queries for committed rows: the precision of their times. */
const POLL_MS = 20

export interface OrdinaryTraffic extends OrdinaryTimes {
  /** Latencies from the first message of an unknown person to its row. */
  readonly newcomers: readonly number[]
  /** Requests of clients and messages of ordinary pods without a 2xx response. */
  readonly refused: number
  /** Messages that were accepted, but not stored or delivered in time. */
  readonly lost: Readonly<Record<'stored' | 'delivered' | 'newcomers', number>>
}

/** Expected rows or deliveries by guid, with the time of the request and of the arrival. */
type Expected = Map<string, { readonly requestedAt: number; arrivedAt?: number }>

interface Run {
  readonly pod: HostilePod
  readonly api: number[]
  readonly accepted: number[]
  readonly stored: Expected
  readonly newcomers: Expected
  readonly delivered: Expected
  refused: number
}

/** Adds people whom the pod does not know, for one run of this duration. */
export async function addNewcomers(pod: HostilePod, prefix: string, seconds: number): Promise<readonly RemotePerson[]> {
  const names = Array.from(
    { length: Math.floor(seconds / NEWCOMER_INTERVAL_SECONDS) },
    (_, index) => `${prefix}${index}`,
  )
  return pod.addPeople(names, 'good')
}

/**
 * Requests of clients and messages of ordinary pods for a number of seconds. Their rate is fixed: a request does not wait for earlier
 * responses, so that a slow pod receives as many of them.
 */
export async function runOrdinaryTraffic(
  pod: HostilePod,
  parentGuid: string,
  newcomers: readonly RemotePerson[],
  seconds: number,
): Promise<OrdinaryTraffic> {
  const run: Run = {
    pod,
    api: [],
    accepted: [],
    stored: new Map(),
    newcomers: new Map(),
    delivered: new Map(),
    refused: 0,
  }
  // Arrivals are kept from the start, because a post can arrive before the client has its guid.
  const arrivals = new Map<string, number>()
  const recordArrival = (message: Arrival | object) => {
    if ('host' in message) arrivals.set(keyOf(message.host, message.guid), message.at)
  }
  pod.hostsProcess.on('message', recordArrival)
  try {
    const requests = Promise.all([
      startAtRate(RATES.reads, seconds, (index) => read(run, READ_PATHS[index % READ_PATHS.length] ?? '/')),
      startAtRate(RATES.localPosts, seconds, () => publish(run, pod.alice, 'good')),
      startAtRate(RATES.localPosts, seconds, () => publish(run, pod.bob, 'uninvolved')),
      startAtRate(RATES.remotePosts, seconds, () => send(run, postOf(pod.gina), run.stored)),
      startAtRate(RATES.remoteComments, seconds, () => send(run, commentOf(pod.gina, parentGuid), run.stored)),
      startAtRate(1 / NEWCOMER_INTERVAL_SECONDS, seconds, async (index) => {
        const newcomer = newcomers[index]
        if (newcomer !== undefined) await send(run, postOf(newcomer), run.newcomers)
      }),
    ])
    let haveResponses = false
    // A late response can add an expected post after all other posts have arrived.
    const watch = {
      haveResponses: () => haveResponses,
      deadline: performance.now() + seconds * 1_000 + COMPLETE_WITHIN_MS,
    }
    const allResponses = requests.then(() => {
      haveResponses = true
    })
    await Promise.all([allResponses, watchRows(run, watch, arrivals)])
  } finally {
    pod.hostsProcess.off('message', recordArrival)
  }
  const endedAt = Date.now()
  return {
    api: run.api,
    accepted: run.accepted,
    stored: latenciesOf(run.stored, endedAt),
    delivered: latenciesOf(run.delivered, endedAt),
    newcomers: latenciesOf(run.newcomers, endedAt),
    refused: run.refused,
    lost: {
      stored: countPending(run.stored),
      delivered: countPending(run.delivered),
      newcomers: countPending(run.newcomers),
    },
  }
}

/** The first request starts half an interval late, so that several kinds do not start at once. */
async function startAtRate(rate: number, seconds: number, start: (index: number) => Promise<void>): Promise<void> {
  const began = performance.now()
  const started: Promise<void>[] = []
  for (let index = 0; index < Math.floor(rate * seconds); index += 1) {
    await pause(Math.max(0, began + ((index + 0.5) * 1_000) / rate - performance.now()))
    started.push(start(index))
  }
  await Promise.all(started)
}

async function read(run: Run, path: string): Promise<void> {
  await callApi(run, run.pod.alice, path)
}

async function publish(run: Run, author: LocalUser, to: RemoteHostName): Promise<void> {
  const requestedAt = Date.now()
  const post = await callApi(run, author, '/api/v1/posts', { public: true, body: 'Good morning. '.repeat(20) })
  if (post !== undefined) run.delivered.set(keyOf(to, post.guid), { requestedAt })
}

/** Undefined: the request failed. */
async function callApi(run: Run, user: LocalUser, path: string, body?: object): Promise<{ guid: string } | undefined> {
  const began = performance.now()
  try {
    const response = await fetch(`http://127.0.0.1:${run.pod.port}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${user.token}`,
        'content-type': 'application/json',
        'x-forwarded-for': '192.0.2.10',
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    })
    const post = (await response.json()) as { readonly guid: string } // callers read the guid of new posts only
    if (response.ok) return post
    run.refused += 1
  } catch {
    run.refused += 1
  } finally {
    run.api.push(performance.now() - began)
  }
  return undefined
}

async function send(run: Run, { guid, envelope }: SignedMessage, expected: Expected): Promise<void> {
  const requestedAt = Date.now()
  const began = performance.now()
  const status = await sendMessage(run.pod.port, envelope).catch(() => 0)
  run.accepted.push(performance.now() - began)
  if (status === 202) expected.set(guid, { requestedAt })
  else run.refused += 1
}

/** Records the times of committed rows and deliveries until none is pending, or until the deadline. */
async function watchRows(
  run: Run,
  { haveResponses, deadline }: { readonly haveResponses: () => boolean; readonly deadline: number },
  arrivals: ReadonlyMap<string, number>,
): Promise<void> {
  while (performance.now() < deadline) {
    // Read first: a later response can add an expected row, which needs another query.
    const hadResponses = haveResponses()
    const pending = [run.stored, run.newcomers].flatMap((expected) => pendingKeys(expected))
    const committed = await findCommittedGuids(run.pod, pending)
    const now = Date.now()
    for (const expected of [run.stored, run.newcomers]) {
      for (const guid of pendingKeys(expected)) if (committed.has(guid)) markArrived(expected, guid, now)
    }
    for (const key of pendingKeys(run.delivered)) {
      const at = arrivals.get(key)
      if (at !== undefined) markArrived(run.delivered, key, at)
    }
    const isComplete = [run.stored, run.newcomers, run.delivered].every((expected) => countPending(expected) === 0)
    if (isComplete && hadResponses) return
    await pause(POLL_MS)
  }
}

async function findCommittedGuids({ db }: HostilePod, guids: readonly string[]): Promise<ReadonlySet<string>> {
  if (guids.length === 0) return new Set()
  const { rows }: { rows: { guid: string }[] } = await db.raw(
    `select guid from posts where guid = any(:guids) union all select guid from comments where guid = any(:guids)`,
    { guids: [...guids] },
  )
  return new Set(rows.map(({ guid }) => guid))
}

function markArrived(expected: Expected, key: string, at: number): void {
  const entry = expected.get(key)
  if (entry !== undefined) entry.arrivedAt = at
}

function pendingKeys(expected: Expected): readonly string[] {
  return [...expected].flatMap(([key, { arrivedAt }]) => (arrivedAt === undefined ? [key] : []))
}

function countPending(expected: Expected): number {
  return pendingKeys(expected).length
}

/** Latencies of all expected rows or deliveries. A pending one counts until the end of the run. */
function latenciesOf(expected: Expected, endedAt: number): readonly number[] {
  return Array.from(expected.values(), ({ requestedAt, arrivedAt = endedAt }) => arrivedAt - requestedAt)
}

function keyOf(host: RemoteHostName, guid: string): string {
  return `${host} ${guid}`
}
