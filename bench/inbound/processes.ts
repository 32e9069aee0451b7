import type { ChildProcess } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import type { PodCrypto } from '../../src/services/pod-crypto.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, leaveOut, median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { load, openLoader } from '../load/post-loader.js'
import { type BenchStores, openBenchStores } from '../machine/bench-stores.js'
import { end } from '../machine/child-process.js'
import { processorTimesOf } from '../machine/processor-time.js'
import { type InboundCorpus, inboundCorpus, partOf } from './inbound-corpus.js'
import { empty, environmentOf, isRight, type PodProcess, prepare, startProcess, untilWritten } from './inbound-pod.js'

/** Messages of a round, by tens: there are many rounds. */
const TENS = 600

/** How many processes of each kind share the work, and how many threads each of these workers has. */
interface Plan {
  readonly web: number
  readonly workers: number
  readonly threads: number
}

const CORES = availableParallelism()
const CONNECTIONS = 64
/** Each has half of what is sent, so that a second web process has no other load than a first. */
const LOADERS = 2

/** All cores for the threads of all workers together, but that each has one at least. */
const plans: readonly Plan[] = [
  { web: 1, workers: 1, threads: share(1) },
  { web: 1, workers: 2, threads: share(2) },
  { web: 2, workers: 2, threads: share(2) },
  { web: 2, workers: 4, threads: share(4) },
]

/** Signed envelopes from the socket to committed rows, through several web and worker processes on the same machine. */
export async function* benchProcesses({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const corpus = partOf(await inboundCorpus(4096), TENS)
  const loaders = Array.from({ length: LOADERS }, openLoader)
  const crypto = openCryptoPool(1)
  const pods: RunningPod[] = []
  try {
    for (const plan of plans) {
      const pod = await startPod(plan, crypto, corpus)
      if (pod === undefined) return leaveOut('There is no redis-server on the PATH', 'everything')
      pods.push(pod)
      // The first messages of a process are its slowest, and each has only its share of them.
      for (let time = 0; time <= Math.min(plan.workers, CORES); time += 1) await measureOnce(pod, loaders, corpus)
    }
    const seen: Seen[][] = pods.map(() => [])
    for (let round = 0; round < rounds; round += 1) {
      // In turn, so that other load of the machine affects all of them equally.
      for (const [index, pod] of pods.entries()) seen[index]?.push(await measureOnce(pod, loaders, corpus))
    }
    const [alone = []] = seen
    for (const [index, { plan }] of pods.entries()) yield resultOf(plan, seen[index] ?? [], alone)
  } finally {
    for (const pod of pods) await pod.close()
    await crypto.close()
    for (const loader of loaders) loader.kill()
  }
}

/** One with stores and processes of its own, which rest while others have their turn. */
interface RunningPod {
  readonly plan: Plan
  readonly stores: BenchStores
  readonly web: readonly PodProcess[]
  readonly workers: readonly PodProcess[]
  /** The same, for measurements. */
  readonly services: OpenServices
  readonly redis: Redis
  close(): Promise<void>
}

/** Undefined: there is no Redis on this machine. */
async function startPod(plan: Plan, crypto: PodCrypto, corpus: InboundCorpus): Promise<RunningPod | undefined> {
  const stores = await openBenchStores('redis')
  if (stores === undefined) return undefined
  const environment = { ...environmentOf(stores), CRYPTO_THREADS: String(plan.threads) }
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const redis = new Redis(stores.redisUrl ?? '')
  await prepare(services.db, corpus)
  const start = (path: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => startProcess(path, environment)))
  const [web, workers] = await Promise.all([start('../src/server', plan.web), start('../workers/main', plan.workers)])
  return {
    plan,
    stores,
    web,
    workers,
    services,
    redis,
    async close() {
      await Promise.all([...web, ...workers].map(({ child }) => end(child)))
      redis.disconnect()
      await services.close()
      await stores.close()
    },
  }
}

