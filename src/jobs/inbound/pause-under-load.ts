import { setTimeout as pause } from 'node:timers/promises'
import type { JobQueues } from '../queues/job-queues.js'
import { QueueUnavailable } from '../queues/queue-unavailable.js'
import { BACKGROUND_LIMITS } from './limits.js'

/** Delays long work while received messages wait. */
export interface LoadPause {
  /** Waits while too many received messages wait for a worker. */
  wait(signal?: AbortSignal): Promise<void>
}

/** The queue is counted at most once in `pollIntervalMs`. */
export function openLoadPause(jobs: Pick<JobQueues, 'counts'>): LoadPause {
  let nextCheckAt = 0

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
      while (performance.now() >= nextCheckAt) {
        const busy = await isBusy()
        if (!busy) {
          nextCheckAt = performance.now() + BACKGROUND_LIMITS.pollIntervalMs
          return
        }
        await pause(BACKGROUND_LIMITS.pollIntervalMs, undefined, signal ? { signal } : {})
      }
    },
  }
}
