import type { Knex } from 'knex'
import { deleteDeadDeliveries, reviveDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import { inChunks } from '../chunks.js'
import { reopenRows } from '../outbox/give-up-rows.js'
import { runOrAddAfterCommit } from '../outbox/run-or-add.js'
import { startDeliveriesAfterCommit } from '../outbox/start-deliveries.js'
import { QUEUES } from '../queues/queue-names.js'
import {
  compareDeadLetters,
  type DeadLetterDependencies,
  type DeadLetterFilter,
  type DeadLetterPosition,
} from './dead-letter.js'
import { type FoundDeadLetter, findDeadLetters } from './find-dead-letters.js'

/** Dead letters that one transaction changes. They are read without their payloads. */
export const DEAD_LETTERS_OF_CHUNK = 1_000

/** Rows that one statement changes or deletes: a payload may have megabytes, in thousands of pieces. */
const ROW_BATCH_SIZE = 100

/** Runs dead letters again, with all their attempts (a delivery older than 14 days has one), or deletes them. */
export type DeadLetterWork = 'replay' | 'drop'

/** The dead letters that existed when the work began: those that fail again in the meantime are younger than the end. */
export interface DeadLetterRange {
  readonly after: DeadLetterPosition
  readonly end: DeadLetterPosition
}

/** The dead letters of a range that match a filter. */
export interface DeadLetterChoice {
  readonly filter: DeadLetterFilter
  readonly range: DeadLetterRange
}

interface DeadLetterChunk {
  readonly changed: number
  /** Dead letters without their payload are not replayed. */
  readonly skipped: number
  /** The dead letters after them; undefined: nothing is left. */
  readonly rest: DeadLetterRange | undefined
}

/** All dead letters up to the youngest that matches; undefined: none matches. */
export async function findDeadLetterRange(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
): Promise<DeadLetterRange | undefined> {
  const [youngest] = await findDeadLetters(services, filter, { limit: 1 })
  if (youngest === undefined) return undefined
  return { after: BEFORE_ALL, end: { id: youngest.id, failedAt: youngest.failedAt } }
}

const BEFORE_ALL: DeadLetterPosition = { id: 'delivery-0', failedAt: new Date(0) }

/**
 * Changes the oldest chunk of a range in a transaction, which keeps the order of deliveries to a pod. A job that runs twice has the
 * effect of one run. Failed jobs are not rows: they stay changed after a rollback, and a repeated chunk does not find them again.
 */
export async function changeDeadLetters(
  services: Pick<DeadLetterDependencies, 'jobs'>,
  transaction: Knex.Transaction,
  work: DeadLetterWork,
  { filter, range: { after, end } }: DeadLetterChoice,
): Promise<DeadLetterChunk> {
  const source = { db: transaction, jobs: services.jobs }
  const oldestDeadLetters = await findDeadLetters(source, filter, { after, limit: DEAD_LETTERS_OF_CHUNK })
  const chunk = oldestDeadLetters.filter((each) => compareDeadLetters(each, end) <= 0)
  const chunkToChange = work === 'replay' ? chunk.filter(({ hasNoPayload = false }) => !hasNoPayload) : chunk
  if (chunkToChange.length > 0) await CHANGES[work](services, transaction, chunkToChange)
  const last = chunk.at(-1)
  const hasMore = last !== undefined && chunk.length === DEAD_LETTERS_OF_CHUNK
  const rest = hasMore ? { after: { id: last.id, failedAt: last.failedAt }, end } : undefined
  return { changed: chunkToChange.length, skipped: chunk.length - chunkToChange.length, rest }
}

const CHANGES = { replay, drop } as const

async function replay(
  services: Pick<DeadLetterDependencies, 'jobs'>,
  transaction: Knex.Transaction,
  deadLetters: readonly FoundDeadLetter[],
): Promise<void> {
  for (const ids of inChunks(deliveriesAmong(deadLetters), ROW_BATCH_SIZE)) {
    const podIds = await reviveDeliveries(transaction, ids)
    const duePods = podIds.map((podId) => ({ podId, isProven: false }))
    startDeliveriesAfterCommit(services, transaction, duePods)
  }
  const deadRows = deadLetters.filter(({ outboxId }) => outboxId !== undefined)
  for (const chunk of inChunks(deadRows, ROW_BATCH_SIZE)) await replayRows(services, transaction, chunk)
  for (const { outboxId, deliveryId, job } of deadLetters) {
    if (outboxId === undefined && deliveryId === undefined && job !== undefined) await replayJob(services, job)
  }
}

async function drop(
  services: Pick<DeadLetterDependencies, 'jobs'>,
  transaction: Knex.Transaction,
  deadLetters: readonly FoundDeadLetter[],
): Promise<void> {
  for (const ids of inChunks(deliveriesAmong(deadLetters), ROW_BATCH_SIZE)) await deleteDeadDeliveries(transaction, ids)
  for (const ids of inChunks(rowsAmong(deadLetters), ROW_BATCH_SIZE)) {
    await transaction('outbox')
      .whereIn('id', [...ids])
      .whereNotNull('failedAt')
      .delete()
  }
  await removeJobs(services, deadLetters)
}

function rowsAmong(deadLetters: readonly FoundDeadLetter[]): readonly number[] {
  return deadLetters.flatMap(({ outboxId }) => outboxId ?? [])
}

function deliveriesAmong(deadLetters: readonly FoundDeadLetter[]): readonly number[] {
  return deadLetters.flatMap(({ deliveryId }) => deliveryId ?? [])
}

/** The sweeper adds the jobs of rows that the queue does not accept. */
async function replayRows(
  services: Pick<DeadLetterDependencies, 'jobs'>,
  transaction: Knex.Transaction,
  deadLetters: readonly FoundDeadLetter[],
): Promise<void> {
  await reopenRows(transaction, rowsAmong(deadLetters))
  await removeJobs(services, deadLetters)
  const rows = deadLetters.flatMap(({ outboxId, queue, name }) => {
    const knownQueue = QUEUES.find((each) => each === queue)
    return knownQueue === undefined || outboxId === undefined ? [] : [{ id: outboxId, queue: knownQueue, name }]
  })
  runOrAddAfterCommit(services, transaction, rows)
}

async function replayJob({ jobs }: Pick<DeadLetterDependencies, 'jobs'>, { queue, id }: FailedJobId): Promise<void> {
  const job = await jobs.find(queue, id)
  if (job === undefined) return // another replay was faster
  await job.updateData(withoutSuspectStarts(job.data))
  await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
}

type FailedJobId = NonNullable<FoundDeadLetter['job']>

async function removeJobs(
  { jobs }: Pick<DeadLetterDependencies, 'jobs'>,
  deadLetters: readonly FoundDeadLetter[],
): Promise<void> {
  const failed = deadLetters.flatMap(({ job }) => job ?? [])
  for (const chunk of inChunks(failed, ROW_BATCH_SIZE)) {
    await Promise.all(chunk.map(({ queue, id }) => jobs.remove(queue, id)))
  }
}

/** Crashes before the replay must not count against the job: the cause may be repaired. */
function withoutSuspectStarts(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || !('suspectStarts' in data)) return data
  const { suspectStarts: _, ...rest } = data
  return rest
}
