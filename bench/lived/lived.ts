import type { ChildProcess } from 'node:child_process'
import { constants, privateDecrypt, randomBytes, sign } from 'node:crypto'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, type Latency, latencyOf, median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { environmentOf, type PodProcess, startProcess } from '../inbound/inbound-pod.js'
import type { PostLoadResult } from '../load/post-load.js'
import { load, openLoader } from '../load/post-loader.js'
import { type BenchStores, eachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { end, forkFile, said } from '../machine/child-process.js'
import { processorTimesOf, rateOf, timePerMessage } from '../machine/processor-time.js'
import { makeSigned } from '../machine/signed.js'
import { countKind, firstMessages, type LivedCorpus, livedCorpus, MESSAGES, roundToFullMixes } from './lived-corpus.js'
import type { PeerReady, PeerReceived, PeerTask } from './lived-peer.js'
import {
  countStored,
  emptyLived,
  findCommitTimes,
  hasNoWorkLeft,
  isLivedRight,
  type LivedUser,
  placePeople,
  prepareLived,
} from './lived-pod.js'
import { countNoStatements, countStatements, type Statements } from './lived-statements.js'
import { readStepTimes } from './lived-steps.js'

const CONNECTIONS = 64
/** Messages until the processes are at their full speed. */
const WARM_UP = 700
/** Messages a second, and for how many seconds. */
const RATES = [
  { perSecond: 18, seconds: 45 },
  { perSecond: 60, seconds: 8 },
  { perSecond: 300, seconds: 5 },
] as const
const CASES = ['full speed', 'rates', 'pods', 'steps']
const POLL_INTERVAL_MS = 50
/** After the last request to the peer, while no work is left. */
const GIVEN_UP_AFTER_MS = 3_000

/** Commit times give the latency. */
const SETTINGS = { track_commit_timestamp: 'on', shared_preload_libraries: 'pg_stat_statements' }

/**
 * Messages of remote people with everything they cause on a pod with users: notifications, live events, relays, and a signed
 * participation for each public post. From the socket of the web process until the last participation has arrived.
 */
export async function* benchLived({
  rounds,
  messages = MESSAGES,
  queues,
  cases = CASES,
  keep,
}: BenchOptions): AsyncGenerator<Result> {
  const corpus = firstMessages(await livedCorpus(), messages)
  const loader = openLoader()
  const peer = forkFile('lived/lived-peer')
  try {
    const { ports } = await said<PeerReady>(peer)
    for await (const { queue, stores } of eachStore({ settings: SETTINGS }, queues)) {
      yield* measureStore({ queue, stores, loader, peer, ports, corpus, rounds, cases, keep })
    }
  } finally {
    loader.kill()
    peer.kill()
  }
}

interface Setting {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly loader: ChildProcess
  readonly peer: ChildProcess
  /** Of the pods that the peer plays. */
  readonly ports: readonly number[]
  readonly corpus: LivedCorpus
  readonly rounds: number
  /** Folder for profiles and statements. */
  readonly keep: string | undefined
  /** The parts of the bench that run. */
  readonly cases: readonly string[]
}

interface LivedPod extends Omit<Setting, 'cases'> {
  readonly services: OpenServices
  readonly users: readonly LivedUser[]
  readonly processes: readonly PodProcess[]
}

interface Round {
  readonly messages: number
  readonly storedPerSecond: number
  readonly donePerSecond: number
  /** Microseconds for one message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  /** From the 202 to the commit. */
  readonly committed: Latency
  readonly accepted: Latency
  /** Posts without a participation: those that two batches stored at the same moment may be passed over. */
  readonly missing: number
  readonly ok: boolean
}

async function* measureStore({ cases, ...setting }: Setting): AsyncGenerator<Result> {
  const environment = environmentOf(setting.stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const processes: PodProcess[] = []
  try {
    const users = await prepareLived(services, setting.corpus, setting.ports)
    processes.push(await startProcess('../src/server', environment), await startProcess('../workers/main', environment))
    const lived = { ...setting, services, users, processes }
    await placePeople(services, setting.ports.slice(0, 1))
    await countNoStatements(setting.stores.superuserUrl)
    await measureRound(lived, firstMessages(setting.corpus, WARM_UP))
    if (cases.includes('full speed')) yield* measureFullSpeed(lived, 'one pod')
    if (cases.includes('rates')) yield* measureRates(lived)
    if (cases.includes('pods')) {
      await placePeople(services, setting.ports)
      yield* measureFullSpeed(lived, `${setting.ports.length} pods`)
    }
    if (cases.includes('steps')) {
      await placePeople(services, setting.ports.slice(0, 1))
      for (const { child } of processes.splice(1)) await end(child)
      yield* measureSteps(lived, environment)
    }
  } finally {
    for (const { child } of processes) await end(child)
    await services.close()
    await crypto.close()
  }
}

async function* measureFullSpeed(lived: LivedPod, senders: string): AsyncGenerator<Result> {
  const { corpus, rounds, queue } = lived
  const measured: Round[] = []
  for (let round = 0; round < rounds; round += 1) measured.push(await measureRound(lived, corpus))
  const statements = await countStatements(lived.stores.superuserUrl, () => measureRound(lived, corpus))
  await keepStatements(lived, `${senders}, ${queue}`, statements)
  const least = minTimeOf(corpus)
  yield resultOf(`stored, ${senders}, ${queue}`, measured, {
    values: measured.map(({ storedPerSecond }) => storedPerSecond),
    limit: secondsToRate(least.store),
    floor: FLOORS.lived.stored[queue],
  })
  yield {
    ...resultOf(`done, ${senders}, ${queue}`, measured, {
      values: measured.map(({ donePerSecond }) => donePerSecond),
      limit: secondsToRate(least.all),
      floor: FLOORS.lived.done[queue],
    }),
    ...statementsOf(statements, corpus),
  }
}

async function keepStatements({ keep }: LivedPod, name: string, statements: Statements): Promise<void> {
  if (keep === undefined) return
  await mkdir(keep, { recursive: true })
  await writeFile(join(keep, `statements-${name.replaceAll(/\W+/g, '-')}.json`), JSON.stringify(statements, null, 1))
}

/** The processor time of a message at a fixed rate: batches are small then. */
async function* measureRates(lived: LivedPod): AsyncGenerator<Result> {
  const { corpus, queue } = lived
  for (const { perSecond, seconds } of RATES) {
    const part = firstMessages(corpus, roundToFullMixes(perSecond * seconds))
    const round = await measureRound(lived, part, perSecond)
    const statements = await countStatements(lived.stores.superuserUrl, () => measureRound(lived, part, perSecond))
    await keepStatements(lived, `${perSecond} a second, ${queue}`, statements)
    const spent = processorTime(round)
    const limit = minTimeOf(part).all / 1_000
    yield {
      bench: 'lived',
      case: `${perSecond} a second, ${queue}`,
      value: spent / 1_000,
      unit: 'ms/msg',
      limit,
      ratio: limit / (spent / 1_000),
      floor: FLOORS.lived.rates[perSecond],
      rounds: 1,
      spread: 0,
      cpu_us: round.cpu,
      ...statementsOf(statements, part),
      latency_ms: { accepted: round.accepted, committed: round.committed },
      ok: round.ok,
    }
  }
}

/** Processor time of the worker by step, at full speed and at the lowest rate. */
async function* measureSteps(lived: LivedPod, environment: NodeJS.ProcessEnv): AsyncGenerator<Result> {
  const { corpus, queue, processes, keep } = lived
  const [{ perSecond, seconds }] = RATES
  const slow = firstMessages(corpus, perSecond * seconds)
  for (const [name, part, rate] of [
    ['full speed', corpus, undefined],
    [`${perSecond} a second`, slow, perSecond],
  ] as const) {
    const folder = await mkdtemp(join(tmpdir(), 'pod-bench-profile-'))
    try {
      const worker = await startProcess('../workers/main', environment, [
        ...process.execArgv,
        ...['--cpu-prof', `--cpu-prof-dir=${folder}`],
      ])
      const profiled = { ...lived, processes: [...processes, worker] }
      let round: Round
      let from: bigint
      let to: bigint
      try {
        await measureRound(profiled, firstMessages(corpus, WARM_UP))
        from = process.hrtime.bigint()
        round = await measureRound(profiled, part, rate)
        to = process.hrtime.bigint()
      } finally {
        await end(worker.child)
      }
      const times = Object.entries(await readStepTimes(folder, from, to))
      const cpu_us = Object.fromEntries(times.map(([step, time]) => [step, time / part.messages.length]))
      const value = Object.values(cpu_us).reduce((sum, each) => sum + each, 0)
      yield {
        bench: 'lived',
        case: `worker by step, ${name}, ${queue}`,
        value: value / 1_000,
        unit: 'ms/msg',
        rounds: 1,
        spread: 0,
        cpu_us,
        ok: round.ok,
      }
      if (keep !== undefined) {
        const kept = `profile, ${name}, ${queue}`.replaceAll(/\W+/g, '-')
        await cp(folder, join(keep, kept), { recursive: true })
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}

async function measureRound(lived: LivedPod, corpus: LivedCorpus, perSecond?: number): Promise<Round> {
  const { services, users, processes, stores, loader, peer } = lived
  await emptyLived(services, corpus, users)
  await askPeer(peer, 'reset')
  const { messages } = corpus
  const pids = {
    ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
    ...stores.pids,
  }
  const port = processes.find(({ name }) => name === 'web')?.port ?? 0
  const before = processorTimesOf(pids)
  const sent = await load(loader, {
    port,
    path: '/receive/public',
    paths: messages.map(({ to }) => (to === undefined ? '/receive/public' : `/receive/users/${users[to]?.guid}`)),
    connections: CONNECTIONS,
    bodies: messages.map(({ body }) => body),
    ...(perSecond !== undefined && { perSecond }),
  })
  await untilStored(services, corpus)
  const participations = countKind(corpus, 'posts')
  const received = await untilDone(lived, participations)
  const after = processorTimesOf(pids)
  const commits = await findCommitTimes(services)
  const start = sent.sentAt[0] ?? Number.NaN
  const committedAt = messages.map(({ guid }) => commits.get(guid) ?? Number.NaN)
  return {
    messages: messages.length,
    storedPerSecond: (messages.length * 1_000) / (Math.max(...committedAt) - start),
    donePerSecond: (messages.length * 1_000) / (received.doneAt - start),
    cpu: timePerMessage(messages.length, before, after),
    committed: latencyOf(timesToCommit(sent, committedAt)),
    accepted: latencyOf(sent.milliseconds),
    missing: participations - received.private,
    ok: sent.wrong === 0 && received.private <= participations && (await isLivedRight(services, corpus)),
  }
}

async function askPeer(peer: ChildProcess, task: PeerTask): Promise<PeerReceived> {
  peer.send(task)
  return said<PeerReceived>(peer)
}

async function untilStored(services: OpenServices, corpus: LivedCorpus): Promise<void> {
  while ((await countStored(services, corpus)) < corpus.messages.length) await pause(POLL_INTERVAL_MS)
}

/**
 * Until no work is left and each post has its participation. The next participation of an author is written after the last one has
 * arrived, so that for a moment no work is left although some is missing; a missing one is not waited for forever.
 */
async function untilDone(
  { services, peer }: LivedPod,
  participations: number,
): Promise<PeerReceived & { readonly doneAt: number }> {
  for (;;) {
    const isIdle = await hasNoWorkLeft(services)
    const doneAt = Date.now()
    const received = await askPeer(peer, 'report')
    const isOver = received.private >= participations || doneAt - received.lastAt > GIVEN_UP_AFTER_MS
    if (isIdle && isOver) return { ...received, doneAt }
    await pause(POLL_INTERVAL_MS)
  }
}

/** Milliseconds from the 202 to the commit; a batch may commit before the 202 has reached the sender. */
function timesToCommit({ answeredAt }: PostLoadResult, committedAt: readonly number[]): readonly number[] {
  return committedAt.map((at, index) => Math.max(0, at - (answeredAt[index] ?? Number.NaN)))
}

/** Microseconds of processor time for one message, of all processes of the pod. */
function processorTime({ cpu }: Round): number {
  return Object.values(cpu).reduce((sum, each) => sum + each, 0)
}

interface MinTime {
  /** Microseconds of one core for a message: its signatures are verified, private posts are decrypted. */
  readonly store: number
  /** The same with one RSA-2048 signature for each participation. */
  readonly all: number
}

/** The cryptography that no pod can leave out, on this machine. */
function minTimeOf(corpus: LivedCorpus): MinTime {
  const usual = makeSigned(4096)
  const small = makeSigned(2048)
  const wrapped = Buffer.concat([Buffer.alloc(1), randomBytes(4096 / 8 - 1)])
  const timeOf = (once: () => void) => 1_000_000 / rateOf(1, once)
  const verify = timeOf(usual.verifyOnce)
  const decrypt = timeOf(() => privateDecrypt({ key: usual.privateKey, padding: constants.RSA_NO_PADDING }, wrapped))
  const participate = timeOf(() => sign('sha256', small.bytes, small.privateKey))
  const share = (kind: Parameters<typeof countKind>[1]) => countKind(corpus, kind) / corpus.messages.length
  const verifications = 1 + share('comments') + share('likes')
  const store = verifications * verify + share('private') * decrypt
  return { store, all: store + share('posts') * participate }
}

function secondsToRate(microseconds: number): number {
  return (availableParallelism() * 1_000_000) / microseconds
}

interface Figures {
  readonly values: readonly number[]
  readonly limit: number
  readonly floor: number
}

function resultOf(name: string, rounds: readonly Round[], { values, limit, floor }: Figures): Result {
  const last = rounds.at(-1)
  return {
    bench: 'lived',
    case: name,
    value: median(values),
    unit: 'msg/s',
    limit,
    ratio: median(values) / limit,
    floor,
    rounds: rounds.length,
    spread: spreadOf(values),
    cpu_us: medianCpu(rounds),
    ...(last && { latency_ms: { committed: last.committed } }),
    more: { all_us: median(rounds.map(processorTime)), missing: Math.max(...rounds.map(({ missing }) => missing)) },
    ok: rounds.every(({ ok }) => ok),
  }
}

/** Statements for a message in all, and of the database time of a message the largest parts. */
function statementsOf(statements: Statements, { messages }: LivedCorpus): Pick<Result, 'statements'> {
  return { statements: statements.count / messages.length }
}
