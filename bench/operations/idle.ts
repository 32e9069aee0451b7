import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Result } from '../bench.js'
import { end } from '../machine/child-process.js'
import { ownMemoryOf, processorTimesOf, processTree } from '../machine/processor-time.js'

/** The compiler of the JavaScript engine, its last collection of what the start has left, and the first looks at everything are over. */
const SETTLED_MS = 120_000
/** Every schedule has its turn in a minute, so there are no rounds. */
const WATCHED_MS = 60_000
/** Of one core, for all processes of a pod that has nothing to do. */
const MAX_PERCENT = 0.5
const MAX_MEGABYTES = 300

/**
 * The cost of an idle pod: all processes of `npm start`, including the embedded database. The pod starts at once
 * and not in its turn, since it must become idle first.
 */
export function benchIdle(): AsyncIterable<Result> {
  const starting = startCompletePod()
  starting.catch(() => {}) // the awaiting caller gets the error
  return watchAtRest(starting)
}

async function* watchAtRest(starting: Promise<StartedPod>): AsyncGenerator<Result> {
  const { child, folder, pids, startedAt } = await starting
  try {
    await pause(Math.max(0, startedAt + SETTLED_MS - performance.now()))
    yield* resultsOf(await watch(pids))
  } finally {
    await end(child)
    await rm(folder, { recursive: true, force: true })
  }
}

/** Percent of a core and megabytes, by process. */
interface Watched {
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
  process.once('exit', () => child.kill()) // when another bench fails before its turn
  for await (const line of createInterface({ input: child.stdout })) {
    const { ready, pids } = JSON.parse(line)
    if (ready !== true || child.pid === undefined) continue
    return { child, folder, startedAt: performance.now(), pids: { pod: child.pid, ...pids } }
  }
  throw new Error('the pod did not start')
}

async function watch({ pod, ...parts }: StartedPod['pids']): Promise<Watched> {
  const pids = { all: pod ?? Number.NaN, ...parts }
  const before = processorTimesOf(pids)
  const start = performance.now()
  await pause(WATCHED_MS)
  const microseconds = (performance.now() - start) * 1_000
  const after = processorTimesOf(pids)
  const percentOf = (name: string) => (((after[name] ?? 0) - (before[name] ?? 0)) / microseconds) * 100
  return {
    percent: Object.fromEntries(Object.keys(pids).map((name) => [name, percentOf(name)])),
    megabytes: processTree(pids.all).reduce((sum, pid) => sum + ownMemoryOf(pid), 0),
  }
}

function* resultsOf({ percent, megabytes }: Watched): Generator<Result> {
  const { all = Number.NaN } = percent
  const about = { bench: 'idle', rounds: 1, spread: 0 }
  yield {
    ...about,
    case: 'processor time, all processes',
    value: all,
    unit: '% of a core',
    // Of a second.
    cpu_us: Object.fromEntries(Object.entries(percent).map(([name, part]) => [name, part * 10_000])),
    ok: !(all >= MAX_PERCENT), // not a number: the system does not report it
  }
  yield {
    ...about,
    case: 'memory, all processes',
    value: megabytes,
    unit: 'MB',
    cpu_us: {},
    ok: !(megabytes >= MAX_MEGABYTES),
  }
}
