import type { Job } from 'bullmq'
import { type DeadDelivery, listDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { addressHostOf } from '../../protocol/address.js'
import { outboxIdOf } from '../outbox/outbox.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'

/** Work that was given up: a failed job of the queue, an outbox row whose job failed, or a delivery to another pod. */
export interface DeadLetter {
  /** `outbox-17`, `delivery-17`, or queue and job as in `inbound-private/42`. */
  readonly id: string
  readonly queue: string
  readonly name: string
  /** Null: the queue was emptied since, and the row does not store it. */
  readonly fault: string | null
  readonly attempts: number | null
  readonly createdAt: Date
  readonly failedAt: Date
}

export interface DeadLetterDetails extends DeadLetter {
  readonly data: unknown
  readonly payload: string | null
  /** The kind of error and its stack, without any values. */
  readonly trace: string | null
}

/** Selects dead letters; without a field, all of them. */
export interface DeadLetterFilter {
  readonly id?: string
  readonly queue?: QueueName
  readonly fault?: string
  /** Only deliveries to this pod. */
  readonly podId?: number
}

export type DeadLetterPod = Pick<Pod, 'db' | 'jobs'>

export interface FoundDeadLetter extends Omit<DeadLetterDetails, 'payload'> {
  readonly outboxId: number | undefined
  readonly deliveryId?: number
  readonly job: Job | undefined
  /** It was given up without its payload, so that it cannot be replayed. */
  readonly isEmpty?: boolean
}

const PAGE = 500
/** The latest first. With a fault, only the latest `examined` of each queue are compared with it. */
export async function listDeadLetters(
  pod: DeadLetterPod,
  filter: DeadLetterFilter = {},
  limit = 100,
  examined = Number.POSITIVE_INFINITY,
): Promise<DeadLetter[]> {
  const deadLetters = await findDeadLetters(pod, filter, filter.fault === undefined ? limit : examined)
  return deadLetters.slice(0, limit).map(({ id, queue, name, fault, attempts, createdAt, failedAt }) => {
    return { id, queue, name, fault, attempts, createdAt, failedAt }
  })
}

export async function showDeadLetter(pod: DeadLetterPod, id: string): Promise<DeadLetterDetails | undefined> {
  const [deadLetter] = await findDeadLetters(pod, { id })
  if (deadLetter === undefined) return undefined
  const { outboxId, job: _, deliveryId: __, isEmpty: ___, ...details } = deadLetter
  const [row] = outboxId === undefined ? [] : await pod.db('outbox').where({ id: outboxId }).select('payload')
  return { ...details, payload: row?.payload ?? null }
}

/** The latest first. */
export async function findDeadLetters(
  pod: DeadLetterPod,
  filter: DeadLetterFilter,
  limit = Number.POSITIVE_INFINITY,
): Promise<FoundDeadLetter[]> {
  const { id, queue, fault, podId } = filter
  const isOfPod = podId !== undefined
  const jobs = isOfPod ? [] : await failedJobs(pod, queue, limit)
  const rows = isOfPod ? [] : await failedRows(pod, filter, limit)
  const deliveries = await foundDeliveries(pod, filter, limit)
  const byRow = new Map(jobs.map((job) => [outboxIdOf(job.data), job]))
  const deadLetters = [
    ...rows.map((row) => deadLetterOfRow(row, byRow.get(row.id))),
    // The job of a deleted row has nothing left to do.
    ...jobs.filter((job) => outboxIdOf(job.data) === undefined).map(deadLetterOfJob),
    ...deliveries.map(deadLetterOfDelivery),
  ]
  return deadLetters
    .filter(
      (deadLetter) => (id === undefined || deadLetter.id === id) && (fault === undefined || deadLetter.fault === fault),
    )
    .sort((one, other) => other.failedAt.getTime() - one.failedAt.getTime())
}

/** Not more of each queue than requested: there may be a hundred thousand. */
async function failedJobs({ jobs }: DeadLetterPod, only: QueueName | undefined, limit: number): Promise<Job[]> {
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
async function failedRows({ db }: DeadLetterPod, { id, queue }: DeadLetterFilter, limit: number): Promise<FailedRow[]> {
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

function deadLetterOfRow(row: FailedRow, job: Job | undefined): FoundDeadLetter {
  const failure = failureOf(job)
  return {
    ...row,
    id: `outbox-${row.id}`,
    ...failure,
    fault: failure.fault ?? faultIn(row.data),
    outboxId: row.id,
    job,
  }
}

/** A row that was given up without a job stores its fault. */
function faultIn(data: unknown): string | null {
  const hasFault = typeof data === 'object' && data !== null && 'fault' in data
  return hasFault && typeof data.fault === 'string' ? data.fault : null
}

function deadLetterOfJob(job: Job): FoundDeadLetter {
  return {
    id: `${job.queueName}/${job.id}`,
    queue: job.queueName,
    name: job.name,
    data: job.data,
    createdAt: new Date(job.timestamp),
    failedAt: new Date(job.finishedOn ?? job.timestamp),
    ...failureOf(job),
    outboxId: undefined,
    job,
  }
}

/** Dead deliveries are listed under the queue that would deliver them. */
async function foundDeliveries(
  { db }: DeadLetterPod,
  { id, queue, fault, podId }: DeadLetterFilter,
  limit: number,
): Promise<readonly DeadDelivery[]> {
  const [, digits] = /^delivery-([0-9]{1,15})$/.exec(id ?? '') ?? []
  const isMeant = (queue === undefined || queue === 'outbound') && (id === undefined || digits !== undefined)
  return isMeant
    ? listDeadDeliveries(db, { id: digits === undefined ? undefined : Number(digits), fault, podId, limit })
    : []
}

function deadLetterOfDelivery(delivery: DeadDelivery): FoundDeadLetter {
  const { id, fault, attempts, createdAt, diedAt, host, port, person, record, guid, verb, status } = delivery
  return {
    id: `delivery-${id}`,
    queue: 'outbound',
    name: 'deliver',
    fault,
    attempts,
    createdAt,
    failedAt: diedAt,
    data: { pod: addressHostOf({ host, port }), person, record, guid, verb, status },
    trace: null,
    deliveryId: id,
    outboxId: undefined,
    job: undefined,
  }
}

function failureOf(job: Job | undefined): Pick<DeadLetterDetails, 'fault' | 'attempts' | 'trace'> {
  return {
    fault: job?.failedReason ?? null,
    attempts: job?.attemptsMade ?? null,
    trace: job?.stacktrace?.at(-1) ?? null,
  }
}
