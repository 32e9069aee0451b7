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

/** How many of each in a second: modest, so that the machine has capacity for the attack. */
const RATES = { reads: 8, postsOfUser: 2, postsFromOutside: 2, commentsFromOutside: 2 } as const
const NEWCOMER_INTERVAL_SECONDS = 5
const READ_PATHS = ['/api/v1/streams/main', '/api/v1/user'] as const
/** A client has given up by then. */
const ANSWER_WITHIN_MS = 20_000
/** After the last request, for what is not stored or delivered yet. */
const COMPLETE_WITHIN_MS = 30_000
/** How exactly it is known when a row is committed and visible. */
const POLL_MS = 20

export interface OrdinaryTraffic extends OrdinaryTimes {
  /** From the first message of a person whom the pod does not know to its row. */
  readonly newcomers: readonly number[]
  /** Requests of clients and messages of honest pods without a 2xx answer. */
  readonly refused: number
  /** What was accepted and was not stored or delivered within the time. */
  readonly lost: Readonly<Record<'stored' | 'delivered' | 'newcomers', number>>
}

/** What has to come true, by guid: since when, and when it did. */
type Expected = Map<string, { readonly since: number; came?: number }>

interface Run {
  readonly pod: HostilePod
  readonly api: number[]
  readonly accepted: number[]
  readonly stored: Expected
  readonly newcomers: Expected
  readonly delivered: Expected
  refused: number
}

/** People whom the pod does not know, for one run of so many seconds. */
export async function addNewcomers(pod: HostilePod, prefix: string, seconds: number): Promise<readonly RemotePerson[]> {
  const names = Array.from(
    { length: Math.floor(seconds / NEWCOMER_INTERVAL_SECONDS) },
    (_, index) => `${prefix}${index}`,
  )
  return pod.addPeople(names, 'good')
}

/**
 * Clients read and write, and honest pods send, for so many seconds. Requests start by the clock, whether or not earlier ones were
 * answered: a slow pod does not get fewer of them.
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
  // A post can arrive before the client has its guid.
  const arrivals = new Map<string, number>()
  const takeArrival = (message: Arrival | object) => {
    if ('host' in message) arrivals.set(keyOf(message.host, message.guid), message.at)
  }
  pod.hostsProcess.on('message', takeArrival)
  try {
    const requests = Promise.all([
      everySecond(RATES.reads, seconds, (index) => read(run, READ_PATHS[index % READ_PATHS.length] ?? '/')),
      everySecond(RATES.postsOfUser, seconds, () => publish(run, pod.alice, 'good')),
      everySecond(RATES.postsOfUser, seconds, () => publish(run, pod.bob, 'uninvolved')),
      everySecond(RATES.postsFromOutside, seconds, () => send(run, postOf(pod.gina), run.stored)),
      everySecond(RATES.commentsFromOutside, seconds, () => send(run, commentOf(pod.gina, parentGuid), run.stored)),
      everySecond(1 / NEWCOMER_INTERVAL_SECONDS, seconds, async (index) => {
        const newcomer = newcomers[index]
        if (newcomer !== undefined) await send(run, postOf(newcomer), run.newcomers)
      }),
    ])
    let areAnswered = false
    // A slow answer can name a post after everything else has come.
    const watch = { isOver: () => areAnswered, deadline: performance.now() + seconds * 1_000 + COMPLETE_WITHIN_MS }
    const answered = requests.then(() => {
      areAnswered = true
    })
    await Promise.all([answered, watchRows(run, watch, arrivals)])
  } finally {
    pod.hostsProcess.off('message', takeArrival)
  }
  const ended = Date.now()
  return {
    api: run.api,
    accepted: run.accepted,
    stored: timesOf(run.stored, ended),
    delivered: timesOf(run.delivered, ended),
    newcomers: timesOf(run.newcomers, ended),
    refused: run.refused,
    lost: {
      stored: countMissing(run.stored),
      delivered: countMissing(run.delivered),
      newcomers: countMissing(run.newcomers),
    },
  }
}

/** The first request starts half an interval late, so that several kinds do not start at once. */
async function everySecond(rate: number, seconds: number, start: (index: number) => Promise<void>): Promise<void> {
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
  const since = Date.now()
  const answer = await callApi(run, author, '/api/v1/posts', { public: true, body: 'Good morning. '.repeat(20) })
  if (answer !== undefined) run.delivered.set(keyOf(to, answer.guid), { since })
}

/** Undefined: it was refused. */
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
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    const answer = (await response.json()) as { readonly guid: string } // only of a new post, and only there it is read
    if (response.ok) return answer
    run.refused += 1
  } catch {
    run.refused += 1
  } finally {
    run.api.push(performance.now() - began)
  }
  return undefined
}

async function send(run: Run, { guid, envelope }: SignedMessage, expected: Expected): Promise<void> {
  const since = Date.now()
  const began = performance.now()
  const status = await sendMessage(run.pod.port, envelope).catch(() => 0)
  run.accepted.push(performance.now() - began)
  if (status === 202) expected.set(guid, { since })
  else run.refused += 1
}

/** Until everything has come and no request is open any more, or the time for that is over. */
async function watchRows(
  run: Run,
  { isOver, deadline }: { readonly isOver: () => boolean; readonly deadline: number },
  arrivals: ReadonlyMap<string, number>,
): Promise<void> {
  while (performance.now() < deadline) {
    // Read first: what an answer adds later must be looked for once more.
    const wereAnswered = isOver()
    const asked = [run.stored, run.newcomers].flatMap((expected) => missingIn(expected))
    const committed = await committedOf(run.pod, asked)
    const now = Date.now()
    for (const expected of [run.stored, run.newcomers]) {
      for (const guid of missingIn(expected)) if (committed.has(guid)) complete(expected, guid, now)
    }
    for (const key of missingIn(run.delivered)) {
      const at = arrivals.get(key)
      if (at !== undefined) complete(run.delivered, key, at)
    }
    const isComplete = [run.stored, run.newcomers, run.delivered].every((expected) => countMissing(expected) === 0)
    if (isComplete && wereAnswered) return
    await pause(POLL_MS)
  }
}

async function committedOf({ db }: HostilePod, guids: readonly string[]): Promise<ReadonlySet<string>> {
  if (guids.length === 0) return new Set()
  const { rows }: { rows: { guid: string }[] } = await db.raw(
    `select guid from posts where guid = any(:guids) union all select guid from comments where guid = any(:guids)`,
    { guids: [...guids] },
  )
  return new Set(rows.map(({ guid }) => guid))
}

function complete(expected: Expected, key: string, at: number): void {
  const one = expected.get(key)
  if (one !== undefined) one.came = at
}

function missingIn(expected: Expected): readonly string[] {
  return [...expected].flatMap(([key, { came }]) => (came === undefined ? [key] : []))
}

function countMissing(expected: Expected): number {
  return missingIn(expected).length
}

/** What is missing counts with the time that was waited for it. */
function timesOf(expected: Expected, ended: number): readonly number[] {
  return Array.from(expected.values(), ({ since, came = ended }) => came - since)
}

function keyOf(host: RemoteHostName, guid: string): string {
  return `${host} ${guid}`
}
