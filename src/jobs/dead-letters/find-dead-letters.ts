import { type DeadDelivery, listDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { addressHostOf } from '../../protocol/address.js'
import type { JobSummary } from '../bullmq/job-summaries.js'
import { isQueueName, QUEUES, type QueueName } from '../queues/queue-names.js'
import { type FailedRow, listFailedRows } from './failed-rows.js'

/** Work that was given up: a failed job of the queue, an outbox row whose job failed, or a delivery to another pod. */
export interface DeadLetter {
  /** `outbox-17`, `delivery-17`, or queue and job as in `inbound-private/42`. */
  readonly id: string
  readonly queue: string
  readonly name: string
  /** Null: the queue was emptied since, and the row does not store it. */
  readonly fault: string | null
  /** The host of the other pod, and the type and guid of the entity; null where only the payload has them. */
  readonly pod: string | null
  readonly entity: string | null
  readonly guid: string | null
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
  /** `far.example:8443`: only those of this pod, where the pod is known. */
  readonly pod?: string
  /** `post`, `comment` …: only those about such an entity, where it is known. */
  readonly entity?: string
  /** Given up from this time on. */
  readonly since?: Date
  /** Given up before this time. */
  readonly until?: Date
}

export type DeadLetterPod = Pick<Pod, 'db' | 'jobs'>

export interface FoundDeadLetter extends DeadLetter {
  readonly outboxId: number | undefined
  readonly deliveryId?: number
  /** The failed job, also of a row. */
  readonly job: { readonly queue: QueueName; readonly id: string } | undefined
  /** It was given up without its payload, so that it cannot be replayed. */
  readonly isEmpty?: boolean
}

const JOBS_OF_PAGE = 1_000
/** Clocks of workers and database may differ by so much. */
const CLOCK_SKEW_MS = 60_000

/** Lists dead letters without their payloads, the latest first. */
export async function listDeadLetters(
  pod: DeadLetterPod,
  filter: DeadLetterFilter = {},
  limit = 100,
): Promise<readonly DeadLetter[]> {
  return (await findDeadLetters(pod, filter, limit)).slice(0, limit).map(withoutPlace)
}

function withoutPlace({ outboxId: _, deliveryId: __, job: ___, isEmpty: ____, ...deadLetter }: FoundDeadLetter) {
  return deadLetter
}

/** Shows one with its data. */
export async function showDeadLetter(pod: DeadLetterPod, id: string): Promise<DeadLetterDetails | undefined> {
  const [deadLetter] = await findDeadLetters(pod, { id }, 1)
  if (deadLetter === undefined) return undefined
  const { outboxId, deliveryId, job } = deadLetter
  const [row, failed, [delivery]] = await Promise.all([
    outboxId === undefined
      ? undefined
      : pod.db('outbox').where({ id: outboxId }).first(pod.db.raw(`data - 'fault' as data`), 'payload'),
    job && pod.jobs.find(job.queue, job.id),
    deliveryId === undefined ? [] : listDeadDeliveries(pod.db, { id: deliveryId, limit: 1 }),
  ])
  return {
    ...withoutPlace(deadLetter),
    data: row?.data ?? (delivery ? targetOf(delivery) : failed?.data),
    payload: row?.payload ?? null,
    trace: failed?.stacktrace?.at(-1) ?? null,
  }
}

/** The latest first. Of each source at most `limit` are found. */
export async function findDeadLetters(
  pod: DeadLetterPod,
  filter: DeadLetterFilter,
  limit = Number.POSITIVE_INFINITY,
): Promise<FoundDeadLetter[]> {
  const rows = await listFailedRows(pod.db, filter, limit)
  const { ofRows, others } = await failedJobs(pod.jobs, filter, rows, limit)
  const deliveries = await foundDeliveries(pod, filter, limit)
  return [
    ...rows.map((row) => deadLetterOfRow(row, ofRows.get(row.id))),
    ...others.map(({ queue, job }) => deadLetterOfJob(queue, job)),
    ...deliveries.map(deadLetterOfDelivery),
  ].sort((one, other) => other.failedAt.getTime() - one.failedAt.getTime())
}

interface FailedJob {
  readonly queue: QueueName
  readonly job: JobSummary
}

/** The failed jobs of these rows, and those without a row that match. The job of a deleted row has nothing left to do. */
async function failedJobs(
  jobs: DeadLetterPod['jobs'],
  filter: DeadLetterFilter,
  rows: readonly FailedRow[],
  limit: number,
): Promise<{ readonly ofRows: ReadonlyMap<number, FailedJob>; readonly others: readonly FailedJob[] }> {
  const wanted = new Set(rows.map(({ id }) => id))
  const ofRows = new Map<number, FailedJob>()
  const others: FailedJob[] = []
  const from = oldestWanted(filter, rows, limit)
  const [, ofJob, jobId] = /^([a-z-]+)\/(.+)$/.exec(filter.id ?? '') ?? []
  for (const queue of queuesOf(filter, ofJob, rows)) {
    let found = 0
    for await (const job of listFailed(jobs, queue)) {
      if ((job.finishedAt ?? 0) < from) break
      const outboxId = rowOf(job)
      if (outboxId !== undefined) {
        if (wanted.has(outboxId)) ofRows.set(outboxId, { queue, job })
      } else if (matches(job, filter) && (filter.id === undefined || job.id === jobId)) {
        others.push({ queue, job })
        found += 1
        if (found >= limit) break
      }
    }
  }
  return { ofRows, others }
}

/** Jobs that failed before this time, in milliseconds, are not needed: `limit` rows are later. */
function oldestWanted({ since }: DeadLetterFilter, rows: readonly FailedRow[], limit: number): number {
  const oldestRow = rows[limit - 1]?.failedAt.getTime()
  return Math.max(since?.getTime() ?? 0, oldestRow === undefined ? 0 : oldestRow - CLOCK_SKEW_MS)
}

/** The queues with jobs that may match. Without its payload the job of a message does not show its pod or entity. */
function queuesOf(
  { id, queue, pod, entity }: DeadLetterFilter,
  ofJob: string | undefined,
  rows: readonly FailedRow[],
): readonly QueueName[] {
  if (ofJob !== undefined) return isQueueName(ofJob) ? [ofJob] : []
  if (id !== undefined || pod !== undefined || entity !== undefined) {
    return QUEUES.filter((name) => rows.some((row) => row.queue === name))
  }
  return queue === undefined ? QUEUES : [queue]
}

/** All failed jobs of a queue, the latest first. */
export async function* listFailed(jobs: DeadLetterPod['jobs'], queue: QueueName): AsyncGenerator<JobSummary> {
  for (let from = 0; ; from += JOBS_OF_PAGE) {
    const page = await jobs.list(queue, 'failed', from, JOBS_OF_PAGE)
    yield* page
    if (page.length < JOBS_OF_PAGE) return
  }
}

export function matches({ fault: own, finishedAt }: JobSummary, filter: DeadLetterFilter): boolean {
  const { fault, pod, entity, since, until } = filter
  const at = finishedAt ?? 0
  return (
    pod === undefined &&
    entity === undefined &&
    (fault === undefined || fault === own) &&
    (since === undefined || at >= since.getTime()) &&
    (until === undefined || at < until.getTime())
  )
}

/** The row of a job, by the unique name that the outbox gives it. */
export function rowOf({ uniqueName }: JobSummary): number | undefined {
  const [, digits] = /^outbox-([0-9]{1,15})$/.exec(uniqueName ?? '') ?? []
  return digits === undefined ? undefined : Number(digits)
}

function deadLetterOfRow(row: FailedRow, found: FailedJob | undefined): FoundDeadLetter {
  const { id, queue, name, pod, entity, guid, createdAt, failedAt, isEmpty } = row
  return {
    ...{ id: `outbox-${id}`, queue, name, pod, entity, guid, createdAt, failedAt, isEmpty },
    fault: row.fault ?? found?.job.fault ?? null,
    attempts: found?.job.attempts ?? null,
    outboxId: id,
    job: found && { queue: found.queue, id: found.job.id },
  }
}

function deadLetterOfJob(queue: QueueName, job: JobSummary): FoundDeadLetter {
  return {
    ...{ id: `${queue}/${job.id}`, queue, name: job.name, fault: job.fault, attempts: job.attempts },
    ...{ pod: null, entity: null, guid: null },
    createdAt: new Date(job.addedAt),
    failedAt: new Date(job.finishedAt ?? job.addedAt),
    outboxId: undefined,
    job: { queue, id: job.id },
  }
}

/** Dead deliveries are listed under the queue that would deliver them. */
async function foundDeliveries(
  { db }: DeadLetterPod,
  { id, queue, fault, pod, entity, since, until }: DeadLetterFilter,
  limit: number,
): Promise<readonly DeadDelivery[]> {
  const [, digits] = /^delivery-([0-9]{1,15})$/.exec(id ?? '') ?? []
  const isMeant = (queue === undefined || queue === 'outbound') && (id === undefined || digits !== undefined)
  if (!isMeant) return []
  return listDeadDeliveries(db, {
    ...{ id: digits === undefined ? undefined : Number(digits), fault, pod, entity, since, until, limit },
  })
}

function deadLetterOfDelivery(delivery: DeadDelivery): FoundDeadLetter {
  const { id, fault, attempts, createdAt, diedAt, record: entity, guid } = delivery
  return {
    ...{ id: `delivery-${id}`, queue: 'outbound', name: 'deliver', fault, attempts, createdAt, failedAt: diedAt },
    ...{ pod: addressHostOf(delivery), entity, guid },
    deliveryId: id,
    outboxId: undefined,
    job: undefined,
  }
}

function targetOf(delivery: DeadDelivery) {
  const { person, record, guid, verb, status } = delivery
  return { pod: addressHostOf(delivery), person, record, guid, verb, status }
}
