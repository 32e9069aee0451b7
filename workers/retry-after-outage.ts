import { setTimeout as pause } from 'node:timers/promises'
import { isDatabaseReachable } from '../src/persistence/database/database.js'
import { isResourceLimitError } from '../src/persistence/database/errors.js'
import type { Pod } from '../src/pod/pod.js'
import { outcomeOfError } from './job-outcome.js'

const ASK_EVERY = 500
/** Runs that one attempt of a job may take during outages and deadlocks. A handler that causes them itself fails after these. */
const RUNS = 4
/** A transaction that is too large fails every time, and delays others every time. */
const RUNS_OF_TOO_MUCH = 2

/** Repeats work after an outage of the database, up to a number of runs. */
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
        run < (isResourceLimitError(error) ? RUNS_OF_TOO_MUCH : RUNS) && outcomeOfError(error).kind === 'unavailable'
      if (!isWorthIt || !(await databaseAnswers(pod, stopping))) throw error
    }
  }
}

/**
 * Waits until the database answers. Jobs wait here in their slots, so that the worker takes no new ones and the outage costs no
 * attempt. False: the process stops first.
 */
async function databaseAnswers({ db }: Pick<Pod, 'db'>, stopping: AbortSignal): Promise<boolean> {
  while (!stopping.aborted) {
    if (await isDatabaseReachable(db)) return true
    await pause(ASK_EVERY, undefined, { signal: stopping }).catch(() => {})
  }
  return false
}
