import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { generateBackupKey } from '../../src/operations/backup/encryption.js'
import { type OpenedPod, openGeneratedPod } from '../api/api-pods.js'
import { planPod } from '../api/generated-pod.js'
import { type BenchOptions, latencyOf, median, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { PacedLoad, PacedLoadResult } from '../load/paced-load.js'
import type { BenchStores } from '../machine/bench-stores.js'
import { endProcess, forkFile, nextMessage } from '../machine/child-process.js'
import { memoryOf } from '../machine/processor-time.js'

/** Request rate of ordinary use, far below the capacity of the web process. */
const PER_SECOND = 50
const BASELINE_MS = 10_000
const MEMORY_INTERVAL_MS = 100
const MEGABYTE = 1_000_000

/**
 * Response times of the API at a fixed rate, without a backup and during one; time, size and memory of backups and of restores.
 * Memory should be the same for every size of the pod.
 */
export async function* benchBackup({ rounds, size }: BenchOptions): AsyncGenerator<Result> {
  const loader = forkFile('load/paced-load')
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-'))
  try {
    await using pod = await openGeneratedPod(planPod(size))
    const load = loadOf(pod)
    await runPacedLoad(loader, { ...load, milliseconds: BASELINE_MS / 2 }) // warms up
    let last: Backup | undefined
    for (const [name, priority, floor] of [
      ['daily', constants.priority.PRIORITY_LOW, FLOORS.backup],
      ['by hand', constants.priority.PRIORITY_NORMAL, undefined],
    ] as const) {
      const measuredRounds: Round[] = []
      for (let round = 0; round < rounds; round += 1) {
        const baseline = await runPacedLoad(loader, { ...load, milliseconds: BASELINE_MS })
        measuredRounds.push({ baseline, ...(await measureDuringBackup(loader, load, pod, { folder, priority })) })
      }
      yield resultOf(`API during a backup, ${name}`, measuredRounds, floor)
      last = measuredRounds.at(-1)?.backup
    }
    if (last !== undefined) yield await measureRestores(last, pod.stores, { folder, rounds })
  } finally {
    await endProcess(loader)
    await rm(folder, { recursive: true, force: true })
  }
}

interface Backup {
  readonly id: string
  readonly repository: string
  readonly identity: string
  readonly megabytes: number
}

interface Round extends Omit<CommandRun, 'output'> {
  readonly baseline: PacedLoadResult
  readonly during: PacedLoadResult
  readonly backup: Backup
}

function loadOf({ port, tokens }: OpenedPod): PacedLoad {
  const paths = ['/api/v1/streams/main', '/api/v1/notifications', '/api/v1/streams/activity']
  const requests = [...tokens.values()].flatMap((token) => paths.map((path) => ({ path, token })))
  return { port, requests, perSecond: PER_SECOND }
}

function runPacedLoad(loader: ChildProcess, load: PacedLoad): Promise<PacedLoadResult> {
  loader.send(load)
  return nextMessage<PacedLoadResult>(loader)
}

async function measureDuringBackup(
  loader: ChildProcess,
  load: PacedLoad,
  { stores }: OpenedPod,
  { folder, priority }: { readonly folder: string; readonly priority: number },
): Promise<Omit<Round, 'baseline'>> {
  const responses = runPacedLoad(loader, load)
  const { identity, recipient } = await generateBackupKey()
  const repository = join(folder, recipient)
  const { output, ...run } = await runPod(['backup', 'create', '--to', repository], {
    priority,
    environment: {
      DATABASE_URL: stores.databaseUrl,
      SECRET_KEY: 'a key that is only good for benches',
      DATA_DIR: folder,
      BACKUP_RECIPIENTS: recipient,
    },
  })
  loader.send('end')
  const during = await responses
  const { id, bytes } = JSON.parse(output)
  return { ...run, during, backup: { id, repository, identity, megabytes: bytes / MEGABYTE } }
}

/** Restores into a new database of the same server, several times. */
async function measureRestores(
  { id, repository, identity, megabytes }: Backup,
  { databaseUrl, superuserUrl }: BenchStores,
  { folder, rounds }: { readonly folder: string; readonly rounds: number },
): Promise<Result> {
  const file = join(folder, 'identity.txt')
  await writeFile(file, identity)
  const runs: CommandRun[] = []
  for (let round = 0; round < rounds; round += 1) {
    const url = new URL(databaseUrl)
    url.pathname = `/restored_${round}`
    await runOnServer(superuserUrl, `create database restored_${round} owner ${url.username}`)
    const environment = { DATABASE_URL: url.href, DATA_DIR: join(folder, `restored-${round}`) }
    runs.push(await runPod(['backup', 'restore', repository, id, '--identity', file], { environment }))
    await runOnServer(superuserUrl, `drop database restored_${round}`)
  }
  const seconds = runs.map((run) => run.seconds)
  const rows = JSON.parse(runs[0]?.output ?? '{}').rows
  return {
    bench: 'backup',
    case: 'restore',
    value: median(seconds),
    unit: 's',
    rounds,
    spread: spreadOf(seconds),
    cpu_us: {},
    more: { rows, megabytes, memory_megabytes: Math.max(...runs.map(({ memory }) => memory)) },
    ok: rows > 0,
  }
}

async function runOnServer(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(statement)
  await client.end()
}

interface CommandRun {
  readonly output: string
  readonly seconds: number
  /** Maximum resident memory in megabytes. */
  readonly memory: number
}

/** Runs a command of `pod`. */
async function runPod(
  args: readonly string[],
  { environment, priority = constants.priority.PRIORITY_NORMAL }: RunOptions,
): Promise<CommandRun> {
  const start = performance.now()
  const program = fileURLToPath(new URL('../../bin/pod.js', import.meta.url))
  const child = spawn(process.execPath, [program, ...args, '--json'], {
    env: { PATH: process.env['PATH'], POD_URL: 'https://pod.example', LOG_LEVEL: 'silent', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { pid = 0 } = child
  setPriority(pid, priority)
  let memory = 0
  const watch = setInterval(() => {
    memory = Math.max(memory, memoryOf(pid) || 0)
  }, MEMORY_INTERVAL_MS)
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  clearInterval(watch)
  if (code !== 0) throw new Error(`pod ${args.join(' ')} exited with code ${code}.`)
  return { output, seconds: (performance.now() - start) / 1_000, memory }
}

interface RunOptions {
  readonly environment: Readonly<Record<string, string>>
  readonly priority?: number
}

function resultOf(name: string, rounds: readonly Round[], floor: number | undefined): Result {
  const during = rounds.map((round) => latencyOf(round.during.milliseconds))
  const baseline = rounds.map((round) => latencyOf(round.baseline.milliseconds))
  const medianOf = (values: typeof during) => ({
    p50: median(values.map(({ p50 }) => p50)),
    p99: median(values.map(({ p99 }) => p99)),
  })
  const slowest = during.map(({ p99 }) => p99)
  return {
    bench: 'backup',
    case: name,
    value: median(slowest),
    unit: 'ms (p99)',
    limit: medianOf(baseline).p99,
    ratio: median(slowest.map((value, round) => (baseline[round]?.p99 ?? Number.NaN) / value)),
    ...(floor !== undefined && { floor }),
    rounds: rounds.length,
    spread: spreadOf(slowest),
    cpu_us: {},
    latency_ms: { 'without a backup': medianOf(baseline), during: medianOf(during) },
    more: {
      seconds: median(rounds.map(({ seconds }) => seconds)),
      megabytes: median(rounds.map(({ backup }) => backup.megabytes)),
      memory_megabytes: Math.max(...rounds.map(({ memory }) => memory)),
    },
    ok: rounds.every((round) => round.baseline.failures === 0 && round.during.failures === 0),
  }
}
