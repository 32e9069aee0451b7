import { type CheckResult, checkFailure, checkPassed, checkWarning } from '../../src/domain/operations/check-result.js'
import { findUnservedQueues } from '../../src/jobs/operations/probe-queues.js'
import { readWorkStatus } from '../../src/jobs/operations/work-status.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import type { Services } from '../../src/services/services.js'
import { waitForQueue } from '../wait-for-queue.js'

const ANSWER_WITHIN_MS = 10_000
/** Older waiting work indicates a problem. */
const LATE_SECONDS = 600

/** Checks the queue store, the workers and old waiting work. */
export async function checkQueue(services: Services): Promise<readonly CheckResult[]> {
  const target = services.jobs.store === 'redis' ? 'Redis' : 'PostgreSQL'
  if (!(await waitForQueue(services.jobs))) {
    return [
      checkFailure(
        'queue',
        services.jobs.store === 'redis'
          ? 'The queue is unavailable: check REDIS_URL and that Redis is running.'
          : 'The queue is unavailable: check DATABASE_URL and that PostgreSQL is running.',
      ),
    ]
  }
  const warnings = await services.jobs.warnings()
  return [
    ...(warnings.length === 0
      ? [checkPassed('queue', `The queue is stored in ${target}.`)]
      : warnings.map((text) => checkWarning('queue', text))),
    ...(await checkWorkers(services)),
    ...(await checkBacklog(services)),
  ]
}

async function checkWorkers(services: Services): Promise<readonly CheckResult[]> {
  const workers = await Promise.all(QUEUES.map(async (queue) => ({ queue, count: await services.jobs.workers(queue) })))
  const queuesWithoutWorker = workers.filter(({ count }) => count === 0).map(({ queue }) => queue)
  const servedQueues = QUEUES.filter((queue) => !queuesWithoutWorker.includes(queue))
  const silentQueues = await findUnservedQueues(services, servedQueues, ANSWER_WITHIN_MS)
  if (queuesWithoutWorker.length + silentQueues.length === 0) {
    return [checkPassed('workers', `A job through each of the ${QUEUES.length} queues was answered.`)]
  }
  const start = 'start the pod, or a worker ("pod worker"), and look at WORKER_QUEUES'
  return [
    ...(queuesWithoutWorker.length === 0
      ? []
      : [checkFailure('workers', `No worker serves ${queuesWithoutWorker.join(', ')}: ${start}.`)]),
    ...(silentQueues.length === 0
      ? []
      : [
          checkFailure(
            'workers',
            `The workers of ${silentQueues.join(', ')} did not run a test job within 10 s: see "pod status".`,
          ),
        ]),
  ]
}

async function checkBacklog(services: Services): Promise<readonly CheckResult[]> {
  const { outbox, deliveries, queues } = await readWorkStatus(services)
  const oldest = Math.max(outbox.oldest ?? 0, ...Object.values(queues ?? {}).map((status) => status.oldestWaiting ?? 0))
  const failed = Object.values(queues ?? {}).reduce((sum, status) => sum + status.failed, 0)
  const dead = Math.max(failed, outbox.dead)
  return [
    oldest > LATE_SECONDS
      ? checkWarning(
          'backlog',
          `The oldest work waits for ${Math.round(oldest / 60)} minutes: see "pod status", and run more workers.`,
        )
      : checkPassed('backlog', `No work is overdue; ${deliveries.due} deliveries are due.`),
    ...(dead > 0
      ? [
          checkWarning(
            'dead letters',
            `There ${dead === 1 ? 'is 1' : `are ${dead}`}: see "pod dead list", then replay or drop them.`,
          ),
        ]
      : []),
  ]
}
