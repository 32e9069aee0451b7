import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { generateBackupKey } from '../src/operations/backup/encryption.js'
import { type OpenedPod, openGeneratedPod } from './api-pods.js'
import { type BenchOptions, latencyOf, median, type Result, spreadOf } from './bench.js'
import { end, forkFile, said } from './child-process.js'
import { FLOORS } from './floors.js'
import { planPod } from './generated-pod.js'
import type { PacedLoad, PacedLoadResult } from './paced-load.js'
import { memoryOf } from './processor-time.js'

/** Ordinary use, far from what the web process can do. */
const PER_SECOND = 50
const QUIET_MS = 10_000
const MEMORY_EVERY_MS = 100
const MEGABYTE = 1_000_000

/** The response times of the API at a fixed rate, without a backup and during one, in turns. */
export async function* benchBackup({ rounds, size }: BenchOptions): AsyncGenerator<Result> {
  const loader = forkFile('./paced-load')
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-'))
  try {
    await using pod = await openGeneratedPod(planPod(size))
    const load = loadOf(pod)
    await paced(loader, { ...load, milliseconds: QUIET_MS / 2 }) // warms up
    for (const [name, priority, floor] of [
      ['daily', constants.priority.PRIORITY_LOW, FLOORS.backup],
      ['by hand', constants.priority.PRIORITY_NORMAL, undefined],
    ] as const) {
      const measured: Round[] = []
      for (let round = 0; round < rounds; round += 1) {
        const quiet = await paced(loader, { ...load, milliseconds: QUIET_MS })
        measured.push({ quiet, ...(await whileBackedUp(loader, load, pod, { folder, priority })) })
      }
      yield resultOf(`API during a backup, ${name}`, measured, floor)
    }
  } finally {
    await end(loader)
    await rm(folder, { recursive: true, force: true })
  }
}

interface Round {
  readonly quiet: PacedLoadResult
  readonly during: PacedLoadResult
  readonly seconds: number
  readonly megabytes: number
  /** Highest memory of the process that makes the backup, in megabytes. */
  readonly memory: number
}

function loadOf({ port, tokens }: OpenedPod): PacedLoad {
  const paths = ['/api/v1/streams/main', '/api/v1/notifications', '/api/v1/streams/activity']
  const requests = [...tokens.values()].flatMap((token) => paths.map((path) => ({ path, token })))
  return { port, requests, perSecond: PER_SECOND }
}

function paced(loader: ChildProcess, load: PacedLoad): Promise<PacedLoadResult> {
  loader.send(load)
  return said<PacedLoadResult>(loader)
}

async function whileBackedUp(
  loader: ChildProcess,
  load: PacedLoad,
  { stores }: OpenedPod,
  { folder, priority }: { readonly folder: string; readonly priority: number },
): Promise<Omit<Round, 'quiet'>> {
  const answered = paced(loader, load)
  const start = performance.now()
  const program = fileURLToPath(new URL('../bin/pod.js', import.meta.url))
  const { recipient } = await generateBackupKey()
  const child = spawn(process.execPath, [program, 'backup', 'create', '--to', join(folder, recipient), '--json'], {
    env: {
      PATH: process.env['PATH'],
      POD_URL: 'https://pod.example',
      DATABASE_URL: stores.databaseUrl,
      SECRET_KEY: 'a key that is only good for benches',
      DATA_DIR: folder,
      BACKUP_RECIPIENTS: recipient,
      LOG_LEVEL: 'silent',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { pid = 0 } = child
  setPriority(pid, priority)
  let memory = 0
  const watch = setInterval(() => {
    memory = Math.max(memory, memoryOf(pid) || 0)
  }, MEMORY_EVERY_MS)
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  clearInterval(watch)
  const seconds = (performance.now() - start) / 1_000
  loader.send('end')
  const during = await answered
  if (code !== 0) throw new Error(`The backup ended with ${code}.`)
  return { during, seconds, megabytes: JSON.parse(printed).bytes / MEGABYTE, memory }
}

function resultOf(name: string, rounds: readonly Round[], floor: number | undefined): Result {
  const during = rounds.map((round) => latencyOf(round.during.milliseconds))
  const quiet = rounds.map((round) => latencyOf(round.quiet.milliseconds))
  const of = (values: typeof during) => ({
    p50: median(values.map(({ p50 }) => p50)),
    p99: median(values.map(({ p99 }) => p99)),
  })
  const slowest = during.map(({ p99 }) => p99)
  return {
    bench: 'backup',
    case: name,
    value: median(slowest),
    unit: 'ms (p99)',
    limit: of(quiet).p99,
    ratio: median(slowest.map((value, round) => (quiet[round]?.p99 ?? Number.NaN) / value)),
    ...(floor !== undefined && { floor }),
    rounds: rounds.length,
    spread: spreadOf(slowest),
    cpu_us: {},
    latency_ms: { 'without a backup': of(quiet), during: of(during) },
    more: {
      seconds: median(rounds.map(({ seconds }) => seconds)),
      megabytes: median(rounds.map(({ megabytes }) => megabytes)),
      memory_megabytes: Math.max(...rounds.map(({ memory }) => memory)),
    },
    ok: rounds.every((round) => round.quiet.wrong === 0 && round.during.wrong === 0),
  }
}
