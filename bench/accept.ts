import type { ChildProcess } from 'node:child_process'
import { fastify } from 'fastify'
import { pino } from 'pino'
import { readConfig } from '../src/config.js'
import { type OpenPod, openPod } from '../src/open-pod.js'
import { buildApp } from '../src/web/app.js'
import { openCryptoPool } from '../workers/threads/crypto-pool.js'
import { type BenchOptions, latencyOf, median, type Result, spreadOf } from './bench.js'
import { type BenchStores, eachStore, type QueueStoreName } from './bench-stores.js'
import { forkFile, said } from './child-process.js'
import { FLOORS } from './floors.js'
import { listen } from './listen.js'
import type { PostLoad, PostLoadResult } from './post-load.js'
import { processorTimesOf } from './processor-time.js'

const CONNECTIONS = [1, 8, 64, 256]
const MILLISECONDS = 1_000
/** As long as an envelope of RSA-4096. */
const BODY = 'x'.repeat(2_200)
/** Fast enough for messages to be packed; only then there is a floor. */
const MANY_CONNECTIONS = 64

/** From the socket to a 202 that means "on disk", beside a bare Fastify route that reads the same body and answers 202. */
export async function* benchAccept({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const loader = openLoader()
  try {
    for await (const { queue, stores } of eachStore()) yield* measureStore(queue, stores, loader, rounds)
  } finally {
    loader.kill()
  }
}

export function openLoader(): ChildProcess {
  return forkFile('./post-load')
}

export async function load(loader: ChildProcess, task: PostLoad): Promise<PostLoadResult> {
  loader.send(task)
  return said<PostLoadResult>(loader)
}

async function* measureStore(
  queue: QueueStoreName,
  stores: BenchStores,
  loader: ChildProcess,
  rounds: number,
): AsyncGenerator<Result> {
  const crypto = openCryptoPool(1)
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: stores.databaseUrl,
    REDIS_URL: stores.redisUrl,
    SECRET_KEY: 'a key that is only good for benches',
  })
  const pod = await openPod(config, 'web', { crypto, log: pino({ level: 'silent' }) })
  const app = await buildApp(pod)
  const bare = fastify()
  bare.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  bare.post('/receive/public', async (_request, reply) => reply.code(202).send())
  try {
    const ports = { door: await listen(app), bare: await listen(bare) }
    for (const connections of CONNECTIONS) {
      const measured: Round[] = []
      for (let round = -1; round < rounds; round += 1) {
        const each = await measureRound(pod, stores, loader, ports, connections)
        if (round >= 0) measured.push(each) // the first requests of a process are its slowest
      }
      yield resultOf(queue, connections, measured)
    }
  } finally {
    await app.close()
    await bare.close()
    await pod.close()
    await crypto.close()
  }
}

interface Round {
  readonly door: PostLoadResult
  readonly bare: PostLoadResult
  /** Microseconds for one message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly isComplete: boolean
}

async function measureRound(
  pod: OpenPod,
  stores: BenchStores,
  loader: ChildProcess,
  ports: { readonly door: number; readonly bare: number },
  connections: number,
): Promise<Round> {
  const task = { path: '/receive/public', connections, bodies: [BODY], milliseconds: MILLISECONDS }
  const pids = { web: process.pid, ...stores.pids }
  const before = processorTimesOf(pids)
  const door = await load(loader, { ...task, port: ports.door })
  const after = processorTimesOf(pids)
  const bare = await load(loader, { ...task, port: ports.bare })
  const bareCpu = processorTimesOf(pids)['web'] ?? Number.NaN
  const cpu = Object.keys(pids).map((name) => [name, ((after[name] ?? 0) - (before[name] ?? 0)) / door.requests])
  const queued = await takeAll(pod)
  return {
    door,
    bare,
    cpu: { ...Object.fromEntries(cpu), bare: (bareCpu - (after['web'] ?? 0)) / bare.requests },
    isComplete: queued === door.requests - door.wrong,
  }
}

/** Empties the queue, and tells how many messages were in it. */
async function takeAll({ jobs }: OpenPod): Promise<number> {
  let messages = 0
  const worker = jobs.serve(
    'inbound',
    async (job) => {
      messages += job.data.messages.length
    },
    { concurrency: 32, lock: 30_000, stalledCheck: 15_000, backoff: () => 1_000 },
  )
  for (;;) {
    const { waiting, active, delayed } = await jobs.counts('inbound')
    if (waiting + active + delayed === 0) break
  }
  await worker.close()
  return messages
}

function resultOf(queue: QueueStoreName, connections: number, rounds: readonly Round[]): Result {
  const rates = rounds.map(({ door }) => door.requests / door.seconds)
  const limits = rounds.map(({ bare }) => bare.requests / bare.seconds)
  const names = Object.keys(rounds[0]?.cpu ?? {})
  return {
    bench: 'accept',
    case: `${queue}, ${connections} connections`,
    value: median(rates),
    unit: 'msg/s',
    limit: median(limits),
    ratio: median(rates.map((rate, round) => rate / (limits[round] ?? Number.NaN))),
    ...(connections === MANY_CONNECTIONS && { floor: FLOORS.accept[queue] }),
    rounds: rounds.length,
    spread: spreadOf(rates),
    cpu_us: Object.fromEntries(names.map((name) => [name, median(rounds.map(({ cpu }) => cpu[name] ?? Number.NaN))])),
    latency_ms: { accepted: latencyOf(rounds.flatMap(({ door }) => door.milliseconds)) },
    ok: rounds.every(({ door, bare, isComplete }) => door.wrong === 0 && bare.wrong === 0 && isComplete),
  }
}
