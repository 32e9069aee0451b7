import { setTimeout as pause } from 'node:timers/promises'
import { startProcess, type TestProcess } from '../support/processes/child-process.js'

const burstWorker = new URL('burst-worker.ts', import.meta.url).pathname

export interface WorkerInstructions {
  readonly environment: NodeJS.ProcessEnv
  readonly othersPort: number
  /** Whether threads process keys and envelopes, as in a real worker. */
  readonly threads: boolean
}

export interface KilledWorkers {
  /** Log lines of all workers at level warning and above. */
  readonly logLines: readonly Record<string, unknown>[]
  readonly killed: number
  /** Stops killing workers. */
  stopKilling(): Promise<void>
  close(): Promise<void>
}

export interface KilledWorkersOptions {
  /** Run time of the workers between two kills. */
  readonly lifeMs: number
  /** Number of kills. Default: until `stopKilling`. */
  readonly kills?: number | undefined
  readonly workerFile?: string
}

/** Runs two worker processes. Each is killed in turn while it runs jobs, and replaced. */
export function startKilledWorkers(
  instructions: WorkerInstructions,
  { lifeMs, kills = Number.POSITIVE_INFINITY, workerFile = burstWorker }: KilledWorkersOptions,
): KilledWorkers {
  const logLines: Record<string, unknown>[] = []
  const stopped = new AbortController()
  let killed = 0

  function start(): TestProcess {
    const worker = startProcess(workerFile, instructions)
    worker.onMessage(({ logLine: line }) => {
      if (typeof line === 'object' && line !== null) logLines.push({ ...line })
    })
    return worker
  }

  const workers = [start(), start()]
  async function killInTurn(): Promise<void> {
    for (let turn = 0; killed < kills; turn = 1 - turn) {
      await Promise.all(workers.map((worker) => worker.messageWith('ready'))) // a kill without active jobs would test nothing
      await pause(lifeMs, undefined, { signal: stopped.signal }).catch(() => {})
      if (stopped.signal.aborted) return
      await workers[turn]?.kill()
      workers[turn] = start()
      killed += 1
    }
  }
  const killing = killInTurn()

  async function stopKilling(): Promise<void> {
    stopped.abort()
    await killing
  }

  return {
    logLines,
    get killed() {
      return killed
    },
    stopKilling,
    async close() {
      await stopKilling()
      await Promise.all(workers.map((worker) => worker.kill()))
    },
  }
}
