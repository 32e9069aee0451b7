import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type FastifyInstance, fastify } from 'fastify'
import type { Knex } from 'knex'
import pg from 'pg'
import { pino } from 'pino'
import { readConfig } from '../src/config.js'
import { mintToken } from '../src/domain/accounts.js'
import { SCOPES } from '../src/domain/scopes.js'
import { openPod } from '../src/open-pod.js'
import { named, openDatabase, WEB_LIMITS } from '../src/persistence/database.js'
import { buildApp } from '../src/web/app.js'
import { openCryptoPool } from '../workers/threads/crypto-pool.js'
import { type Listing, listings, readersOf } from './api-listings.js'
import { type BenchOptions, median, type Result, spreadOf } from './bench.js'
import { type BenchStores, openBenchStores } from './bench-stores.js'
import { FEWEST_POSTS, type GeneratedPod, generatePod, planPod } from './generated-pod.js'
import type { Load, LoadResult, Question } from './http-load.js'
import { processorTimesOf } from './processor-time.js'

const CONNECTIONS = 16
const MILLISECONDS = 700
const FLOOR = 0.15
/** Beside a pod of a hundredth of its size. */
const FLOOR_OF_SIZE = 0.8
const MOST_STATEMENTS = 5
const A_DAY = 86_400

/**
 * Every list of the API on a large pod, beside a bare Fastify route with one statement that reads nothing, and beside the same
 * lists on a small pod: what a page costs must not depend on how much else there is.
 */
export async function* benchApi({ rounds, size }: BenchOptions): AsyncGenerator<Result> {
  const loader = fork(new URL(import.meta.url.endsWith('.ts') ? './http-load.ts' : './http-load.js', import.meta.url))
  try {
    await using small = await openGeneratedPod(planPod(FEWEST_POSTS))
    await using large = await openGeneratedPod(planPod(size))
    await using bare = await openBareRoute(large.stores)
    for (const listing of listings) yield* measure(listing, { loader, rounds, small, large, bare })
  } finally {
    loader.kill()
  }
}

interface Subject extends AsyncDisposable {
  readonly port: number
}

interface Opened extends Subject {
  readonly app: FastifyInstance
  readonly plan: GeneratedPod
  readonly stores: BenchStores
  /** Of the users, by their number. */
  readonly tokens: ReadonlyMap<number, string>
}

async function openGeneratedPod(plan: GeneratedPod): Promise<Opened> {
  const stores = await openBenchStores('postgresql', { fast: true })
  if (stores === undefined) throw new Error('The embedded database is always there.')
  await generatePod(stores.databaseUrl, plan)
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: stores.databaseUrl,
    SECRET_KEY: 'a key that is only good for benches',
  })
  const crypto = openCryptoPool(1)
  const pod = await openPod(config, 'web', { crypto, log: pino({ level: 'silent' }) })
  const app = await buildApp(pod)
  const tokens = new Map<number, string>()
  for (const user of readersOf(plan)) {
    const { accessToken } = await mintToken(pod, `person${user}`, { scopes: SCOPES, lifetime: A_DAY })
    tokens.set(user, accessToken)
  }
  return {
    app,
    plan,
    stores,
    tokens,
    port: await listen(app),
    async [Symbol.asyncDispose]() {
      await app.close()
      await pod.close()
      await crypto.close()
      await stores.close()
    },
  }
}

/** What nothing that asks a database could be faster than. */
async function openBareRoute({ databaseUrl }: BenchStores): Promise<Subject> {
  const db: Knex = openDatabase({ ...WEB_LIMITS, url: databaseUrl, applicationName: 'bench' })
  const app = fastify()
  app.get('/', async () => named(db, 'bare', 'select 1 as one', []))
  return {
    port: await listen(app),
    async [Symbol.asyncDispose]() {
      await app.close()
      await db.destroy()
    },
  }
}

async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port // it listens on a port
}

interface Setting {
  readonly loader: ChildProcess
  readonly rounds: number
  readonly small: Opened
  readonly large: Opened
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

