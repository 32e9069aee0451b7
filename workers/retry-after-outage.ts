import { setTimeout as pause } from 'node:timers/promises'
import { isDatabaseReachable } from '../src/persistence/database/database.js'
import { isResourceLimitError } from '../src/persistence/database/errors.js'
import type { Pod } from '../src/pod/pod.js'
import { outcomeOfError } from './job-outcome.js'

const ASK_EVERY = 500
/** Outages and deadlocks that one attempt of a job outlives; a handler that causes them itself gets no further. */
const RUNS = 4
/** A transaction that is too large fails each time, and holds up others each time. */
const RUNS_OF_TOO_MUCH = 2

/** Work that is begun again when our own database is back, unless it is away again and again. */
export async function despiteOutages<Result>(
  pod: Pick<Pod, 'db'>,
  stopping: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let run = 1; ; run += 1) {
    try {
      return await work()
    } catch (error) {
      const isWorthIt =
        run < (isResourceLimitError(error) ? RUNS_OF_TOO_MUCH : RUNS) && outcomeOfError(error).kind === 'ours'
      if (!isWorthIt || !(await databaseAnswers(pod, stopping))) throw error
    }
  }
}

/**
 * Waits until the database answers. Every job that meets an outage waits here with its slot, so the worker takes nothing new
 * and the outage costs no attempt. False: the process stops first.
 */
async function databaseAnswers({ db }: Pick<Pod, 'db'>, stopping: AbortSignal): Promise<boolean> {
  while (!stopping.aborted) {
    if (await isDatabaseReachable(db)) return true
    await pause(ASK_EVERY, undefined, { signal: stopping }).catch(() => {})
  }
  return false
}
