import type { Job } from 'bullmq'
import {
  type DeadDelivery,
  deleteDeadDeliveries,
  listDeadDeliveries,
  reviveDeliveries,
} from '../../persistence/outbound/dead-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { enqueueDeliveries } from '../outbox/enqueue-deliveries.js'
import { outboxIdOf, unmarkFailed } from '../outbox/outbox.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'

/** Work that was given up: a failed job of the queue, an outbox row whose job failed, or a delivery to another pod. */
export interface DeadLetter {
  /** `outbox-17`, `delivery-17`, or queue and job as in `inbound-private/42`. */
  readonly id: string
  readonly queue: string
  readonly name: string
  /** Null: the queue was emptied since and only the row knows. */
  readonly fault: string | null
  readonly attempts: number | null
  readonly createdAt: Date
  readonly failedAt: Date
}

export interface DeadLetterDetails extends DeadLetter {
  readonly data: unknown
  readonly payload: string | null
  /** What it died of: the kind of error and the way to it, without any values. */
  readonly trace: string | null
}

/** Which letters are meant; with nothing said, all of them. */
export interface DeadLetterFilter {
  readonly id?: string
  readonly queue?: QueueName
  readonly fault?: string
}

type Pieces = Pick<Pod, 'db' | 'jobs'>

interface FoundLetter extends Omit<DeadLetterDetails, 'payload'> {
  readonly outboxId: number | undefined
  readonly deliveryId?: number
  readonly job: Job | undefined
  /** It was given up without its payload, so that there is nothing to run again. */
  readonly isEmpty?: boolean
}

const PAGE = 500
/** Rows that one statement changes or deletes: a payload may have megabytes, in thousands of pieces. */
const ROWS_AT_ONCE = 100

/** The latest first. */
export async function listDeadLetters(pod: Pieces, filter: DeadLetterFilter = {}, limit = 100): Promise<DeadLetter[]> {
  const letters = await find(pod, filter, filter.fault === undefined ? limit : Number.POSITIVE_INFINITY)
  return letters.slice(0, limit).map(({ id, queue, name, fault, attempts, createdAt, failedAt }) => {
    return { id, queue, name, fault, attempts, createdAt, failedAt }
  })
}

export async function showDeadLetter(pod: Pieces, id: string): Promise<DeadLetterDetails | undefined> {
  const [letter] = await find(pod, { id })
  if (letter === undefined) return undefined
  const { outboxId, job: _, deliveryId: __, isEmpty: ___, ...details } = letter
  const [row] = outboxId === undefined ? [] : await pod.db('outbox').where({ id: outboxId }).select('payload')
  return { ...details, payload: row?.payload ?? null }
}

/**
 * Lets them run once more, with all their attempts; returns how many. Whatever happens then has the effect of one run. What was
 * kept without its payload stays where it is.
 */
export async function replayDeadLetters(pod: Pieces, filter: DeadLetterFilter = {}): Promise<number> {
  const letters = (await find(pod, filter)).filter(({ isEmpty = false }) => !isEmpty)
  for (const ids of chunksOf(deliveriesAmong(letters))) await replayDeliveries(pod, ids)
  for (const some of chunksOf(letters.filter(({ outboxId }) => outboxId !== undefined))) await replayRows(pod, some)
  for (const { outboxId, deliveryId, job } of letters) {
    if (outboxId === undefined && deliveryId === undefined) await replayJob(job)
  }
  return letters.length
}

/** Forgets them for good; returns how many. */
export async function dropDeadLetters(pod: Pieces, filter: DeadLetterFilter = {}): Promise<number> {
  const letters = await find(pod, filter)
  for (const ids of chunksOf(deliveriesAmong(letters))) await deleteDeadDeliveries(pod.db, ids)
  for (const ids of chunksOf(letters.flatMap(({ outboxId }) => outboxId ?? []))) {
    await pod
      .db('outbox')
      .whereIn('id', [...ids])
      .whereNotNull('failedAt')
      .delete()
  }
  for (const { job } of letters) await job?.remove()
  return letters.length
}

function chunksOf<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const count = Math.ceil(items.length / ROWS_AT_ONCE)
  return Array.from({ length: count }, (_, index) => items.slice(index * ROWS_AT_ONCE, (index + 1) * ROWS_AT_ONCE))
}

function deliveriesAmong(letters: readonly FoundLetter[]): readonly number[] {
  return letters.flatMap(({ deliveryId }) => deliveryId ?? [])
}

async function replayDeliveries(pod: Pieces, ids: readonly number[]): Promise<void> {
  const pods = await reviveDeliveries(pod.db, ids)
  const duePods = pods.map((podId) => ({ podId, proven: false }))
  await enqueueDeliveries(pod, duePods).catch(() => {}) // the sweeper finds them too
}

async function replayRows(pod: Pieces, letters: readonly FoundLetter[]): Promise<void> {
  // The rows come first: whatever becomes of the rest, nothing is lost.
  const ids = letters.flatMap(({ outboxId }) => outboxId ?? [])
  await unmarkFailed(pod.db, ids)
  for (const { job } of letters) await job?.remove()
  const rows = letters.flatMap(({ outboxId, queue, name }) => {
    const known = QUEUES.find((each) => each === queue)
    return known === undefined || outboxId === undefined ? [] : [{ id: outboxId, queue: known, name }]
  })
  await pod.jobs.handOver(rows).catch(() => {})
}

