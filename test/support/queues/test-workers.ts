import { vi } from 'vitest'
import { isIdle } from '../../../src/jobs/operations/work-status.js'
import type { QueueName } from '../../../src/jobs/queues/queue-names.js'
import type { Services } from '../../../src/services/services.js'
import { type RunningWorkers, startWorkers, type WorkersOptions } from '../../../workers/start-workers.js'

/** Short lock and retry times, so that a test waits only for the work itself. */
const SHORT_TIMES = { lockMs: 2_000, stalledCheckMs: 500, backoff: () => 10, putBackDelay: () => 10 }

/** Starts workers in the process of the test. */
export function startTestWorkers(pod: Services, options: WorkersOptions): RunningWorkers {
  return startWorkers(pod, { ...options, timing: { ...SHORT_TIMES, ...options.timing } })
}

/** Resolves when the queues, by default all of them, have no work left. */
export async function untilIdle(pod: Services, timeout = 50_000, queues?: readonly QueueName[]): Promise<void> {
  await vi.waitFor(
    async () => {
      if (!(await isIdle(pod, queues))) throw new Error('Work is left.')
    },
    { timeout, interval: 40 },
  )
}
