import { vi } from 'vitest'
import { isIdle } from '../../../src/jobs/operations/queue-facts.js'
import type { QueueName } from '../../../src/jobs/queues/queue-names.js'
import type { Pod } from '../../../src/pod/pod.js'
import { type RunningWorkers, startWorkers, type WorkersOptions } from '../../../workers/start-workers.js'

/** Short lock and retry times, so that a test waits only for the work itself. */
const SHORT_TIMES = { lock: 2_000, stalledCheck: 500, backoff: () => 10 }

/** Starts workers in the process of the test. */
export function startTestWorkers(pod: Pod, options: WorkersOptions): RunningWorkers {
  return startWorkers(pod, { ...options, timing: { ...SHORT_TIMES, ...options.timing } })
}

/** Resolves when the queues, by default all of them, have no work left. */
export async function untilIdle(pod: Pod, timeout = 15_000, queues?: readonly QueueName[]): Promise<void> {
  await vi.waitFor(
    async () => {
      if (!(await isIdle(pod, queues))) throw new Error('there is still work to do')
    },
    { timeout, interval: 20 },
  )
}
