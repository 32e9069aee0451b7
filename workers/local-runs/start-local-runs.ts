import type { QueueName } from '../../src/jobs/queues/queue-names.js'
import type { Services } from '../../src/services/services.js'
import { withDeadline } from '../deadline.js'
import type { RunCounters } from '../run-counters.js'
import type { LocalDelivery, LocalHandler, LocalRunLimits } from './run-in-groups.js'

interface LocalRunsOptions {
  /** The queues that this process serves; the work of all others is left to jobs. */
  readonly queues: readonly QueueName[]
  readonly handlers?: readonly LocalHandler[] | undefined
  readonly delivery?: LocalDelivery | undefined
  readonly limits: LocalRunLimits
  readonly counters: RunCounters
}

/**
 * Runs the outbox rows and deliveries that this process writes without a job of the queue. Returns a function that ends it: from then
 * on, all of them get jobs.
 */
export function startLocalRuns(
  services: Services,
  { queues, handlers = [], delivery, limits, counters }: LocalRunsOptions,
): () => void {
  const ends = handlers
    .filter(({ job }) => queues.includes(job.queue))
    .map(({ job: { queue, name }, maxConcurrent, open }) => {
      const run = open(services, limits)
      return services.jobs.localRuns.serve({
        queue,
        name,
        maxConcurrent,
        run: (row) => counters.runLocally(queue, name, () => run(row)),
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
  { maxConcurrent, run }: LocalDelivery,
  { timeoutMs, abortRunning }: LocalRunLimits,
  counters: RunCounters,
): () => void {
  const deliver = (podId: number) => withDeadline(timeoutMs, abortRunning, (signal) => run(services, podId, signal))
  return services.jobs.localRuns.deliveries.serve({
    maxConcurrent: Math.min(maxConcurrent, services.config.workerConcurrency.outbound ?? maxConcurrent),
    run: (podId) => counters.runLocally('outbound', 'deliver', () => deliver(podId)),
  })
}
