import type { ChildProcess } from 'node:child_process'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, latencyOf, median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { PostLoadResult } from '../load/post-load.js'
import { runPostLoad, startPostLoader } from '../load/post-loader.js'
import { type BenchStores, openEachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { endProcess } from '../machine/child-process.js'
import { processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import { environmentOf, type PodProcess, startProcess } from './inbound-pod.js'

const CONNECTIONS = [1, 8, 64, 256]
const MILLISECONDS = 500
/** Length of an envelope with an RSA-4096 signature. */
const BODY = 'x'.repeat(2_200)
/** With as many connections the pod stores several messages per job. Only this case has a floor. */
const MANY_CONNECTIONS = 64
/** A process reaches its full speed after some tens of thousands of requests. */
const WARM_UP_ROUNDS = 6

/**
 * Messages through the web process of a pod, from the socket to the 202, which follows the durable write to the queue. Compared with
 * a plain Fastify route that reads the same body and responds 202.
 */
export async function* benchAccept({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const loader = startPostLoader()
  const bare = await startProcess('load/bare-route', process.env)
  try {
    for await (const { queue, stores } of openEachStore()) yield* measureStore({ queue, stores, loader, bare, rounds })
  } finally {
    loader.kill()
    bare.child.kill()
  }
}

interface Setting {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly loader: ChildProcess
  readonly bare: PodProcess
  readonly rounds: number
}

async function* measureStore(setting: Setting): AsyncGenerator<Result> {
  const { queue, stores, rounds } = setting
  const environment = environmentOf(stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const web = await startProcess('../src/server', environment)
  try {
    for (let round = 0; round < WARM_UP_ROUNDS; round += 1) await measureRound(setting, services, web, MANY_CONNECTIONS)
    for (const connections of CONNECTIONS) {
      const measuredRounds: Round[] = []
      for (let round = 0; round < rounds; round += 1) {
        measuredRounds.push(await measureRound(setting, services, web, connections))
      }
      yield resultOf(queue, connections, measuredRounds)
    }
  } finally {
    await endProcess(web.child)
    await services.close()
    await crypto.close()
  }
}

interface Round {
  readonly inbound: PostLoadResult
  readonly bare: PostLoadResult
  /** Microseconds per message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly isComplete: boolean
}

async function measureRound(
  { stores, loader, bare: bareRoute }: Setting,
  services: OpenServices,
  web: PodProcess,
  connections: number,
): Promise<Round> {
  const task = { path: '/receive/public', connections, bodies: [BODY], milliseconds: MILLISECONDS }
  const pids = { web: web.child.pid ?? Number.NaN, ...stores.pids }
  const barePids = { bare: bareRoute.child.pid ?? Number.NaN }
  const before = processorTimesOf(pids)
  const inbound = await runPostLoad(loader, { ...task, port: web.port })
  const between = processorTimesOf(pids)
  const bareBefore = processorTimesOf(barePids)
  const bare = await runPostLoad(loader, { ...task, port: bareRoute.port })
  const after = processorTimesOf(barePids)
  const queued = await drainQueue(services)
  return {
    inbound,
    bare,
    cpu: { ...timePerMessage(inbound.requests, before, between), ...timePerMessage(bare.requests, bareBefore, after) },
    isComplete: queued === inbound.requests - inbound.failures,
  }
}

/** Empties the queue and returns the number of messages that were in it. */
async function drainQueue({ jobs }: OpenServices): Promise<number> {
  let messages = 0
  const worker = jobs.serve(
    'inbound',
    async (job) => {
      messages += job.data.messages.length
    },
    { concurrency: 32, lockMs: 30_000, stalledCheckMs: 15_000, backoff: () => 1_000 },
  )
  for (;;) {
    const { waiting, active, delayed } = await jobs.counts('inbound')
    if (waiting + active + delayed === 0) break
  }
  await worker.close()
  return messages
}

function resultOf(queue: QueueStoreName, connections: number, rounds: readonly Round[]): Result {
  const rates = rounds.map(({ inbound }) => inbound.requests / inbound.seconds)
  const limits = rounds.map(({ bare }) => bare.requests / bare.seconds)
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
    cpu_us: medianCpu(rounds),
    latency_ms: { accepted: latencyOf(rounds.flatMap(({ inbound }) => inbound.milliseconds)) },
    ok: rounds.every(({ inbound, bare, isComplete }) => inbound.failures === 0 && bare.failures === 0 && isComplete),
  }
}
