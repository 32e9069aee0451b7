import { type DeadDelivery, listDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import { formatAddressHost } from '../../protocol/address.js'
import { type JobSummary, readOrigin } from '../bullmq/job-summaries.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'
import {
  compareDeadLetters,
  type DeadLetter,
  type DeadLetterDependencies,
  type DeadLetterFilter,
  type DeadLetterPage,
  keysOfSource,
  NUMERIC_IDS,
  pageOfSource,
  TEXT_IDS,
} from './dead-letter.js'
import { type DeadLetterRow, listDeadLetterRows } from './dead-letter-rows.js'

export interface FoundDeadLetter extends DeadLetter {
  readonly outboxId: number | undefined
  readonly deliveryId?: number
  /** The failed job, also of a row. */
  readonly job: { readonly queue: QueueName; readonly id: string } | undefined
  /** The message was given up without its payload, so that it cannot be replayed. */
  readonly hasNoPayload?: boolean
}

/** Failed jobs that are read at once. */
const JOBS_OF_PAGE = 1_000

/** Lists dead letters without their payloads, the latest first. */
export async function listDeadLetters(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter = {},
  limit = 100,
): Promise<readonly DeadLetter[]> {
  return (await findDeadLetters(services, filter, { limit })).map(withoutStorage)
}

/** The fields of a dead letter that do not say where it is stored. */
export function withoutStorage({
  outboxId: _,
  deliveryId: __,
  job: ___,
  hasNoPayload: ____,
  ...deadLetter
}: FoundDeadLetter): DeadLetter {
  return deadLetter
}

/**
 * Finds a page of dead letters without their payloads. Each source has an index for its part of the page, so that the cost does not
 * depend on the length of the list.
 */
export async function findDeadLetters(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  page: DeadLetterPage,
): Promise<readonly FoundDeadLetter[]> {
  const deadLetters = await Promise.all([
    findRows(services, filter, page),
    findDeliveries(services, filter, page),
    findJobs(services, filter, page),
  ])
  const direction = page.before === undefined && page.after !== undefined ? 1 : -1
  return deadLetters
    .flat()
    .toSorted((one, other) => direction * compareDeadLetters(one, other))
    .slice(0, page.limit)
}

async function findRows(
  { db }: DeadLetterDependencies,
  filter: DeadLetterFilter,
  page: DeadLetterPage,
): Promise<readonly FoundDeadLetter[]> {
  const rows = await listDeadLetterRows(db, filter, pageOfSource('rows', page, filter, NUMERIC_IDS))
  return rows.map(deadLetterOfRow)
}

/** Dead deliveries are listed under the queue that would deliver them. */
async function findDeliveries(
  { db }: DeadLetterDependencies,
  filter: DeadLetterFilter,
  page: DeadLetterPage,
): Promise<readonly FoundDeadLetter[]> {
  const { ids, queue, fault, pod, entity, since, until } = filter
  const keys = ids && keysOfSource(ids, 'deliveries')
  if ((queue !== undefined && queue !== 'outbound') || keys?.length === 0) return []
  const deliveryFilter = { ids: keys?.map(Number), fault, pod, entity, since, until }
  return (await listDeadDeliveries(db, deliveryFilter, pageOfSource('deliveries', page, filter, NUMERIC_IDS))).map(
    deadLetterOfDelivery,
  )
}

/** Failed jobs without a row. Their entity is unknown: only the payload has it. */
async function findJobs(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  page: DeadLetterPage,
): Promise<readonly FoundDeadLetter[]> {
  if (filter.ids !== undefined) return findJobsById(services, filter, filter.ids, page)
  const jobsByQueue = await Promise.all(
    (await listFailedQueues(services, filter)).map(async (queue) => {
      const jobs: FoundDeadLetter[] = []
      for await (const job of failedJobs(services, queue, filter, page)) {
        jobs.push(deadLetterOfJob(queue, job))
        if (jobs.length === page.limit) break
      }
      return jobs
    }),
  )
  return jobsByQueue.flat()
}

/** The given jobs that match and are after the position of the page. */
async function findJobsById(
  services: DeadLetterDependencies,
  filter: DeadLetterFilter,
  ids: readonly string[],
  { before, after }: DeadLetterPage,
): Promise<readonly FoundDeadLetter[]> {
  const deadLetters = await Promise.all(
    queuesOf(filter).flatMap((queue) => keysOfSource(ids, queue).map((key) => findJob(services, filter, queue, key))),
  )
  return deadLetters
    .flat()
    .filter((each) => before === undefined || compareDeadLetters(each, before) < 0)
    .filter((each) => after === undefined || compareDeadLetters(each, after) > 0)
}

async function findJob(
  { jobs }: DeadLetterDependencies,
  filter: DeadLetterFilter,
  queue: QueueName,
  key: string,
): Promise<readonly FoundDeadLetter[]> {
  const job = await jobs.find(queue, key)
  if (job === undefined || !(await job.isFailed())) return []
  const { name, timestamp, finishedOn = null, attemptsMade, failedReason, deduplicationId, progress } = job
  const summary: JobSummary = {
    id: key,
    name,
    addedAt: timestamp,
    finishedAt: finishedOn,
    attempts: attemptsMade,
    fault: failedReason ?? null,
    deduplicationKey: deduplicationId ?? null,
    origin: readOrigin(progress),
  }
  const isOfRow = summary.deduplicationKey?.startsWith('outbox-') === true
  return !isOfRow && isMatch(summary, filter) ? [deadLetterOfJob(queue, summary)] : []
}

/** The queues whose failed jobs may match. */
function queuesOf({ queue, entity }: DeadLetterFilter): readonly QueueName[] {
  if (entity !== undefined) return []
  return queue === undefined ? QUEUES : [queue]
}

/** The queues that have failed jobs, of those that may match. */
export async function listFailedQueues(
  { jobs }: DeadLetterDependencies,
  filter: DeadLetterFilter,
): Promise<readonly QueueName[]> {
  const queues = queuesOf(filter)
  return queues.length > 1 ? jobs.queuesWithFailedJobs() : queues
}

/** The failed jobs of a queue that match, without rows, from a page on to the end of the list. */
async function* failedJobs(
  { jobs }: DeadLetterDependencies,
  queue: QueueName,
  filter: DeadLetterFilter,
  page: DeadLetterPage,
): AsyncGenerator<JobSummary> {
  const { order, startAfter } = pageOfSource(queue, page, filter, TEXT_IDS)
  const limit = Math.min(page.limit, JOBS_OF_PAGE)
  let position = { at: startAfter.at.getTime(), id: startAfter.id }
  for (;;) {
    const { fault, pod } = filter
    const summaries = await jobs.failedWithoutRow(queue, { order, startAfter: position, limit, fault, pod })
    for (const job of summaries) {
      if (isMatch(job, filter)) yield job
    }
    const last = summaries.at(-1)
    const isPast = last !== undefined && isOutside(last, filter, order)
    if (last === undefined || summaries.length < limit || isPast) return
    position = { at: last.finishedAt ?? 0, id: last.id }
  }
}

/** Whether the list has left the times of the filter. */
function isOutside({ finishedAt }: JobSummary, { since, until }: DeadLetterFilter, order: string): boolean {
  const at = finishedAt ?? 0
  if (order === 'newest first') return since !== undefined && at < since.getTime()
  return until !== undefined && at >= until.getTime()
}

function isMatch(
  { fault: own, finishedAt, origin }: JobSummary,
  { fault, pod, since, until }: DeadLetterFilter,
): boolean {
  const at = finishedAt ?? 0
  return (
    (fault === undefined || fault === own) &&
    (pod === undefined || pod === origin.pod) &&
    (since === undefined || at >= since.getTime()) &&
    (until === undefined || at < until.getTime())
  )
}

function deadLetterOfRow(row: DeadLetterRow): FoundDeadLetter {
  const { id, queue, name, fault, pod, entity, guid, attempts, trace, jobId, createdAt, failedAt, hasNoPayload } = row
  const queueOfJob = QUEUES.find((each) => each === queue)
  return {
    id: `outbox-${id}`,
    queue,
    name,
    fault,
    pod,
    entity,
    guid,
    attempts,
    trace,
    createdAt,
    failedAt,
    hasNoPayload,
    outboxId: id,
    job: jobId === null || queueOfJob === undefined ? undefined : { queue: queueOfJob, id: jobId },
  }
}

function deadLetterOfJob(queue: QueueName, job: JobSummary): FoundDeadLetter {
  return {
    id: `${queue}/${job.id}`,
    queue,
    name: job.name,
    fault: job.fault,
    attempts: job.attempts,
    ...job.origin,
    entity: null,
    guid: null,
    createdAt: new Date(job.addedAt),
    failedAt: new Date(job.finishedAt ?? job.addedAt),
    outboxId: undefined,
    job: { queue, id: job.id },
  }
}

function deadLetterOfDelivery(delivery: DeadDelivery): FoundDeadLetter {
  const { id, fault, attempts, createdAt, diedAt, record: entity, guid, trace } = delivery
  return {
    id: `delivery-${id}`,
    queue: 'outbound',
    name: 'deliver',
    fault,
    attempts,
    trace,
    createdAt,
    failedAt: diedAt,
    pod: formatAddressHost(delivery),
    entity,
    guid,
    deliveryId: id,
    outboxId: undefined,
    job: undefined,
  }
}
