import type { QueueName } from '../../src/jobs/queues/queue-names.js'
import type { Services } from '../../src/services/services.js'
import { withDeadline } from '../deadline.js'
import type { RunCounters } from '../run-counters.js'
import type { InProcessDelivery, InProcessHandler, InProcessLimits } from './run-in-groups.js'

interface InProcessRunsOptions {
  /** The queues that this process serves; the work of all others is left to jobs. */
  readonly queues: readonly QueueName[]
  readonly handlers?: readonly InProcessHandler[] | undefined
  readonly delivery?: InProcessDelivery | undefined
  readonly limits: InProcessLimits
  readonly counters: RunCounters
}

/**
 * Runs the outbox rows and deliveries that this process writes without a job of the queue. Returns a function that ends it: from then
 * on, all of them get jobs.
 */
export function startInProcessRuns(
  services: Services,
  { queues, handlers = [], delivery, limits, counters }: InProcessRunsOptions,
): () => void {
  const ends = handlers
    .filter(({ job }) => queues.includes(job.queue))
    .map(({ job: { queue, name }, maxConcurrent, open }) => {
      const run = open(services, limits)
      return services.jobs.inProcessRuns.serve({
        queue,
        name,
        maxConcurrent,
        run: (row) => counters.runInProcess(queue, name, () => run(row)),
      })
    })
  if (delivery !== undefined && queues.includes('outbound'))
    ends.push(serveDeliveries(services, delivery, limits, counters))
  return () => {
    for (const end of ends) end()
  }
}

function serveDeliveries(
  services: Services,
  { maxConcurrent, run }: InProcessDelivery,
  { timeoutMs, abortSignal }: InProcessLimits,
  counters: RunCounters,
): () => void {
  const deliver = (podId: number) => withDeadline(timeoutMs, abortSignal, (signal) => run(services, podId, signal))
  return services.jobs.inProcessRuns.deliveries.serve({
    maxConcurrent: Math.min(maxConcurrent, services.config.workerConcurrency.outbound ?? maxConcurrent),
    run: (podId) => counters.runInProcess('outbound', 'deliver', () => deliver(podId)),
  })
}
