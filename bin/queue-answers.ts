import { setTimeout as pause } from 'node:timers/promises'
import type { JobQueues } from '../src/jobs/queues/job-queues.js'

const PATIENCE = 3_000
const LOOK_EVERY = 50

/** The way to Redis is made in the background: who asks at once would hear that the queue is away. False: it really is. */
export async function queueAnswers(jobs: Pick<JobQueues, 'counts'>): Promise<boolean> {
  const deadline = performance.now() + PATIENCE
  for (;;) {
    try {
      await jobs.counts('maintenance')
      return true
    } catch {
      if (performance.now() > deadline) return false
      await pause(LOOK_EVERY)
    }
  }
}
