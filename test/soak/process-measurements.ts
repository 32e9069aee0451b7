import { readdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { memoryOf } from '../../bench/machine/processor-time.js'
import { readWorkStatus } from '../../src/jobs/operations/work-status.js'
import type { MixedLoadPod, WatchedProcess } from './mixed-load-pod.js'

/** Only values of an idle pod are compared: under load a process may need more. */
type Phase = 'burst' | 'settling' | 'rest'

/** Measurements of a pod at one time. */
export interface VitalSigns {
  readonly phase: Phase
  /** Seconds since the start. */
  readonly seconds: number
  /** By name; the suffix of the name selects the limit. */
  readonly figures: Readonly<Record<string, number>>
}

const POLL_INTERVAL_MS = 5_000
const MEGABYTE = 2 ** 20

/** Measures every few seconds; discards measurements during a change of phase. */
export function startWatch(mixedLoadPod: MixedLoadPod) {
  const monitor = openMonitor(mixedLoadPod)
  const signs: VitalSigns[] = []
  const over = new AbortController()
  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1_000

  async function look(kept?: 'kept'): Promise<void> {
    const { phase } = watch
    const figures = await monitor.look(kept)
    if (phase === watch.phase) signs.push({ phase, seconds: seconds(), figures })
  }
  async function lookAgainAndAgain(): Promise<void> {
    while (!over.signal.aborted) {
      await look()
      await pause(POLL_INTERVAL_MS, undefined, { signal: over.signal }).catch(() => {})
    }
  }
  const watch = {
    phase: 'burst' as Phase,
    seconds,
    look,
    async end(): Promise<readonly VitalSigns[]> {
      over.abort()
      await looking
      monitor.close()
      return signs
    },
  }
  const looking = lookAgainAndAgain()
  return watch
}

/** Reads all values; `kept` is the memory of each process after garbage collection. */
function openMonitor({ pod, redis, web, worker }: MixedLoadPod) {
  const client = redis && new Redis(redis.url)
  const processes = Object.entries({ web, worker })
  return {
    async look(kept?: 'kept'): Promise<VitalSigns['figures']> {
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
    ...(kept && { [`${name} kept, MB`]: await keptBy(process) }),
    [`${name} descriptors`]: readdirSync(`/proc/${process.pid}/fd`).length,
    [`${name} loop behind, ms`]: await delayOf(process),
  }
}

async function keptBy(process: WatchedProcess): Promise<number> {
  const answer = process.nextMessage()
  process.send({ measure: true })
  const { kept } = (await answer) as { readonly kept: number } // sent by the hook
  return kept / MEGABYTE
}

/** NaN if the process does not respond in time. */
async function delayOf({ metrics }: WatchedProcess): Promise<number> {
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
