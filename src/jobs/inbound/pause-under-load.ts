import { setTimeout as pause } from 'node:timers/promises'
import type { JobQueues } from '../queues/job-queues.js'
import { QueueUnavailable } from '../queues/queue-unavailable.js'
import { BACKGROUND_LIMITS } from './limits.js'

/** Delays long work while received messages wait. */
export interface LoadPause {
  /** Waits while too many received messages wait for a worker, and as long as the work may rest. */
  wait(signal?: AbortSignal): Promise<void>
}

/**
 * The queue is counted at most once in `pollIntervalMs`. `share` is the part of the time in which the work may run: messages that arrive
 * meanwhile wait for it less often.
 */
export function openLoadPause(jobs: Pick<JobQueues, 'counts'>, share = 1): LoadPause {
  let nextCheckAt = 0
  let runsSince = performance.now()

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
      const options = signal ? { signal } : {}
      const restMs = (performance.now() - runsSince) * (1 / share - 1)
      if (restMs > 0) await pause(Math.min(restMs, BACKGROUND_LIMITS.pollIntervalMs), undefined, options)
      while (performance.now() >= nextCheckAt) {
        if (!(await isBusy())) nextCheckAt = performance.now() + BACKGROUND_LIMITS.pollIntervalMs
        else await pause(BACKGROUND_LIMITS.pollIntervalMs, undefined, options)
      }
      runsSince = performance.now()
    },
  }
}
