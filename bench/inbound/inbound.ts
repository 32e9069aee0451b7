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
import { load, openLoader } from '../load/post-loader.js'
import { type BenchStores, eachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { end } from '../machine/child-process.js'
import { insertsPerSecond, type Machine, openMachine } from '../machine/machine.js'
import { memoryOf, processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import { type Backlog, measureBacklog, resultOfBacklogs } from './backlog.js'
import { measureHostile, missingFor } from './hostile-traffic.js'
import { type Bits, type InboundCorpus, inboundCorpus, type Orphans } from './inbound-corpus.js'
import { empty, environmentOf, isRight, type PodProcess, prepare, startProcess, untilWritten } from './inbound-pod.js'

const CONNECTIONS = 64
/** Every so many messages one comes again. */
const REPEAT_INTERVAL = 20
/** Of people's keys; with others only what depends on them is measured. */
const USUAL_BITS = 4096
/** Of what was reached at full speed; for the times of single messages. */
const UNHURRIED = 0.6

/**
 * Signed envelopes from the socket to committed rows, through a web and a worker process of their own. The limit: all cores
 * do nothing but verify these signatures, and then nothing but insert rows, 128 at a time.
 */
export async function* benchInbound({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const corpora = new Map<Bits, InboundCorpus>()
  for (const bits of [2048, 4096] as const) corpora.set(bits, await inboundCorpus(bits))
  const missing = await missingFor(USUAL_BITS, rounds)
  const loader = openLoader()
  const machine = openMachine()
  try {
    for await (const { queue, stores } of eachStore()) {
      const settings = Array.from(corpora, ([bits, corpus]) => ({
        queue,
        stores,
        loader,
        bits,
        corpus,
        machine,
        rounds,
      }))
      yield* measureStore(settings, missing)
    }
  } finally {
    loader.kill()
    machine.close()
  }
}

/** A pod under load, and what it is compared with. */
export interface Setting {
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
  /** Microseconds for one message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly memory: Readonly<Record<string, number>>
  /** From request to row. */
  readonly stored: Latency
  readonly ok: boolean
}

/** One after the other through the same pod. */
async function* measureStore(settings: readonly Setting[], missing: Orphans): AsyncGenerator<Result> {
  const [first] = settings
  if (first === undefined) return
  const environment = environmentOf(first.stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const processes: PodProcess[] = []
  try {
    for (const { corpus } of settings) await prepare(services.db, corpus)
    processes.push(await startProcess('../src/server', environment), await startProcess('../workers/main', environment))
    await measureRound(first, services, processes) // the first messages of a process are its slowest
    for (const setting of settings) yield* measureCorpus(setting, services, processes, missing)
  } finally {
    for (const { child } of processes) await end(child)
    await services.close()
    await crypto.close()
  }
}

async function* measureCorpus(
  setting: Setting,
  services: OpenServices,
  processes: readonly PodProcess[],
  missing: Orphans,
): AsyncGenerator<Result> {
  const { stores, rounds, queue, bits } = setting
  const worker = bits === USUAL_BITS ? processes.find(({ name }) => name === 'worker') : undefined
  const measured: Round[] = []
  const backlogs: Backlog[] = []
  // The next ones are not at full speed yet, so they may as well be looked at.
  const statements = await stores.countStatements('pod worker', () => measureRound(setting, services, processes))
  for (let round = 0; round < rounds; round += 1) {
    const burst = await measureRound(setting, services, processes)
    measured.push(burst)
    if (worker !== undefined) backlogs.push(await measureBacklog(setting, services, worker.child, burst.perSecond))
  }
  yield resultOf(queue, bits, measured, statements)
  if (worker === undefined) return
  const rate = median(measured.map(({ perSecond }) => perSecond))
  yield resultOfUnhurried(queue, bits, await measureRound(setting, services, processes, rate * UNHURRIED))
  yield resultOfBacklogs(setting, backlogs)
  // The last one: what it leaves behind waits for hours.
  yield await measureHostile(setting, services, processes, missing)
}

async function measureRound(
  { stores, loader, corpus, bits, machine }: Setting,
  services: OpenServices,
  processes: readonly PodProcess[],
  perSecond?: number,
): Promise<Round> {
  const { db } = services
  await empty(db, corpus)
  const posted = corpus.messages.flatMap((message, index) =>
    index % REPEAT_INTERVAL === 0 ? [message, message] : [message],
  )
  const bodies = posted.map(({ envelope }) => envelope)
  const pids = {
    ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
    ...stores.pids,
    loader: loader.pid ?? Number.NaN,
  }
  const port = processes.find(({ name }) => name === 'web')?.port ?? 0
  const limit = await limitOf(db, await machine.verifications(bits), corpus)
  const before = processorTimesOf(pids)
  const pace = perSecond === undefined ? {} : { perSecond }
  const sent = await load(loader, { port, path: '/receive/public', connections: CONNECTIONS, bodies, ...pace })
  const writtenAt = await untilWritten(db, corpus)
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
    stored: latencyOf(timesUntilWritten(posted, sent, writtenAt)),
    ok: sent.wrong === 0 && (await isRight(services, corpus)),
  }
}

/** Messages a second, if there were nothing but what no pod can do without. */
async function limitOf(db: Knex, verified: number, { signaturesOfMessage }: InboundCorpus): Promise<number> {
  return 1 / (signaturesOfMessage / verified + 1 / (await insertsPerSecond(db)))
}

/** Milliseconds from the first time a message was sent to the row it became. */
function timesUntilWritten(
  posted: InboundCorpus['messages'],
  { sentAt }: PostLoadResult,
  writtenAt: ReadonlyMap<string, number>,
): readonly number[] {
  const firstSent = new Map<string, number>()
  for (const [index, { guid }] of posted.entries()) {
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

/** How long a message takes while there is time: no number is right for every machine, so there is no floor. */
function resultOfUnhurried(queue: QueueStoreName, bits: Bits, { sent, stored, cpu, ok }: Round): Result {
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
