import { vi } from 'vitest'
import { isIdle } from '../../../src/jobs/operations/queue-facts.js'
import type { QueueName } from '../../../src/jobs/queues/queue-names.js'
import { type RunningWorkers, startWorkers, type WorkersOptions } from '../../../workers/start-workers.js'
import type { QueuePod } from '../pods/queue-pod.js'

/** Seconds become milliseconds: nothing a test waits for should take longer than the work itself. */
const quick = { lock: 2_000, stalledCheck: 500, backoff: () => 10 }

export function startTestWorkers(pod: QueuePod, options: WorkersOptions): RunningWorkers {
  return startWorkers(pod, { ...options, timing: { ...quick, ...options.timing } })
}

/** Resolves when nothing is left to do, or nothing for these queues. */
export async function untilIdle(pod: QueuePod, timeout = 15_000, queues?: readonly QueueName[]): Promise<void> {
  await vi.waitFor(
    async () => {
      if (!(await isIdle(pod, queues))) throw new Error('there is still work to do')
    },
    { timeout, interval: 20 },
  )
}
