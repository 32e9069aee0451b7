import { setTimeout as pause } from 'node:timers/promises'
import { startProcess, type TestProcess } from '../support/child-process.js'

const burstWorker = new URL('burst-worker.ts', import.meta.url).pathname

export interface WorkerInstructions {
  readonly environment: NodeJS.ProcessEnv
  readonly othersPort: number
  /** Whether keys and envelopes are left to threads, as in a real worker. */
  readonly threads: boolean
}

export interface MortalWorkers {
  /** Every line that any of them has logged as a warning, or worse. */
  readonly said: readonly Record<string, unknown>[]
  readonly killed: number
  /** From now on they live. */
  spare(): Promise<void>
  close(): Promise<void>
}

/** Two worker processes. As soon as both have worked for this long, one is killed with everything in hand, and followed by another. */
export function startMortalWorkers(
  instructions: WorkerInstructions,
  lifeMs: number,
  workerFile = burstWorker,
): MortalWorkers {
  const said: Record<string, unknown>[] = []
  const spared = new AbortController()
  let killed = 0

  function start(): TestProcess {
    const worker = startProcess(workerFile, instructions)
    worker.listen(({ said: line }) => {
      if (typeof line === 'object' && line !== null) said.push({ ...line })
    })
    return worker
  }

  const workers = [start(), start()]
  async function killInTurn(): Promise<void> {
    for (let turn = 0; ; turn = 1 - turn) {
      await Promise.all(workers.map((worker) => worker.said('ready'))) // one that has nothing in hand yet is no loss
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
