import { setTimeout as pause } from 'node:timers/promises'
import { startProcess, type TestProcess } from '../support/processes/child-process.js'

const burstWorker = new URL('burst-worker.ts', import.meta.url).pathname

export interface WorkerInstructions {
  readonly environment: NodeJS.ProcessEnv
  readonly othersPort: number
  /** Whether threads process keys and envelopes, as in a real worker. */
  readonly threads: boolean
}

export interface MortalWorkers {
  /** Log lines of all workers at level warning and above. */
  readonly said: readonly Record<string, unknown>[]
  readonly killed: number
  /** Stops killing workers. */
  spare(): Promise<void>
  close(): Promise<void>
}

export interface MortalWorkersOptions {
  /** Time that both workers run before one is killed. */
  readonly lifeMs: number
  /** Default: workers are killed until they are spared. */
  readonly kills?: number | undefined
  readonly workerFile?: string
}

/** Runs two worker processes. When both have worked for some time, one is killed with its active jobs, and replaced. */
export function startMortalWorkers(
  instructions: WorkerInstructions,
  { lifeMs, kills = Number.POSITIVE_INFINITY, workerFile = burstWorker }: MortalWorkersOptions,
): MortalWorkers {
  const said: Record<string, unknown>[] = []
  const spared = new AbortController()
  let killed = 0

  function start(): TestProcess {
    const worker = startProcess(workerFile, instructions)
    worker.onMessage(({ said: line }) => {
      if (typeof line === 'object' && line !== null) said.push({ ...line })
    })
    return worker
  }

  const workers = [start(), start()]
  async function killInTurn(): Promise<void> {
    for (let turn = 0; killed < kills; turn = 1 - turn) {
      await Promise.all(workers.map((worker) => worker.messageWith('ready'))) // a kill without active jobs would test nothing
      await pause(lifeMs, undefined, { signal: spared.signal }).catch(() => {})
      if (spared.signal.aborted) return
      await workers[turn]?.kill()
      workers[turn] = start()
      killed += 1
    }
  }
  const killing = killInTurn()

  async function spare(): Promise<void> {
    spared.abort()
    await killing
  }

  return {
    said,
    get killed() {
      return killed
    },
    spare,
    async close() {
      await spare()
      await Promise.all(workers.map((worker) => worker.kill()))
    },
  }
}
