import type { ChildProcess } from 'node:child_process'
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { LoadRequest, LoadResult } from '../load/http-load.js'
import { load, type MeasuredLoad, measureLoad, openHttpLoader } from '../load/http-loader.js'
import { type Listing, listings } from './api-listings.js'
import { type OpenedPod, openBareRoute, openGeneratedPod, type RunningServer } from './api-pods.js'
import { MIN_POSTS, planPod } from './generated-pod.js'
import { streamListings } from './stream-listings.js'

const MAX_STATEMENTS = 5

/**
 * Every list of the API on a large pod, compared with a bare Fastify route that runs one statement, and with the same lists on a
 * small pod: the cost of a page must not depend on the size of the pod. The last case is the cost of a new post.
 */
export async function* benchApi({ rounds, size }: BenchOptions): AsyncGenerator<Result> {
  const loader = openHttpLoader()
  try {
    await using small = await openGeneratedPod(planPod(MIN_POSTS))
    await using large = await openGeneratedPod(planPod(size))
    await using bare = await openBareRoute(large.stores)
    for (const listing of [...listings, ...streamListings])
      yield* measure(listing, { loader, rounds, small, large, bare })
    yield await measurePosting({ loader, rounds, large, bare })
  } finally {
    loader.kill()
  }
}

interface ApiSetup {
  readonly loader: ChildProcess
  readonly rounds: number
  readonly small: OpenedPod
  readonly large: OpenedPod
  readonly bare: RunningServer
}

async function* measure(listing: Listing, { loader, rounds, small, large, bare }: ApiSetup): AsyncGenerator<Result> {
  const [smallRequests, largeRequests] = [requestsOf(listing, small), requestsOf(listing, large)]
  const areCorrect = [
    await areResponsesCorrect(listing, small, smallRequests),
    await areResponsesCorrect(listing, large, largeRequests),
  ]
  const statements = await countStatements(large.app, largeRequests[0])
  const pids = { web: process.pid, postgres: large.stores.pids['postgres'] ?? Number.NaN }

  const roundsWithBare: Round[] = []
  const roundsWithSmall: Round[] = []
  for (let round = -1; round < rounds; round += 1) {
    const bareLoad = await measureLoad(pids, () => load(loader, bare.port, [{ path: '/' }]))
    const smallLoad = await load(loader, small.port, smallRequests)
    const subject = await measureLoad(pids, () => load(loader, large.port, largeRequests))
    // The first round warms up: connections, statements, the compiler of the JavaScript engine.
    if (round < 0) continue
    roundsWithBare.push({ subject, limit: bareLoad, bare: bareLoad })
    roundsWithSmall.push({ subject, limit: smallLoad, bare: bareLoad })
  }

  const ok = areCorrect.every(Boolean) && statements <= MAX_STATEMENTS
  yield resultOf(listing.name, roundsWithBare, { floor: FLOORS.list[listing.kind], ok, more: { statements } })
  yield resultOf(`${listing.name}, by size`, roundsWithSmall, { floor: FLOORS.size, ok })
}

/** Compares new posts with a bare route that writes one row. Every successful request must have created one post. */
async function measurePosting({ loader, rounds, large, bare }: Omit<ApiSetup, 'small'>): Promise<Result> {
  const token = large.tokens.values().next().value ?? ''
  const body = { body: '**The quick brown fox** jumps over the lazy dog, and goes home.', public: true }
  const request = { path: '/api/v1/posts', token, body }
  const pids = { web: process.pid, postgres: large.stores.pids['postgres'] ?? Number.NaN }
  const statements = await countStatements(large.app, request)

  const before = await large.countPosts()
  let responses = 0
  const measuredRounds: Round[] = []
  for (let round = -1; round < rounds; round += 1) {
    const bareLoad = await measureLoad(pids, () => load(loader, bare.port, [{ path: '/', body }]))
    const subject = await measureLoad(pids, () => load(loader, large.port, [request]))
    responses += subject.responses
    if (round >= 0) measuredRounds.push({ subject, limit: bareLoad, bare: bareLoad })
  }
  const ok = (await large.countPosts()) - before === responses
  return resultOf('writing a post', measuredRounds, { ok, more: { statements } })
}

interface Round {
  readonly subject: MeasuredLoad
  readonly limit: LoadResult
  readonly bare: MeasuredLoad
}

function requestsOf({ requests }: Listing, { plan, tokens }: OpenedPod): readonly LoadRequest[] {
  return requests(plan).map(({ path, user }) => {
    const token = tokens.get(user)
    if (token === undefined) throw new Error(`User ${user} has no token.`)
    return { path, token }
  })
}

/** Whether every response matches the plan of the pod. */
async function areResponsesCorrect(
  listing: Listing,
  { app, plan }: OpenedPod,
  requests: readonly LoadRequest[],
): Promise<boolean> {
  for (const [index, { path, token }] of requests.entries()) {
    const response = await app.inject({ url: path, headers: { authorization: `Bearer ${token}` } })
    const isCorrect = response.statusCode === 200 && listing.isCorrect(response.json(), plan, index)
    if (isCorrect) continue
    process.stderr.write(`${path} responded ${response.statusCode}: ${response.body.slice(0, 300)}\n`)
    return false
  }
  return true
}

/** Statements of a request: the minimum of three attempts, because background work runs statements too. */
async function countStatements(app: FastifyInstance, request: LoadRequest | undefined): Promise<number> {
  const query = pg.Client.prototype.query
  let statements = 0
  pg.Client.prototype.query = function (this: pg.Client, ...rest: unknown[]) {
    statements += 1
    return Reflect.apply(query, this, rest)
  }
  try {
    const counts: number[] = []
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const before = statements
      const { path = '', token, body } = request ?? {}
      const headers = { authorization: `Bearer ${token}` }
      await app.inject({ url: path, headers, ...(body && { method: 'POST', payload: body }) })
      counts.push(statements - before)
    }
    return Math.min(...counts)
  } finally {
    pg.Client.prototype.query = query
  }
}

interface Comparison {
  readonly floor?: number
  readonly ok: boolean
  readonly more?: Readonly<Record<string, number>>
}

function resultOf(name: string, rounds: readonly Round[], { floor, ok, more }: Comparison): Result {
  const rates = rounds.map(({ subject }) => rateOf(subject))
  const limits = rounds.map(({ limit }) => rateOf(limit))
  return {
    bench: 'api',
    case: name,
    value: median(rates),
    unit: 'requests/s',
    limit: median(limits),
    ratio: median(rates.map((rate, index) => rate / (limits[index] ?? Number.NaN))),
    ...(floor !== undefined && { floor }),
    rounds: rounds.length,
    spread: spreadOf(rates),
    cpu_us: {
      web: median(rounds.map(({ subject }) => subject.cpu.web)),
      postgres: median(rounds.map(({ subject }) => subject.cpu.postgres)),
      'bare web': median(rounds.map(({ bare }) => bare.cpu.web)),
      'bare postgres': median(rounds.map(({ bare }) => bare.cpu.postgres)),
    },
    ...(more && { more }),
    ok: ok && rounds.every(({ subject, limit }) => subject.failures === 0 && limit.failures === 0),
  }
}

function rateOf({ responses, seconds }: LoadResult): number {
  return responses / seconds
}
