import { setTimeout as pause } from 'node:timers/promises'
import { isDatabaseReachable } from '../src/persistence/database/database.js'
import { isResourceLimitError } from '../src/persistence/database/errors.js'
import type { Services } from '../src/services/services.js'
import { outcomeOfError } from './job-outcome.js'

const CHECK_INTERVAL_MS = 500
/** Runs that one attempt of a job may take during outages and deadlocks. A handler that causes them itself fails after these. */
const RUNS = 4
/** A transaction that is too large fails every time, and delays others every time. */
const RUNS_OF_LARGE_TRANSACTION = 2

/** Repeats work after an outage of the database, up to a number of runs. */
export async function retryAfterOutages<Result>(
  services: Pick<Services, 'db'>,
  abortSignal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let run = 1; ; run += 1) {
    try {
      return await work()
    } catch (error) {
      const mayRunAgain =
        run < (isResourceLimitError(error) ? RUNS_OF_LARGE_TRANSACTION : RUNS) &&
        outcomeOfError(error).kind === 'unavailable'
      if (!mayRunAgain || !(await waitForDatabase(services, abortSignal))) throw error
    }
  }
}

/**
 * Waits until the database answers. Jobs wait here in their slots, so that the worker takes no new ones and the outage costs no
 * attempt. False: the process stops first.
 */
async function waitForDatabase({ db }: Pick<Services, 'db'>, abortSignal: AbortSignal): Promise<boolean> {
  while (!abortSignal.aborted) {
    if (await isDatabaseReachable(db)) return true
    await pause(CHECK_INTERVAL_MS, undefined, { signal: abortSignal }).catch(() => {})
  }
  return false
}
