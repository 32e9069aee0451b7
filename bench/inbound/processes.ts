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
import { type BenchOptions, median, medianCpu, type Result, reportSkipped, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { runPostLoad, startPostLoader } from '../load/post-loader.js'
import { type BenchStores, openBenchStores } from '../machine/bench-stores.js'
import { endProcess } from '../machine/child-process.js'
import { processorTimesOf } from '../machine/processor-time.js'
import { firstMessages, type InboundCorpus, inboundCorpus } from './inbound-corpus.js'
import {
  environmentOf,
  isCorrect,
  type PodProcess,
  prepareDatabase,
  resetRows,
  startProcess,
  waitUntilWritten,
} from './inbound-pod.js'

/** Messages of a round. */
const MESSAGES = 6_000

/** The number of processes of each kind, and of threads in each worker. */
interface Plan {
  readonly web: number
  readonly workers: number
  readonly threads: number
}

const CORES = availableParallelism()
const CONNECTIONS = 64
/** Each sends half of the messages, so that two web processes have the same load. */
const LOADERS = 2

/** The threads of all workers use all cores; each worker has at least one thread. */
const plans: readonly Plan[] = [
  { web: 1, workers: 1, threads: threadsPerWorker(1) },
  { web: 1, workers: 2, threads: threadsPerWorker(2) },
  { web: 2, workers: 2, threads: threadsPerWorker(2) },
  { web: 2, workers: 4, threads: threadsPerWorker(4) },
]

/** Signed envelopes from the socket to committed rows, through several web and worker processes on the same machine. */
export async function* benchProcesses({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const corpus = firstMessages(await inboundCorpus(4096), MESSAGES)
  const loaders = Array.from({ length: LOADERS }, startPostLoader)
  const crypto = openCryptoPool(1)
  const pods: RunningPod[] = []
  try {
    for (const plan of plans) {
      const pod = await startPod(plan, crypto, corpus)
      if (pod === undefined) return reportSkipped('There is no redis-server on the PATH', 'everything')
      pods.push(pod)
      // Warms up all processes: each gets only its share of the messages of a round.
      for (let warmUp = 0; warmUp <= Math.min(plan.workers, CORES); warmUp += 1) await measureOnce(pod, loaders, corpus)
    }
    const measurements: Measurement[][] = pods.map(() => [])
    for (let round = 0; round < rounds; round += 1) {
      // In turn, so that other load of the machine affects all of them equally.
      for (const [index, pod] of pods.entries()) measurements[index]?.push(await measureOnce(pod, loaders, corpus))
    }
    const [baseline = []] = measurements
    for (const [index, { plan }] of pods.entries()) yield resultOf(plan, measurements[index] ?? [], baseline)
  } finally {
    for (const pod of pods) await pod.close()
    await crypto.close()
    for (const loader of loaders) loader.kill()
  }
}

/** A pod with its own stores and processes, which are idle while other pods are measured. */
interface RunningPod {
  readonly plan: Plan
  readonly stores: BenchStores
  readonly web: readonly PodProcess[]
  readonly workers: readonly PodProcess[]
  /** Services of the bench itself with the stores of the pod. */
  readonly services: OpenServices
  readonly redis: Redis
  close(): Promise<void>
}

/** Undefined: Redis is not installed. */
async function startPod(plan: Plan, crypto: PodCrypto, corpus: InboundCorpus): Promise<RunningPod | undefined> {
  const stores = await openBenchStores('redis')
  if (stores === undefined) return undefined
  const environment = { ...environmentOf(stores), CRYPTO_THREADS: String(plan.threads) }
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const redis = new Redis(stores.redisUrl ?? '')
  await prepareDatabase(services.db, corpus)
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
      await Promise.all([...web, ...workers].map(({ child }) => endProcess(child)))
      redis.disconnect()
      await services.close()
      await stores.close()
    },
  }
}

interface Measurement {
  readonly perSecond: number
  /** Microseconds per message, by kind of process. */
  readonly cpu: Readonly<Record<string, number>>
  /** Connections to PostgreSQL. */
  readonly connections: number
  /** Redis commands per message, including those of scripts. */
  readonly commands: number
  /**
   * Messages without a 202 in time. Another pod would send them again. They are stored all the same, because a round ends only when
   * all messages are stored.
   */
  readonly refused: number
  readonly ok: boolean
}

async function measureOnce(
  { stores, web, workers, services, redis }: RunningPod,
  loaders: readonly ChildProcess[],
  corpus: InboundCorpus,
): Promise<Measurement> {
  await resetRows(services.db, corpus)
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
  const commandsBefore = await countCommands(redis)
  const before = processorTimesOf(pids)
  const parts = loaders.map((loader, index) => {
    const port = web[index % web.length]?.port ?? 0
    const ownBodies = bodies.filter((_, body) => body % loaders.length === index)
    const connections = CONNECTIONS / loaders.length
    return runPostLoad(loader, { port, path: '/receive/public', connections, bodies: ownBodies })
  })
  const sent = await Promise.all(parts)
  const writtenAt = await waitUntilWritten(services.db, corpus)
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
    connections: await countConnections(services),
    commands: ((await countCommands(redis)) - commandsBefore) / bodies.length,
    refused: sent.reduce((sum, { failures }) => sum + failures, 0),
    ok: await isCorrect(services, corpus),
  }
}

function namedPids(kind: string, children: readonly ChildProcess[]): Record<string, number> {
  return Object.fromEntries(children.map(({ pid }, index) => [`${kind} ${index}`, pid ?? Number.NaN]))
}

async function countCommands(redis: Redis): Promise<number> {
  const calls = (await redis.info('commandstats')).matchAll(/:calls=(\d+)/g)
  return Array.from(calls, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0)
}

/** Connections of the web and worker processes, without those of the bench. */
async function countConnections({ db }: OpenServices): Promise<number> {
  const { rows } = await db.raw(
    `select count(*) from pg_stat_activity where application_name like 'pod w%' and datname = current_database()`,
  )
  return Number(rows[0].count)
}

function resultOf(
  { web, workers, threads }: Plan,
  measurements: readonly Measurement[],
  baseline: readonly Measurement[],
): Result {
  const rates = measurements.map(({ perSecond }) => perSecond)
  const isBaseline = measurements === baseline
  return {
    bench: 'processes',
    case: `${web} web, ${workers} ${workers === 1 ? 'worker' : 'workers'} of ${threads} ${threads === 1 ? 'thread' : 'threads'}`,
    value: median(rates),
    unit: 'msg/s',
    ...(!isBaseline && {
      limit: median(baseline.map(({ perSecond }) => perSecond)),
      ratio: median(rates.map((rate, round) => rate / (baseline[round]?.perSecond ?? Number.NaN))),
      ...(workers * threads <= CORES && { floor: FLOORS.processes }),
    }),
    rounds: measurements.length,
    spread: spreadOf(rates),
    cpu_us: medianCpu(measurements),
    more: {
      connections: median(measurements.map(({ connections }) => connections)),
      refused: Math.max(...measurements.map(({ refused }) => refused)),
      redis_commands: median(measurements.map(({ commands }) => commands)),
    },
    ok: measurements.every(({ ok }) => ok),
  }
}

function threadsPerWorker(workers: number): number {
  return Math.max(1, Math.floor(CORES / workers))
}
