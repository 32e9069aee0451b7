import type { ChildProcess } from 'node:child_process'
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { LoadResult, Question } from '../load/http-load.js'
import { load, openHttpLoader, type Timed, timed } from '../load/timed-load.js'
import { type Listing, listings } from './api-listings.js'
import { type OpenedPod, openBareRoute, openGeneratedPod, type Subject } from './api-pods.js'
import { MIN_POSTS, planPod } from './generated-pod.js'
import { streamListings } from './stream-listings.js'

const MAX_STATEMENTS = 5

/**
 * Every list of the API on a large pod, beside a bare Fastify route with one statement that reads nothing, and beside the same
 * lists on a small pod: what a page costs must not depend on how much else there is. Last, what it costs to write a post.
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

interface Setting {
  readonly loader: ChildProcess
  readonly rounds: number
  readonly small: OpenedPod
  readonly large: OpenedPod
  readonly bare: Subject
}

async function* measure(listing: Listing, { loader, rounds, small, large, bare }: Setting): AsyncGenerator<Result> {
  const [smallQuestions, largeQuestions] = [questionsOf(listing, small), questionsOf(listing, large)]
  const areRight = [
    await areAnswered(listing, small, smallQuestions),
    await areAnswered(listing, large, largeQuestions),
  ]
  const statements = await statementsOf(large.app, largeQuestions[0])
  const pids = { web: process.pid, postgres: large.stores.pids['postgres'] ?? Number.NaN }

  const besideBare: Round[] = []
  const besideSmall: Round[] = []
  for (let round = -1; round < rounds; round += 1) {
    const ofBare = await timed(pids, () => load(loader, bare.port, [{ path: '/' }]))
    const ofSmall = await load(loader, small.port, smallQuestions)
    const subject = await timed(pids, () => load(loader, large.port, largeQuestions))
    // The first round warms up: connections, statements, the compiler of the JavaScript engine.
    if (round < 0) continue
    besideBare.push({ subject, limit: ofBare, bare: ofBare })
    besideSmall.push({ subject, limit: ofSmall, bare: ofBare })
  }

  const ok = areRight.every(Boolean) && statements <= MAX_STATEMENTS
  yield resultOf(listing.name, besideBare, { floor: FLOORS.list[listing.kind], ok, more: { statements } })
  yield resultOf(`${listing.name}, by size`, besideSmall, { floor: FLOORS.size, ok })
}

/** Beside a bare route that writes one row. All that answered are there, and no others. */
async function measurePosting({ loader, rounds, large, bare }: Omit<Setting, 'small'>): Promise<Result> {
  const token = large.tokens.values().next().value ?? ''
  const body = { body: '**The quick brown fox** jumps over the lazy dog, and goes home.', public: true }
  const question = { path: '/api/v1/posts', token, body }
  const pids = { web: process.pid, postgres: large.stores.pids['postgres'] ?? Number.NaN }
  const statements = await statementsOf(large.app, question)

  const before = await large.countPosts()
  let answers = 0
  const measured: Round[] = []
  for (let round = -1; round < rounds; round += 1) {
    const ofBare = await timed(pids, () => load(loader, bare.port, [{ path: '/', body }]))
    const subject = await timed(pids, () => load(loader, large.port, [question]))
    answers += subject.requests
    if (round >= 0) measured.push({ subject, limit: ofBare, bare: ofBare })
  }
  const ok = (await large.countPosts()) - before === answers
  return resultOf('writing a post', measured, { ok, more: { statements } })
}

interface Round {
  readonly subject: Timed
  readonly limit: LoadResult
  readonly bare: Timed
}

function questionsOf({ questions }: Listing, { plan, tokens }: OpenedPod): readonly Question[] {
  return questions(plan).map(({ path, user }) => {
    const token = tokens.get(user)
    if (token === undefined) throw new Error(`User ${user} has no token.`)
    return { path, token }
  })
}

/** Whether each of them has the answer that the plan of the pod foresees. */
async function areAnswered(
  listing: Listing,
  { app, plan }: OpenedPod,
  questions: readonly Question[],
): Promise<boolean> {
  for (const [index, { path, token }] of questions.entries()) {
    const answer = await app.inject({ url: path, headers: { authorization: `Bearer ${token}` } })
    const isRight = answer.statusCode === 200 && listing.isRight(answer.json(), plan, index)
    if (isRight) continue
    process.stderr.write(`${path} answered ${answer.statusCode}: ${answer.body.slice(0, 300)}\n`)
    return false
  }
  return true
}

/** The minimum of some attempts: statements of background work do not belong to the request. */
async function statementsOf(app: FastifyInstance, question: Question | undefined): Promise<number> {
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
      const { path = '', token, body } = question ?? {}
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
    ok: ok && rounds.every(({ subject, limit }) => subject.wrong === 0 && limit.wrong === 0),
  }
}

function rateOf({ requests, seconds }: LoadResult): number {
  return requests / seconds
}