async function replayJob(job: Job | undefined): Promise<void> {
  if (job === undefined) return
  await job.updateData(withoutNotes(job.data))
  await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
}

/** Unclean starts of the past must not count when the cause has been repaired. */
function withoutNotes(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || !('suspectStarts' in data)) return data
  const { suspectStarts: _, ...rest } = data
  return rest
}

async function find(pod: Pieces, filter: DeadLetterFilter, limit = Number.POSITIVE_INFINITY): Promise<FoundLetter[]> {
  const { id, queue, fault } = filter
  const jobs = await failedJobs(pod, queue, limit)
  const rows = await failedRows(pod, filter, limit)
  const deliveries = await foundDeliveries(pod, filter, limit)
  const byRow = new Map(jobs.map((job) => [outboxIdOf(job.data), job]))
  const letters = [
    ...rows.map((row) => letterOfRow(row, byRow.get(row.id))),
    // The job of a row that is gone has nothing left to do.
    ...jobs.filter((job) => outboxIdOf(job.data) === undefined).map(letterOfJob),
    ...deliveries.map(letterOfDelivery),
  ]
  return letters
    .filter((letter) => (id === undefined || letter.id === id) && (fault === undefined || letter.fault === fault))
    .sort((one, other) => other.failedAt.getTime() - one.failedAt.getTime())
}

/** No more of each queue than are wanted: they may be a hundred thousand. */
async function failedJobs({ jobs }: Pieces, only: QueueName | undefined, limit: number): Promise<Job[]> {
  const found: Job[] = []
  for (const queue of only === undefined ? QUEUES : [only]) {
    for (let from = 0; from < limit; from += PAGE) {
      const page = await jobs.failed(queue, from, PAGE)
      found.push(...page)
      if (page.length < PAGE) break
    }
  }
  return found
}

interface FailedRow {
  readonly id: number
  readonly queue: string
  readonly name: string
  readonly data: unknown
  readonly isEmpty: boolean
  readonly createdAt: Date
  readonly failedAt: Date
}

/** Without their payloads, which may be gigabytes together. */
async function failedRows({ db }: Pieces, { id, queue }: DeadLetterFilter, limit: number): Promise<FailedRow[]> {
  const [, digits] = /^outbox-([0-9]{1,15})$/.exec(id ?? '') ?? []
  if (id !== undefined && digits === undefined) return []
  return db('outbox')
    .whereNotNull('failedAt')
    .modify((query) => queue !== undefined && query.where({ queue }))
    .modify((query) => digits !== undefined && query.where({ id: Number(digits) }))
    .orderBy('failedAt', 'desc')
    .orderBy('id', 'desc')
    .modify((query) => limit !== Number.POSITIVE_INFINITY && query.limit(limit))
    .select('id', 'queue', 'name', 'data', 'createdAt', 'failedAt')
    .select({ isEmpty: db.raw(`payload is null and name in ('receive-public', 'receive-private')`) })
}

function letterOfRow(row: FailedRow, job: Job | undefined): FoundLetter {
  const fate = fateOf(job)
  return { ...row, id: `outbox-${row.id}`, ...fate, fault: fate.fault ?? faultIn(row.data), outboxId: row.id, job }
}

/** A row that was given up without a job says itself why. */
function faultIn(data: unknown): string | null {
  const hasFault = typeof data === 'object' && data !== null && 'fault' in data
  return hasFault && typeof data.fault === 'string' ? data.fault : null
}

function letterOfJob(job: Job): FoundLetter {
  return {
    id: `${job.queueName}/${job.id}`,
    queue: job.queueName,
    name: job.name,
    data: job.data,
    createdAt: new Date(job.timestamp),
    failedAt: new Date(job.finishedOn ?? job.timestamp),
    ...fateOf(job),
    outboxId: undefined,
    job,
  }
}

/** They belong to the queue whose jobs would deliver them. */
async function foundDeliveries(
  { db }: Pieces,
  { id, queue, fault }: DeadLetterFilter,
  limit: number,
): Promise<readonly DeadDelivery[]> {
  const [, digits] = /^delivery-([0-9]{1,15})$/.exec(id ?? '') ?? []
  const isMeant = (queue === undefined || queue === 'outbound') && (id === undefined || digits !== undefined)
  return isMeant ? listDeadDeliveries(db, { id: digits === undefined ? undefined : Number(digits), fault, limit }) : []
}

function letterOfDelivery(delivery: DeadDelivery): FoundLetter {
  const { id, fault, attempts, createdAt, diedAt, host, port, person, record, guid, verb, status } = delivery
  return {
    id: `delivery-${id}`,
    queue: 'outbound',
    name: 'deliver',
    fault,
    attempts,
    createdAt,
    failedAt: diedAt,
    data: { pod: port === 443 ? host : `${host}:${port}`, person, record, guid, verb, status },
    trace: null,
    deliveryId: id,
    outboxId: undefined,
    job: undefined,
  }
}

function fateOf(job: Job | undefined): Pick<DeadLetterDetails, 'fault' | 'attempts' | 'trace'> {
  return {
    fault: job?.failedReason ?? null,
    attempts: job?.attemptsMade ?? null,
    trace: job?.stacktrace?.at(-1) ?? null,
  }
}
