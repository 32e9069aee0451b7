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
import { runPostLoad, startPostLoader } from '../load/post-loader.js'
import { type BenchStores, openEachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { endProcess, forkFile, nextMessage } from '../machine/child-process.js'
import { processorTimesOf, rateOf, timePerMessage } from '../machine/processor-time.js'
import { makeSignedSample } from '../machine/signed-sample.js'
import {
  countKind,
  firstMessages,
  type LivedCorpus,
  type LivedKind,
  livedCorpus,
  MESSAGES,
  roundToFullMixes,
} from './lived-corpus.js'
import type { PeerReady, PeerReceived, PeerTask } from './lived-peer.js'
import {
  countStored,
  findCommitTimes,
  hasNoWorkLeft,
  isLivedCorrect,
  type LivedUser,
  placePeople,
  prepareLived,
  resetLived,
} from './lived-pod.js'
import { countStatements, type Statements, stopCountingStatements } from './lived-statements.js'
import { readStepTimes } from './lived-steps.js'

const CONNECTIONS = 64
/** Messages of the warm-up. */
const WARM_UP = 700
/** Message rates and their durations. */
const RATES = [
  { perSecond: 18, seconds: 45 },
  { perSecond: 60, seconds: 8 },
  { perSecond: 300, seconds: 5 },
] as const
/** A rate relative to the rate at which the pod stores at full speed, if that was measured. */
const SHARE_OF_FULL_SPEED = { share: 0.6, seconds: 5 } as const
const CASES = ['full speed', 'rates', 'pods', 'steps']
const POLL_INTERVAL_MS = 50
/** Time without a request and without work, after which missing participations are given up. */
const GIVE_UP_AFTER_MS = 3_000

/** Settings of PostgreSQL: commit times for the latency, and statistics of statements. */
const SETTINGS = { track_commit_timestamp: 'on', shared_preload_libraries: 'pg_stat_statements' }

/**
 * Messages of remote people on a pod with users, including notifications, live events, relays, and a signed participation for each
 * public post. Measured from the socket of the web process to the arrival of the last participation.
 */
export async function* benchLived({
  rounds,
  messages = MESSAGES,
  queues,
  cases = CASES,
  keep,
}: BenchOptions): AsyncGenerator<Result> {
  const corpus = firstMessages(await livedCorpus(), messages)
  const loader = startPostLoader()
  const peer = forkFile('lived/lived-peer')
  try {
    const { ports } = await nextMessage<PeerReady>(peer)
    for await (const { queue, stores } of openEachStore({ settings: SETTINGS }, queues)) {
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
  /** Ports of the pods that the peer simulates. */
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
  /** Microseconds per message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  /** Latency from the 202 to the commit. */
  readonly committed: Latency
  readonly accepted: Latency
  readonly times: readonly MessageTimes[]
  /** Posts without a participation. A post may have none if two batches are stored at the same time. */
  readonly missing: number
  readonly ok: boolean
}

/** The times of a message, in milliseconds since 1970. */
interface MessageTimes {
  readonly kind: LivedKind
  readonly sentAt: number
  readonly respondedAt: number
  readonly committedAt: number
}

async function* measureStore({ cases, ...setting }: Setting): AsyncGenerator<Result> {
  const environment = environmentOf(setting.stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const processes: PodProcess[] = []
  try {
    const users = await prepareLived(services, setting.corpus, setting.ports)
    processes.push(await startProcess('../src/server', environment), await startProcess('../workers/main', environment))
    const pod = { ...setting, services, users, processes }
    await placePeople(services, setting.ports.slice(0, 1))
    await stopCountingStatements(setting.stores.superuserUrl)
    await measureRound(pod, firstMessages(setting.corpus, WARM_UP))
    let fullSpeed: number | undefined
    if (cases.includes('full speed')) {
      for await (const result of measureFullSpeed(pod, 'one pod')) {
        fullSpeed ??= result.value
        yield result
      }
    }
    if (cases.includes('rates')) yield* measureRates(pod, fullSpeed)
    if (cases.includes('pods')) {
      await placePeople(services, setting.ports)
      yield* measureFullSpeed(pod, `${setting.ports.length} pods`)
    }
    if (cases.includes('steps')) {
      await placePeople(services, setting.ports.slice(0, 1))
      for (const { child } of processes.splice(1)) await endProcess(child)
      yield* measureSteps(pod, environment)
    }
  } finally {
    for (const { child } of processes) await endProcess(child)
    await services.close()
    await crypto.close()
  }
}

async function* measureFullSpeed(pod: LivedPod, senders: string): AsyncGenerator<Result> {
  const { corpus, rounds, queue } = pod
  const measuredRounds: Round[] = []
  for (let round = 0; round < rounds; round += 1) measuredRounds.push(await measureRound(pod, corpus))
  const statements = await countStatements(pod.stores.superuserUrl, () => measureRound(pod, corpus))
  await keepStatements(pod, `${senders}, ${queue}`, statements)
  const minTime = minTimeOf(corpus)
  yield resultOf(`stored, ${senders}, ${queue}`, measuredRounds, {
    values: measuredRounds.map(({ storedPerSecond }) => storedPerSecond),
    limit: rateOfMicroseconds(minTime.store),
    floor: FLOORS.lived.stored[queue],
  })
  yield {
    ...resultOf(`done, ${senders}, ${queue}`, measuredRounds, {
      values: measuredRounds.map(({ donePerSecond }) => donePerSecond),
      limit: rateOfMicroseconds(minTime.all),
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

/** The processor time of a message at a fixed rate: batches are small then. `fullSpeed` is in stored messages a second. */
async function* measureRates(pod: LivedPod, fullSpeed: number | undefined): AsyncGenerator<Result> {
  for (const { perSecond, seconds } of RATES) {
    const name = `${perSecond} a second`
    yield { ...(await measureRate(pod, { name, perSecond, seconds })), floor: FLOORS.lived.rates[perSecond] }
  }
  if (fullSpeed === undefined) return
  const { share, seconds } = SHARE_OF_FULL_SPEED
  const perSecond = Math.round(fullSpeed * share)
  const result = await measureRate(pod, { name: `${share * 100} % of full speed`, perSecond, seconds })
  yield { ...result, more: { per_second: perSecond } }
}

interface Rate {
  readonly name: string
  readonly perSecond: number
  readonly seconds: number
}

async function measureRate(pod: LivedPod, { name, perSecond, seconds }: Rate): Promise<Result> {
  const { corpus, queue } = pod
  const part = firstMessages(corpus, roundToFullMixes(perSecond * seconds))
  const round = await measureRound(pod, part, perSecond)
  const statements = await countStatements(pod.stores.superuserUrl, () => measureRound(pod, part, perSecond))
  await keepStatements(pod, `${name}, ${queue}`, statements)
  await keepLatencies(pod, `${name}, ${queue}`, round)
  const spent = processorTime(round)
  const limit = minTimeOf(part).all / 1_000
  return {
    bench: 'lived',
    case: `${name}, ${queue}`,
    value: spent / 1_000,
    unit: 'ms/msg',
    limit,
    ratio: limit / (spent / 1_000),
    rounds: 1,
    spread: 0,
    cpu_us: round.cpu,
    ...statementsOf(statements, part),
    latency_ms: { accepted: round.accepted, committed: round.committed },
    ok: round.ok,
  }
}

/** Keeps the times of each message, so that the slowest ones can be compared with what else ran then. */
async function keepLatencies({ keep }: LivedPod, name: string, { times }: Round): Promise<void> {
  if (keep === undefined) return
  await mkdir(keep, { recursive: true })
  await writeFile(join(keep, `times-${name.replaceAll(/\W+/g, '-')}.json`), JSON.stringify(times, null, 1))
}

/** Processor time of the worker by step, at full speed and at the lowest rate. */
async function* measureSteps(pod: LivedPod, environment: NodeJS.ProcessEnv): AsyncGenerator<Result> {
  const { corpus, queue, processes, keep } = pod
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
      const profiled = { ...pod, processes: [...processes, worker] }
      let round: Round
      let from: bigint
      let to: bigint
      try {
        await measureRound(profiled, firstMessages(corpus, WARM_UP))
        from = process.hrtime.bigint()
        round = await measureRound(profiled, part, rate)
        to = process.hrtime.bigint()
      } finally {
        await endProcess(worker.child)
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
        const folderName = `profile, ${name}, ${queue}`.replaceAll(/\W+/g, '-')
        await cp(folder, join(keep, folderName), { recursive: true })
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}

async function measureRound(pod: LivedPod, corpus: LivedCorpus, perSecond?: number): Promise<Round> {
  const { services, users, processes, stores, loader, peer } = pod
  await resetLived(services, corpus, users)
  await sendPeerTask(peer, 'reset')
  const { messages } = corpus
  const pids = {
    ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
    ...stores.pids,
  }
  const port = processes.find(({ name }) => name === 'web')?.port ?? 0
  const before = processorTimesOf(pids)
  const sent = await runPostLoad(loader, {
    port,
    path: '/receive/public',
    paths: messages.map(({ to }) => (to === undefined ? '/receive/public' : `/receive/users/${users[to]?.guid}`)),
    connections: CONNECTIONS,
    bodies: messages.map(({ body }) => body),
    ...(perSecond !== undefined && { perSecond }),
  })
  await waitUntilStored(services, corpus)
  const participations = countKind(corpus, 'posts')
  const received = await waitUntilDone(pod, participations)
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
    times: messages.map(({ kind }, index) => ({
      kind,
      sentAt: sent.sentAt[index] ?? Number.NaN,
      respondedAt: sent.respondedAt[index] ?? Number.NaN,
      committedAt: committedAt[index] ?? Number.NaN,
    })),
    missing: participations - received.private,
    ok: sent.failures === 0 && received.private <= participations && (await isLivedCorrect(services, corpus)),
  }
}

async function sendPeerTask(peer: ChildProcess, task: PeerTask): Promise<PeerReceived> {
  peer.send(task)
  return nextMessage<PeerReceived>(peer)
}

async function waitUntilStored(services: OpenServices, corpus: LivedCorpus): Promise<void> {
  while ((await countStored(services, corpus)) < corpus.messages.length) await pause(POLL_INTERVAL_MS)
}

/**
 * Waits until no work is left and each post has its participation. Between two participations of an author no work exists for a
 * moment, so an empty queue is not enough. Missing participations are given up after `GIVE_UP_AFTER_MS`.
 */
async function waitUntilDone(
  { services, peer }: LivedPod,
  participations: number,
): Promise<PeerReceived & { readonly doneAt: number }> {
  for (;;) {
    const isIdle = await hasNoWorkLeft(services)
    const doneAt = Date.now()
    const received = await sendPeerTask(peer, 'report')
    const isOver = received.private >= participations || doneAt - received.lastAt > GIVE_UP_AFTER_MS
    if (isIdle && isOver) return { ...received, doneAt }
    await pause(POLL_INTERVAL_MS)
  }
}

/** Milliseconds from the 202 to the commit. 0 if the batch commits before the sender receives the 202. */
function timesToCommit({ respondedAt }: PostLoadResult, committedAt: readonly number[]): readonly number[] {
  return committedAt.map((at, index) => Math.max(0, at - (respondedAt[index] ?? Number.NaN)))
}

/** Microseconds of processor time per message, of all processes of the pod. */
function processorTime({ cpu }: Round): number {
  return Object.values(cpu).reduce((sum, each) => sum + each, 0)
}

interface MinTime {
  /** Microseconds of one core for the signatures and the decryption of a message. */
  readonly store: number
  /** `store` plus one RSA-2048 signature for each participation. */
  readonly all: number
}

/** The processor time of the unavoidable cryptography on this machine. */
function minTimeOf(corpus: LivedCorpus): MinTime {
  const usual = makeSignedSample(4096)
  const small = makeSignedSample(2048)
  const wrapped = Buffer.concat([Buffer.alloc(1), randomBytes(4096 / 8 - 1)])
  const microsecondsOf = (operation: () => void) => 1_000_000 / rateOf(1, operation)
  const verify = microsecondsOf(usual.verifyOnce)
  const decrypt = microsecondsOf(() =>
    privateDecrypt({ key: usual.privateKey, padding: constants.RSA_NO_PADDING }, wrapped),
  )
  const participate = microsecondsOf(() => sign('sha256', small.bytes, small.privateKey))
  const share = (kind: Parameters<typeof countKind>[1]) => countKind(corpus, kind) / corpus.messages.length
  const verifications = 1 + share('comments') + share('likes')
  const store = verifications * verify + share('private') * decrypt
  return { store, all: store + share('posts') * participate }
}

function rateOfMicroseconds(microseconds: number): number {
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

/** Statements per message. */
function statementsOf(statements: Statements, { messages }: LivedCorpus): Pick<Result, 'statements'> {
  return { statements: statements.count / messages.length }
}
