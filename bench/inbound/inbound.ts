import type { ChildProcess } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, type Latency, latencyOf, median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { PostLoadResult } from '../load/post-load.js'
import { runPostLoad, startPostLoader } from '../load/post-loader.js'
import { type BenchStores, openEachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { endProcess } from '../machine/child-process.js'
import { insertsPerSecond, type Machine, openMachine } from '../machine/machine.js'
import { memoryOf, processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import { type Backlog, measureBacklog, resultOfBacklogs } from './backlog.js'
import { makeOrphansForRounds, measureHostileTraffic } from './hostile-traffic.js'
import { type Bits, type InboundCorpus, inboundCorpus, type OrphanComments } from './inbound-corpus.js'
import {
  environmentOf,
  isCorrect,
  type PodProcess,
  prepareDatabase,
  resetRows,
  startProcess,
  waitUntilWritten,
} from './inbound-pod.js'

const CONNECTIONS = 64
/** Interval of messages that are sent twice. */
const REPEAT_INTERVAL = 20
/** Key length of most people. Cases that do not depend on the length run with this one only. */
const USUAL_BITS = 4096
/** Share of the full speed at which latencies are measured. */
const MODERATE_LOAD_SHARE = 0.6

/**
 * Signed envelopes from the socket to committed rows, through a web and a worker process. The limit is the time in which all cores
 * verify these signatures, plus the time in which the rows are inserted, 128 per statement.
 */
export async function* benchInbound({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const corpora = new Map<Bits, InboundCorpus>()
  for (const bits of [2048, 4096] as const) corpora.set(bits, await inboundCorpus(bits))
  const orphans = await makeOrphansForRounds(USUAL_BITS, rounds)
  const loader = startPostLoader()
  const machine = openMachine()
  try {
    for await (const { queue, stores } of openEachStore()) {
      const setups = Array.from(corpora, ([bits, corpus]) => ({
        queue,
        stores,
        loader,
        bits,
        corpus,
        machine,
        rounds,
      }))
      yield* measureStore(setups, orphans)
    }
  } finally {
    loader.kill()
    machine.close()
  }
}

/** The stores, the load and the corpus of a measured pod. */
export interface InboundSetup {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly loader: ChildProcess
  readonly bits: Bits
  readonly corpus: InboundCorpus
  readonly machine: Machine
  readonly rounds: number
}

interface Round {
  readonly perSecond: number
  readonly limit: number
  readonly sent: PostLoadResult
  readonly messages: number
  /** Microseconds per message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly memory: Readonly<Record<string, number>>
  /** Latency from the request to the row. */
  readonly stored: Latency
  readonly ok: boolean
}

/** Measures all corpora with the same pod. */
async function* measureStore(setups: readonly InboundSetup[], orphans: OrphanComments): AsyncGenerator<Result> {
  const [first] = setups
  if (first === undefined) return
  const environment = environmentOf(first.stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const processes: PodProcess[] = []
  try {
    for (const { corpus } of setups) await prepareDatabase(services.db, corpus)
    processes.push(await startProcess('../src/server', environment), await startProcess('../workers/main', environment))
    await measureRound(first, services, processes) // warms up the processes
    for (const setup of setups) yield* measureCorpus(setup, services, processes, orphans)
  } finally {
    for (const { child } of processes) await endProcess(child)
    await services.close()
    await crypto.close()
  }
}

async function* measureCorpus(
  setup: InboundSetup,
  services: OpenServices,
  processes: readonly PodProcess[],
  orphans: OrphanComments,
): AsyncGenerator<Result> {
  const { stores, rounds, queue, bits } = setup
  const worker = bits === USUAL_BITS ? processes.find(({ name }) => name === 'worker') : undefined
  const measuredRounds: Round[] = []
  const backlogs: Backlog[] = []
  // Statements are counted during the warm-up, because the log of the server slows a round down.
  const statements = await stores.countStatements('pod worker', () => measureRound(setup, services, processes))
  for (let round = 0; round < rounds; round += 1) {
    const burst = await measureRound(setup, services, processes)
    measuredRounds.push(burst)
    if (worker !== undefined) backlogs.push(await measureBacklog(setup, services, worker.child, burst.perSecond))
  }
  yield resultOf(queue, bits, measuredRounds, statements)
  if (worker === undefined) return
  const rate = median(measuredRounds.map(({ perSecond }) => perSecond))
  yield resultAtModerateLoad(queue, bits, await measureRound(setup, services, processes, rate * MODERATE_LOAD_SHARE))
  yield resultOfBacklogs(setup, backlogs)
  // This case is the last one, because its messages are retried for hours.
  yield await measureHostileTraffic(setup, services, processes, orphans)
}

async function measureRound(
  { stores, loader, corpus, bits, machine }: InboundSetup,
  services: OpenServices,
  processes: readonly PodProcess[],
  perSecond?: number,
): Promise<Round> {
  const { db } = services
  await resetRows(db, corpus)
  const messages = corpus.messages.flatMap((message, index) =>
    index % REPEAT_INTERVAL === 0 ? [message, message] : [message],
  )
  const bodies = messages.map(({ envelope }) => envelope)
  const pids = {
    ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
    ...stores.pids,
    loader: loader.pid ?? Number.NaN,
  }
  const port = processes.find(({ name }) => name === 'web')?.port ?? 0
  const limit = await limitOf(db, await machine.verifications(bits), corpus)
  const before = processorTimesOf(pids)
  const pace = perSecond === undefined ? {} : { perSecond }
  const sent = await runPostLoad(loader, { port, path: '/receive/public', connections: CONNECTIONS, bodies, ...pace })
  const writtenAt = await waitUntilWritten(db, corpus)
  const after = processorTimesOf(pids)
  while (!(await isIdle(services))) await pause(50)

  const start = sent.sentAt[0] ?? Number.NaN
  const last = Math.max(...writtenAt.values())
  const memory = Object.entries(pids).map(([name, pid]) => [`${name}_mb`, memoryOf(pid)])
  return {
    perSecond: (bodies.length * 1_000) / (last - start),
    limit,
    messages: bodies.length,
    sent,
    cpu: timePerMessage(bodies.length, before, after),
    memory: Object.fromEntries(memory),
    stored: latencyOf(timesUntilWritten(messages, sent, writtenAt)),
    ok: sent.failures === 0 && (await isCorrect(services, corpus)),
  }
}

/** Messages per second if the pod only verified signatures and inserted rows. */
async function limitOf(db: Knex, verifications: number, { signaturesOfMessage }: InboundCorpus): Promise<number> {
  return 1 / (signaturesOfMessage / verifications + 1 / (await insertsPerSecond(db)))
}

/** Milliseconds from the first request with a message to its row. */
function timesUntilWritten(
  messages: InboundCorpus['messages'],
  { sentAt }: PostLoadResult,
  writtenAt: ReadonlyMap<string, number>,
): readonly number[] {
  const firstSent = new Map<string, number>()
  for (const [index, { guid }] of messages.entries()) {
    if (!firstSent.has(guid)) firstSent.set(guid, sentAt[index] ?? Number.NaN)
  }
  return Array.from(writtenAt, ([guid, written]) => written - (firstSent.get(guid) ?? Number.NaN))
}

function resultOf(queue: QueueStoreName, bits: Bits, rounds: readonly Round[], statements: number): Result {
  const rates = rounds.map(({ perSecond }) => perSecond)
  return {
    bench: 'inbound',
    case: `${queue}, rsa${bits}`,
    value: median(rates),
    unit: 'msg/s',
    limit: median(rounds.map(({ limit }) => limit)),
    ratio: median(rounds.map(({ perSecond, limit }) => perSecond / limit)),
    floor: FLOORS.inbound[queue][bits],
    rounds: rounds.length,
    spread: spreadOf(rates),
    cpu_us: medianCpu(rounds),
    statements: statements / (rounds[0]?.messages ?? Number.NaN),
    more: {
      accepted_per_second: median(rounds.map(({ sent }) => sent.requests / sent.seconds)),
      ...rounds.at(-1)?.memory,
    },
    ok: rounds.every(({ ok }) => ok),
  }
}

/** Latency at a moderate load. It has no floor, because it depends on the machine. */
function resultAtModerateLoad(queue: QueueStoreName, bits: Bits, { sent, stored, cpu, ok }: Round): Result {
  return {
    bench: 'inbound',
    case: `inbound-latency, ${queue}, rsa${bits}`,
    value: stored.p99,
    unit: 'ms p99',
    rounds: 1,
    spread: 0,
    cpu_us: cpu,
    latency_ms: { accepted: latencyOf(sent.milliseconds), stored },
    ok,
  }
}
