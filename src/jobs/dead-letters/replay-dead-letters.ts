import { deleteDeadDeliveries, reviveDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import { inChunks } from '../chunks.js'
import { enqueueDeliveries } from '../outbox/enqueue-deliveries.js'
import { unmarkFailed } from '../outbox/outbox.js'
import { QUEUES } from '../queues/queue-names.js'
import {
  type DeadLetterFilter,
  type DeadLetterPod,
  type FoundDeadLetter,
  findDeadLetters,
} from './find-dead-letters.js'

/** Rows that one statement changes or deletes: a payload may have megabytes, in thousands of pieces. */
const ROWS_AT_ONCE = 100

/**
 * Runs dead letters again, with all their attempts; returns their number. A job that runs twice has the effect of one run. Dead letters
 * without their payload stay.
 */
export async function replayDeadLetters(pod: DeadLetterPod, filter: DeadLetterFilter = {}): Promise<number> {
  const deadLetters = (await findDeadLetters(pod, filter)).filter(({ isEmpty = false }) => !isEmpty)
  for (const ids of inChunks(deliveriesAmong(deadLetters), ROWS_AT_ONCE)) await replayDeliveries(pod, ids)
  for (const some of inChunks(
    deadLetters.filter(({ outboxId }) => outboxId !== undefined),
    ROWS_AT_ONCE,
  ))
    await replayRows(pod, some)
  for (const { outboxId, deliveryId, job } of deadLetters) {
    if (outboxId === undefined && deliveryId === undefined && job !== undefined) await replayJob(pod, job)
  }
  return deadLetters.length
}

/** Deletes dead letters; returns their number. */
export async function dropDeadLetters(pod: DeadLetterPod, filter: DeadLetterFilter = {}): Promise<number> {
  const deadLetters = await findDeadLetters(pod, filter)
  for (const ids of inChunks(deliveriesAmong(deadLetters), ROWS_AT_ONCE)) await deleteDeadDeliveries(pod.db, ids)
  for (const ids of inChunks(
    deadLetters.flatMap(({ outboxId }) => outboxId ?? []),
    ROWS_AT_ONCE,
  )) {
    await pod
      .db('outbox')
      .whereIn('id', [...ids])
      .whereNotNull('failedAt')
      .delete()
  }
  await removeJobs(pod, deadLetters)
  return deadLetters.length
}

function deliveriesAmong(deadLetters: readonly FoundDeadLetter[]): readonly number[] {
  return deadLetters.flatMap(({ deliveryId }) => deliveryId ?? [])
}

async function replayDeliveries(pod: DeadLetterPod, ids: readonly number[]): Promise<void> {
  const pods = await reviveDeliveries(pod.db, ids)
  const duePods = pods.map((podId) => ({ podId, proven: false }))
  await enqueueDeliveries(pod, duePods).catch(() => {}) // the sweeper finds them too
}

async function replayRows(pod: DeadLetterPod, deadLetters: readonly FoundDeadLetter[]): Promise<void> {
  // The rows come first: when a later step fails, the sweeper adds the jobs.
  const ids = deadLetters.flatMap(({ outboxId }) => outboxId ?? [])
  await unmarkFailed(pod.db, ids)
  await removeJobs(pod, deadLetters)
  const rows = deadLetters.flatMap(({ outboxId, queue, name }) => {
    const known = QUEUES.find((each) => each === queue)
    return known === undefined || outboxId === undefined ? [] : [{ id: outboxId, queue: known, name }]
  })
  await pod.jobs.handOver(rows).catch(() => {})
}

async function replayJob({ jobs }: DeadLetterPod, { queue, id }: FailedJobId): Promise<void> {
  const job = await jobs.find(queue, id)
  if (job === undefined) return // another replay was faster
  await job.updateData(withoutNotes(job.data))
  await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
}

type FailedJobId = NonNullable<FoundDeadLetter['job']>

async function removeJobs({ jobs }: DeadLetterPod, deadLetters: readonly FoundDeadLetter[]): Promise<void> {
  for (const { job } of deadLetters) if (job !== undefined) await jobs.remove(job.queue, job.id)
}

/** Crashes before the replay must not count against the job: the cause may be repaired. */
function withoutNotes(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || !('suspectStarts' in data)) return data
  const { suspectStarts: _, ...rest } = data
  return rest
}