  const measured: Round[] = []
  for (let round = -1; round < rounds; round += 1) {
    const ofBare = await timed(pids, () => load(loader, bare.port, [{ path: '/' }]))
    const ofSmall = await load(loader, small.port, smallQuestions)
    const ofLarge = await timed(pids, () => load(loader, large.port, largeQuestions))
    // The first round warms up: connections, statements, the compiler of the JavaScript engine.
    if (round >= 0) measured.push({ bare: ofBare, small: ofSmall, large: ofLarge })
  }

  const ok = areRight.every(Boolean) && statements <= MOST_STATEMENTS
  yield resultOf(listing.name, measured, { beside: 'bare', floor: FLOOR, ok, more: { statements } })
  yield resultOf(`${listing.name}, by size`, measured, { beside: 'small', floor: FLOOR_OF_SIZE, ok })
}

interface Round {
  readonly bare: Timed
  readonly small: LoadResult
  readonly large: Timed
}

interface Timed extends LoadResult {
  /** Microseconds of processor time for one request, by process. */
  readonly cpu: { readonly web: number; readonly postgres: number }
}

async function timed(
  pids: Readonly<Record<'web' | 'postgres', number>>,
  run: () => Promise<LoadResult>,
): Promise<Timed> {
  const before = processorTimesOf(pids)
  const result = await run()
  const after = processorTimesOf(pids)
  const spent = (name: 'web' | 'postgres') => ((after[name] ?? 0) - (before[name] ?? 0)) / result.requests
  return { ...result, cpu: { web: spent('web'), postgres: spent('postgres') } }
}

function questionsOf({ questions }: Listing, { plan, tokens }: Opened): readonly Question[] {
  return questions(plan).map(({ path, user }) => {
    const token = tokens.get(user)
    if (token === undefined) throw new Error(`User ${user} has no token.`)
    return { path, token }
  })
}

/** Whether each of them has the answer that the plan of the pod foresees. */
async function areAnswered(listing: Listing, { app, plan }: Opened, questions: readonly Question[]): Promise<boolean> {
  for (const [index, { path, token }] of questions.entries()) {
    const answer = await app.inject({ url: path, headers: { authorization: `Bearer ${token}` } })
    const isRight = answer.statusCode === 200 && listing.isRight(answer.json(), plan, index)
    if (isRight) continue
    process.stderr.write(`${path} answered ${answer.statusCode}: ${answer.body.slice(0, 300)}\n`)
    return false
  }
  return true
}

/** The fewest of some tries: what the process asks on its own account does not belong to the request. */
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
      await app.inject({ url: question?.path ?? '', headers: { authorization: `Bearer ${question?.token}` } })
      counts.push(statements - before)
    }
    return Math.min(...counts)
  } finally {
    pg.Client.prototype.query = query
  }
}

async function load(loader: ChildProcess, port: number, questions: readonly Question[]): Promise<LoadResult> {
  loader.send({
    port,
    questions,
    host: 'pod.example',
    connections: CONNECTIONS,
    milliseconds: MILLISECONDS,
  } satisfies Load)
  const [result]: readonly LoadResult[] = await once(loader, 'message')
  if (result === undefined) throw new Error('the loader said nothing')
  return result
}

interface Comparison {
  readonly beside: 'bare' | 'small'
  readonly floor: number
  readonly ok: boolean
  readonly more?: Readonly<Record<string, number>>
}

function resultOf(name: string, rounds: readonly Round[], { beside, floor, ok, more }: Comparison): Result {
  const rates = rounds.map(({ large }) => rateOf(large))
  const limits = rounds.map((round) => rateOf(round[beside]))
  return {
    bench: 'api',
    case: name,
    value: median(rates),
    unit: 'requests/s',
    limit: median(limits),
    ratio: median(rates.map((rate, index) => rate / (limits[index] ?? Number.NaN))),
    floor,
    rounds: rounds.length,
    spread: spreadOf(rates),
    cpu_us: {
      web: median(rounds.map(({ large }) => large.cpu.web)),
      postgres: median(rounds.map(({ large }) => large.cpu.postgres)),
      'bare web': median(rounds.map(({ bare }) => bare.cpu.web)),
      'bare postgres': median(rounds.map(({ bare }) => bare.cpu.postgres)),
    },
    ...(more && { more }),
    ok: ok && rounds.every((round) => round.large.wrong === 0 && round[beside].wrong === 0),
  }
}

function rateOf({ requests, seconds }: LoadResult): number {
  return requests / seconds
}
