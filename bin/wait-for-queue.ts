import { setTimeout as pause } from 'node:timers/promises'
import type { JobQueues } from '../src/jobs/queues/job-queues.js'

const QUEUE_WAIT_MS = 3_000
const POLL_INTERVAL_MS = 50

/** Waits for the connection to Redis, which opens in the background. False: the queue is unavailable. */
export async function waitForQueue(jobs: Pick<JobQueues, 'counts'>): Promise<boolean> {
  const deadline = performance.now() + QUEUE_WAIT_MS
  for (;;) {
    try {
      await jobs.counts('maintenance')
      return true
    } catch {
      if (performance.now() > deadline) return false
      await pause(POLL_INTERVAL_MS)
    }
  }
}