interface Seen {
  readonly perSecond: number
  /** Microseconds for one message, of all processes of a kind. */
  readonly cpu: Readonly<Record<string, number>>
  /** To PostgreSQL. */
  readonly connections: number
  /** For one message, those inside of scripts included. */
  readonly commands: number
  /**
   * Messages that were not accepted in time: another pod would send them again. They are there all the same, or nothing would ever be
   * complete.
   */
  readonly refused: number
  readonly ok: boolean
}

async function measureOnce(
  { stores, web, workers, services, redis }: RunningPod,
  loaders: readonly ChildProcess[],
  corpus: InboundCorpus,
): Promise<Seen> {
  await empty(services.db, corpus)
  const pids = {
    ...namedPids(
      'web',
      web.map(({ child }) => child),
    ),
    ...namedPids(
      'worker',
      workers.map(({ child }) => child),
    ),
    ...namedPids('loader', loaders),
    ...stores.pids,
  }
  const bodies = corpus.messages.map(({ envelope }) => envelope)
  const commandsBefore = await commandsOf(redis)
  const before = processorTimesOf(pids)
  const parts = loaders.map((loader, index) => {
    const port = web[index % web.length]?.port ?? 0
    const own = bodies.filter((_, body) => body % loaders.length === index)
    const connections = CONNECTIONS / loaders.length
    return load(loader, { port, path: '/receive/public', connections, bodies: own })
  })
  const sent = await Promise.all(parts)
  const writtenAt = await untilWritten(services.db, corpus)
  const after = processorTimesOf(pids)
  while (!(await isIdle(services))) await pause(50)

  const first = Math.min(...sent.map(({ sentAt }) => sentAt[0] ?? Number.NaN))
  const last = Math.max(...writtenAt.values())
  const cpu: Record<string, number> = {}
  for (const name of Object.keys(pids)) {
    const kind = name.replace(/ \d+$/, '')
    cpu[kind] = (cpu[kind] ?? 0) + ((after[name] ?? 0) - (before[name] ?? 0)) / bodies.length
  }
  return {
    perSecond: (bodies.length * 1_000) / (last - first),
    cpu,
    connections: await connectionsOf(services),
    commands: ((await commandsOf(redis)) - commandsBefore) / bodies.length,
    refused: sent.reduce((sum, { wrong }) => sum + wrong, 0),
    ok: await isRight(services, corpus),
  }
}

function namedPids(kind: string, children: readonly ChildProcess[]): Record<string, number> {
  return Object.fromEntries(children.map(({ pid }, index) => [`${kind} ${index}`, pid ?? Number.NaN]))
}

async function commandsOf(redis: Redis): Promise<number> {
  const calls = (await redis.info('commandstats')).matchAll(/:calls=(\d+)/g)
  return Array.from(calls, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0)
}

/** Of the processes, without the measuring process. */
async function connectionsOf({ db }: OpenServices): Promise<number> {
  const { rows } = await db.raw(
    `select count(*) from pg_stat_activity where application_name like 'pod w%' and datname = current_database()`,
  )
  return Number(rows[0].count)
}

function resultOf({ web, workers, threads }: Plan, seen: readonly Seen[], alone: readonly Seen[]): Result {
  const rates = seen.map(({ perSecond }) => perSecond)
  const isAlone = seen === alone
  return {
    bench: 'processes',
    case: `${web} web, ${workers} ${workers === 1 ? 'worker' : 'workers'} of ${threads} ${threads === 1 ? 'thread' : 'threads'}`,
    value: median(rates),
    unit: 'msg/s',
    ...(!isAlone && {
      limit: median(alone.map(({ perSecond }) => perSecond)),
      ratio: median(rates.map((rate, round) => rate / (alone[round]?.perSecond ?? Number.NaN))),
      ...(workers * threads <= CORES && { floor: FLOORS.processes }),
    }),
    rounds: seen.length,
    spread: spreadOf(rates),
    cpu_us: medianCpu(seen),
    more: {
      connections: median(seen.map(({ connections }) => connections)),
      refused: Math.max(...seen.map(({ refused }) => refused)),
      redis_commands: median(seen.map(({ commands }) => commands)),
    },
    ok: seen.every(({ ok }) => ok),
  }
}

function share(workers: number): number {
  return Math.max(1, Math.floor(CORES / workers))
}
