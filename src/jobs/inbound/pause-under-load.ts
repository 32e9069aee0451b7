import { setTimeout as pause } from 'node:timers/promises'
import type { JobQueues } from '../queues/job-queues.js'
import { QueueUnavailable } from '../queues/queue-unavailable.js'
import { BACKGROUND_LIMITS } from './limits.js'

/** Delays long work while received messages wait. */
export interface LoadPause {
  /** Waits while too many received messages wait for a worker. */
  wait(signal?: AbortSignal): Promise<void>
}

/** The queue is counted at most once in `lookEveryMs`. */
export function openLoadPause(jobs: Pick<JobQueues, 'counts'>): LoadPause {
  let lookAgainAt = 0

  async function isBusy(): Promise<boolean> {
    try {
      return (await jobs.counts('inbound')).waiting > BACKGROUND_LIMITS.pauseAboveJobs
    } catch (error) {
      if (error instanceof QueueUnavailable) return false // nothing can be received
      throw error
    }
  }

  return {
    async wait(signal) {
      while (performance.now() >= lookAgainAt) {
        const busy = await isBusy()
        if (!busy) {
          lookAgainAt = performance.now() + BACKGROUND_LIMITS.lookEveryMs
          return
        }
        await pause(BACKGROUND_LIMITS.lookEveryMs, undefined, signal ? { signal } : {})
      }
    },
  }
}
