import { setTimeout as pause } from 'node:timers/promises'
import type { Pod } from '../../pod/pod.js'
import { probeJob } from '../definitions.js'
import { enqueueJob } from '../outbox/outbox.js'
import type { QueueName } from '../queues/queue-names.js'

const POLL_INTERVAL_MS = 50

/** Sends an empty job through the outbox and each queue; returns the queues on which no worker has run it in time. */
export async function findUnservedQueues(
  pod: Pick<Pod, 'db' | 'jobs'>,
  queues: readonly QueueName[],
  within: number,
): Promise<readonly QueueName[]> {
  const before = await pod.db.transaction(async (transaction) => {
    for (const queue of queues) await enqueueJob(pod, transaction, probeJob(queue), {})
    return transaction('outbox')
      .where({ name: 'probe' })
      .whereIn('queue', [...queues])
      .pluck('id')
  })

  const deadline = Date.now() + within
  let left = await stillThere(pod, before)
  while (left.length > 0 && Date.now() < deadline) {
    await pause(POLL_INTERVAL_MS)
    left = await stillThere(pod, before)
  }
  await pod.db('outbox').whereIn('id', before).delete()
  return queues.filter((queue) => left.includes(queue))
}

async function stillThere(pod: Pick<Pod, 'db'>, ids: readonly number[]): Promise<readonly string[]> {
  return pod
    .db('outbox')
    .whereIn('id', [...ids])
    .pluck('queue')
}
