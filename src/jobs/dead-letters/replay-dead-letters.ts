import { deleteDeadDeliveries, reviveDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import { inChunks } from '../chunks.js'
import { enqueueDeliveries } from '../outbox/enqueue-deliveries.js'
import { unmarkFailed } from '../outbox/outbox.js'
import { QUEUES } from '../queues/queue-names.js'
import {
  compareDeadLetters,
  type DeadLetterFilter,
  type DeadLetterPod,
  type DeadLetterPosition,
} from './dead-letter.js'
import { type FoundDeadLetter, findDeadLetters } from './find-dead-letters.js'

/** Dead letters that are read at once, without their payloads. */
const LETTER_BATCH_SIZE = 1_000

/** Rows that one statement changes or deletes: a payload may have megabytes, in thousands of pieces. */
const ROW_BATCH_SIZE = 100

/**
 * Runs dead letters again, with all their attempts; returns their number. A job that runs twice has the effect of one run. Dead letters
 * without their payload stay.
 */
export async function replayDeadLetters(pod: DeadLetterPod, filter: DeadLetterFilter = {}): Promise<number> {
  return changeChunks(pod, filter, async (all) => {
    const deadLetters = all.filter(({ isEmpty = false }) => !isEmpty)
    for (const ids of inChunks(deliveriesAmong(deadLetters), ROW_BATCH_SIZE)) await replayDeliveries(pod, ids)
    const ofRows = deadLetters.filter(({ outboxId }) => outboxId !== undefined)
    for (const some of inChunks(ofRows, ROW_BATCH_SIZE)) await replayRows(pod, some)
    for (const { outboxId, deliveryId, job } of deadLetters) {
      if (outboxId === undefined && deliveryId === undefined && job !== undefined) await replayJob(pod, job)
    }
    return deadLetters.length
  })
}

/** Deletes dead letters; returns their number. */
export async function dropDeadLetters(pod: DeadLetterPod, filter: DeadLetterFilter = {}): Promise<number> {
  return changeChunks(pod, filter, async (deadLetters) => {
    for (const ids of inChunks(deliveriesAmong(deadLetters), ROW_BATCH_SIZE)) await deleteDeadDeliveries(pod.db, ids)
    for (const ids of inChunks(rowsAmong(deadLetters), ROW_BATCH_SIZE)) {
      await pod
        .db('outbox')
        .whereIn('id', [...ids])
        .whereNotNull('failedAt')
        .delete()
    }
    await removeJobs(pod, deadLetters)
    return deadLetters.length
  })
}

/**
 * Changes the dead letters that exist now, chunk by chunk, so that none but one chunk is in memory. The oldest come first, which keeps
 * the order of deliveries to a pod; what fails again meanwhile is younger than the end.
 */
async function changeChunks(
  pod: DeadLetterPod,
  filter: DeadLetterFilter,
  change: (deadLetters: readonly FoundDeadLetter[]) => Promise<number>,
): Promise<number> {
  const [end] = await findDeadLetters(pod, filter, { limit: 1 })
  if (end === undefined) return 0
  let changed = 0
  let after: DeadLetterPosition = BEFORE_ALL
  for (;;) {
    const nextLetters = await findDeadLetters(pod, filter, { after, limit: LETTER_BATCH_SIZE })
    const chunk = nextLetters.filter((deadLetter) => compareDeadLetters(deadLetter, end) <= 0)
    if (chunk.length > 0) changed += await change(chunk)
    const last = chunk.at(-1)
    if (last === undefined || chunk.length < LETTER_BATCH_SIZE) return changed
    after = last
  }
}

const BEFORE_ALL: DeadLetterPosition = { id: 'delivery-0', failedAt: new Date(0) }

function rowsAmong(deadLetters: readonly FoundDeadLetter[]): readonly number[] {
  return deadLetters.flatMap(({ outboxId }) => outboxId ?? [])
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
  const ids = rowsAmong(deadLetters)
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
  const failed = deadLetters.flatMap(({ job }) => job ?? [])
  for (const some of inChunks(failed, ROW_BATCH_SIZE)) {
    await Promise.all(some.map(({ queue, id }) => jobs.remove(queue, id)))
  }
}

/** Crashes before the replay must not count against the job: the cause may be repaired. */
function withoutNotes(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || !('suspectStarts' in data)) return data
  const { suspectStarts: _, ...rest } = data
  return rest
}
