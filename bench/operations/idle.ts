import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Result } from '../bench.js'
import { endProcess } from '../machine/child-process.js'
import { ownMemoryOf, processorTimesOf, processTree } from '../machine/processor-time.js'

/** Time after which the work of the start is over: compilation, garbage collection and the first run of every schedule. */
const SETTLED_MS = 120_000
/** Every schedule runs within a minute, so the bench has no rounds. */
const MEASURED_MS = 60_000
/** Maximum share of one core, for all processes of an idle pod. */
const MAX_PERCENT = 0.5
const MAX_MEGABYTES = 300

/**
 * The cost of an idle pod: all processes of `npm start`, including the embedded database. The pod starts when the bench is created,
 * so that it is idle when the bench runs.
 */
export function benchIdle(): AsyncIterable<Result> {
  const starting = startCompletePod()
  starting.catch(() => {}) // the awaiting caller gets the error
  return measureIdlePod(starting)
}

async function* measureIdlePod(starting: Promise<StartedPod>): AsyncGenerator<Result> {
  const { child, folder, pids, startedAt } = await starting
  try {
    await pause(Math.max(0, startedAt + SETTLED_MS - performance.now()))
    yield* resultsOf(await measureCost(pids))
  } finally {
    await endProcess(child)
    await rm(folder, { recursive: true, force: true })
  }
}

/** Percent of a core and megabytes, by process. */
interface IdleCost {
  readonly percent: Readonly<Record<string, number>>
  readonly megabytes: number
}

interface StartedPod {
  readonly child: ChildProcess
  readonly folder: string
  readonly startedAt: number
  readonly pids: Readonly<Record<string, number>>
}

async function startCompletePod(): Promise<StartedPod> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-'))
  const program = fileURLToPath(new URL('../../bin/pod.js', import.meta.url))
  const child = spawn(process.execPath, [program, 'start', '--json'], {
    env: { PATH: process.env['PATH'], DATA_DIR: folder, PORT: '0', ADMIN_LISTEN: '0', LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.once('exit', () => child.kill()) // another bench may fail before this one runs
  for await (const line of createInterface({ input: child.stdout })) {
    const { ready, pids } = JSON.parse(line)
    if (ready !== true || child.pid === undefined) continue
    return { child, folder, startedAt: performance.now(), pids: { pod: child.pid, ...pids } }
  }
  throw new Error('The pod did not start.')
}

async function measureCost({ pod, ...parts }: StartedPod['pids']): Promise<IdleCost> {
  const pids = { all: pod ?? Number.NaN, ...parts }
  const before = processorTimesOf(pids)
  const start = performance.now()
  await pause(MEASURED_MS)
  const microseconds = (performance.now() - start) * 1_000
  const after = processorTimesOf(pids)
  const percentOf = (name: string) => (((after[name] ?? 0) - (before[name] ?? 0)) / microseconds) * 100
  return {
    percent: Object.fromEntries(Object.keys(pids).map((name) => [name, percentOf(name)])),
    megabytes: processTree(pids.all).reduce((sum, pid) => sum + ownMemoryOf(pid), 0),
  }
}

function* resultsOf({ percent, megabytes }: IdleCost): Generator<Result> {
  const { all = Number.NaN } = percent
  const common = { bench: 'idle', rounds: 1, spread: 0 }
  yield {
    ...common,
    case: 'processor time, all processes',
    value: all,
    unit: '% of a core',
    // Microseconds per second.
    cpu_us: Object.fromEntries(Object.entries(percent).map(([name, part]) => [name, part * 10_000])),
    ok: !(all >= MAX_PERCENT), // NaN: the system does not report it
  }
  yield {
    ...common,
    case: 'memory, all processes',
    value: megabytes,
    unit: 'MB',
    cpu_us: {},
    ok: !(megabytes >= MAX_MEGABYTES),
  }
}
