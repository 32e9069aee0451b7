import { setTimeout as pause } from 'node:timers/promises'
import { databaseReachable } from '../src/persistence/database.js'
import type { Pod } from '../src/pod.js'

const ASK_EVERY = 500

/**
 * Waits until the database answers. Every job that meets an outage waits here with its slot, so the worker takes nothing new
 * and the outage costs no attempt. False: the process stops first.
 */
export async function databaseAnswers({ db }: Pick<Pod, 'db'>, stopping: AbortSignal): Promise<boolean> {
  while (!stopping.aborted) {
    if (await databaseReachable(db)) return true
    await pause(ASK_EVERY, undefined, { signal: stopping }).catch(() => {})
  }
  return false
}
