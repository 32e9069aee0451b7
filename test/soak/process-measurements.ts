import { readdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { memoryOf } from '../../bench/machine/processor-time.js'
import { readWorkStatus } from '../../src/jobs/operations/work-status.js'
import type { MixedLoadPod, WatchedProcess } from './mixed-load-pod.js'

/** Phase of the load. Only values at rest are compared, because a process may need more memory under load. */
type Phase = 'burst' | 'settling' | 'rest'

/** Measurements of a pod at one time. */
export interface PodSample {
  readonly phase: Phase
  /** Seconds since the start. */
  readonly seconds: number
  /** Values by name. The end of the name selects the limit. */
  readonly figures: Readonly<Record<string, number>>
}

const POLL_INTERVAL_MS = 5_000
const MEGABYTE = 2 ** 20

/** Measures every few seconds. Discards measurements during a change of the phase. */
export function startSampler(mixedLoadPod: MixedLoadPod) {
  const monitor = openMonitor(mixedLoadPod)
  const samples: PodSample[] = []
  const over = new AbortController()
  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1_000

  async function takeSample(kept?: 'kept'): Promise<void> {
    const { phase } = sampler
    const figures = await monitor.readFigures(kept)
    if (phase === sampler.phase) samples.push({ phase, seconds: seconds(), figures })
  }
  async function sampleRepeatedly(): Promise<void> {
    while (!over.signal.aborted) {
      await takeSample()
      await pause(POLL_INTERVAL_MS, undefined, { signal: over.signal }).catch(() => {})
    }
  }
  const sampler = {
    phase: 'burst' as Phase,
    seconds,
    takeSample,
    async end(): Promise<readonly PodSample[]> {
      over.abort()
      await sampling
      monitor.close()
      return samples
    },
  }
  const sampling = sampleRepeatedly()
  return sampler
}

/** Reads all values; `kept` is the memory of each process after garbage collection. */
function openMonitor({ pod, redis, web, worker }: MixedLoadPod) {
  const client = redis && new Redis(redis.url)
  const processes = Object.entries({ web, worker })
  return {
    async readFigures(kept?: 'kept'): Promise<PodSample['figures']> {
      const [ofProcesses, ofQueue, connections, clients] = await Promise.all([
        Promise.all(processes.map(([name, process]) => figuresOf(name, process, kept === 'kept'))),
        readWorkStatus(pod),
        countConnections(pod),
        client?.info('clients'),
      ])
      const { queues, outbox, deliveries } = ofQueue
      const ofQueues = Object.values(queues ?? {})
      return {
        ...Object.assign({}, ...ofProcesses),
        'PostgreSQL connections': connections,
        ...(clients !== undefined && { 'Redis connections': Number(/connected_clients:(\d+)/.exec(clients)?.[1]) }),
        'jobs in line': ofQueues.reduce((sum, { waiting, active, delayed }) => sum + waiting + active + delayed, 0),
        'oldest job in line, s': Math.max(0, ...ofQueues.map(({ oldestWaiting }) => oldestWaiting ?? 0)),
        'rows in line': outbox.waiting + deliveries.due,
      }
    },
    close: () => client?.disconnect(),
  }
}

async function figuresOf(name: string, process: WatchedProcess, kept: boolean): Promise<Record<string, number>> {
  return {
    [`${name} resident, MB`]: memoryOf(process.pid),
    ...(kept && { [`${name} kept, MB`]: await keptMemoryOf(process) }),
    [`${name} descriptors`]: readdirSync(`/proc/${process.pid}/fd`).length,
    [`${name} loop behind, ms`]: await loopDelayOf(process),
  }
}

async function keptMemoryOf(process: WatchedProcess): Promise<number> {
  const reply = process.nextMessage()
  process.send({ measure: true })
  const { kept } = (await reply) as { readonly kept: number } // sent by the hook
  return kept / MEGABYTE
}

/** NaN if the process does not respond in time. */
async function loopDelayOf({ metrics }: WatchedProcess): Promise<number> {
  try {
    const text = await (await fetch(metrics, { signal: AbortSignal.timeout(3_000) })).text()
    return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)/m.exec(text)?.[1]) * 1_000
  } catch {
    return Number.NaN
  }
}

async function countConnections({ db }: MixedLoadPod['pod']): Promise<number> {
  const { rows } = await db.raw(`select count(*) from pg_stat_activity where backend_type = 'client backend'`)
  return Number(rows[0].count)
}
