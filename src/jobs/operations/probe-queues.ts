import { setTimeout as pause } from 'node:timers/promises'
import type { Services } from '../../services/services.js'
import { probeJob } from '../definitions.js'
import { enqueueJob } from '../outbox/enqueue-jobs.js'
import type { QueueName } from '../queues/queue-names.js'

const POLL_INTERVAL_MS = 50

/** Sends an empty job through the outbox and each queue; returns the queues on which no worker has run it in time. */
export async function findUnservedQueues(
  services: Pick<Services, 'db' | 'jobs'>,
  queues: readonly QueueName[],
  withinMs: number,
): Promise<readonly QueueName[]> {
  const before = await services.db.transaction(async (transaction) => {
    for (const queue of queues) await enqueueJob(services, transaction, probeJob(queue), {})
    return transaction('outbox')
      .where({ name: 'probe' })
      .whereIn('queue', [...queues])
      .pluck('id')
  })

  const deadline = Date.now() + withinMs
  let pendingQueues = await findPendingProbes(services, before)
  while (pendingQueues.length > 0 && Date.now() < deadline) {
    await pause(POLL_INTERVAL_MS)
    pendingQueues = await findPendingProbes(services, before)
  }
  await services.db('outbox').whereIn('id', before).delete()
  return queues.filter((queue) => pendingQueues.includes(queue))
}

async function findPendingProbes(services: Pick<Services, 'db'>, ids: readonly number[]): Promise<readonly string[]> {
  return services
    .db('outbox')
    .whereIn('id', [...ids])
    .pluck('queue')
}
