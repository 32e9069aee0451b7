import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { findTrace } from '../../persistence/database/transactions.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { traceDigits } from '../../persistence/sql/trace.js'
import type { Pod } from '../../pod/pod.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'
import { type AnyJob, type DataOf, dispatchJob, type OutgoingRecord } from '../definitions.js'
import { groupCommit } from '../group-commit.js'
import type { OutboxJob } from '../queues/add-jobs.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'
import { afterCommit } from './after-commit.js'

const HAND_OVER_TIMEOUT_MS = 500
/** The client builds a bulk request at once: some 40 ms for so many jobs. */
const HAND_OVER_BATCH_SIZE = 500

/** A job that was handed over and has no worker by then is lost. */
const SWEPT_AFTER_SECONDS = 5

/** Columns have milliseconds: rounded up, a row would be due only in the next one. */
const NOW = `date_trunc('milliseconds', now())`

/** The input of a handler, and the function that completes the job. */
export interface JobContext<Data = unknown> {
  readonly data: Data
  /** The body of a resumed message, and when the web process accepted it. */
  readonly payload: string | undefined
  readonly acceptedAt: Date | undefined
  /** Of the row; not set: the job has none. */
  readonly outboxId?: number | undefined
  /** The local author of the record of the row. */
  readonly senderId?: number | undefined
  /** Of the request or message that caused the job. */
  readonly trace?: string | undefined
  /**
   * Deletes the outbox row in the transaction of the effect. Throws AlreadyDone, so that everything rolls back, when another worker
   * has done the job meanwhile.
   */
  finish(transaction: Knex.Transaction): Promise<void>
}

export interface LoadedJob extends JobContext {
  readonly outboxId: number | undefined
  /** Deletes the row after a handler without a transaction of its own. */
  finishIfOpen(): Promise<void>
}

/** The outbox row is gone: another worker has done the job. */
export class AlreadyDone extends Error {
  override name = 'AlreadyDone'
}

/** The handler has postponed its work: the row stays, and the sweeper adds the job again. */
export class Postponed extends Error {
  override name = 'Postponed'
}

/** Has the sweeper add a job again after this many seconds. Its handler throws the result, which ends the job without its effect. */
export async function postponed(db: Knex, outboxId: number, seconds: number): Promise<Postponed> {
  await db('outbox')
    .where({ id: outboxId })
    .update({ sweepAt: db.raw(`${NOW} + make_interval(secs => ?)`, [seconds]) })
  return new Postponed('The work is postponed.')
}

/** Stores a job in the transaction of the change that causes it; adds it to the queue after the commit. */
export async function enqueueJob<Definition extends AnyJob>(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  job: Definition,
  data: DataOf<Definition>,
): Promise<void> {
  await enqueueJobsOfKind(pod, transaction, job, [data])
}

interface HandOverOptions {
  /** Milliseconds until the jobs may begin. */
  readonly delay?: number
}

/** The same for any number of jobs of one kind; returns the ids of their rows, in order. */
export async function enqueueJobsOfKind<Definition extends AnyJob>(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  job: Definition,
  all: readonly DataOf<Definition>[],
  handOver: HandOverOptions = {},
): Promise<readonly number[]> {
  return enqueueJobs(
    pod,
    transaction,
    all.map((data) => newJob(job, data)),
    handOver,
  )
}

/** A job with its data. */
export interface NewJob {
  readonly job: AnyJob
  readonly data: unknown
  /** The local person whose rows are dispatched in order. */
  readonly senderId?: number
  /** Seconds until the sweeper adds the job; not set: it is handed over after the commit. */
  readonly dueInSeconds?: number
}

export function newJob<Definition extends AnyJob>(job: Definition, data: DataOf<Definition>): NewJob {
  return { job, data }
}

/** A job that dispatches a record of a local person, after all records they have written before. */
export function newDispatchJob(senderId: number, record: OutgoingRecord): NewJob {
  return { job: dispatchJob, data: record, senderId }
}

/** The same for jobs of any kinds, with one statement. */
export async function enqueueJobs(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  all: readonly NewJob[],
  handOver: HandOverOptions = {},
): Promise<readonly number[]> {
  if (all.length === 0) return []
  const trace = findTrace(transaction)
  const insertedRows = await queryPrepared<{ id: number }>(transaction, 'new-outbox-rows', newOutboxRows, [
    all.map(({ job }) => job.queue),
    all.map(({ job }) => job.name),
    all.map(({ data }) => JSON.stringify(data)),
    all.map(({ senderId }) => senderId ?? null),
    all.map(({ dueInSeconds }) => dueInSeconds ?? SWEPT_AFTER_SECONDS),
    trace,
  ])
  const rows = insertedRows.flatMap(({ id }, index) => {
    const { job, data, dueInSeconds } = all[index] ?? {}
    if (job === undefined || dueInSeconds !== undefined) return []
    return [{ id, queue: job.queue, name: job.name, data, trace, ...handOver }]
  })
  handOverAfter(pod, transaction, rows)
  return insertedRows.map(({ id }) => id)
}

const newOutboxRows = `
  insert into outbox (queue, name, data, sender_id, sweep_at, trace_id)
  select queue, name, data::jsonb, sender_id, ${NOW} + make_interval(secs => due), $6::uuid
  from unnest(${opaqueParam('$1', 'text[]')}, $2::text[], $3::text[], $4::bigint[], $5::integer[])
    with ordinality as row(queue, name, data, sender_id, due, place)
  order by place
  returning id`

/** Runs or adds the jobs of rows that this transaction has written after its commit; the sweeper adds lost ones. */
export const handOverAfter = afterCommit<OutboxJob>(({ jobs }, rows) => {
  const handOver = handOverOf(jobs, () => openHandOver(jobs))
  const others = jobs.directRuns.start(rows, (row) => void handOver([row]).catch(() => {}))
  return others.length === 0 ? Promise.resolve() : handOver(others)
})

type HandOver = (rows: readonly OutboxJob[]) => Promise<void>

const handOverOf = stateByOwner<Pod['jobs'], HandOver>()

/** Rows committed during a hand-over go together in the next one: ten jobs cost PostgreSQL three times as much as one. */
function openHandOver(jobs: Pod['jobs']): HandOver {
  return groupCommit({ atOnce: 1, items: HAND_OVER_BATCH_SIZE }, (rows: readonly OutboxJob[]) =>
    jobs.handOver(rows, { within: HAND_OVER_TIMEOUT_MS }),
  )
}

/** Reads the outbox row of a job; `undefined` when the row is gone, because another worker has done the job. */
export async function loadJob(db: Knex, data: unknown): Promise<LoadedJob | undefined> {
  const outboxId = readOutboxId(data)
  if (outboxId === undefined) {
    return { outboxId, data, payload: undefined, acceptedAt: undefined, finish: doNothing, finishIfOpen: doNothing }
  }
  const [row] = await queryPrepared<OutboxRow>(db, 'outbox-row', outboxRow, [outboxId])
  if (row === undefined) return undefined
  const { payload, acceptedAt, senderId, trace } = row
  return {
    ...jobOfRow(db, outboxId, row.data),
    payload: payload ?? undefined,
    acceptedAt: acceptedAt ?? undefined,
    senderId: senderId ?? undefined,
    trace: trace ?? undefined,
  }
}

/** The job of a row that this process has written, with its data. Whether the row still exists is seen by `finish`. */
export function jobOfRow(db: Knex, outboxId: number, data: unknown, trace?: string | null): LoadedJob {
  let isOpen = true
  return {
    outboxId,
    data,
    payload: undefined,
    acceptedAt: undefined,
    trace: trace ?? undefined,
    async finish(transaction) {
      const deleted = await deleteOutboxRows(transaction, [outboxId])
      if (deleted.size === 0) throw new AlreadyDone('The outbox row is gone.')
      isOpen = false
    },
    async finishIfOpen() {
      if (isOpen) await deleteOutboxRows(db, [outboxId])
    },
  }
}

interface OutboxRow {
  readonly data: unknown
  readonly payload: string | null
  readonly acceptedAt: Date | null
  readonly senderId: number | null
  readonly trace: string | null
}

const outboxRow = `
  select data, payload, accepted_at as "acceptedAt", sender_id as "senderId", ${traceDigits('trace_id')} as trace
  from outbox where id = $1`

/** A row of a sender, locked until the transaction ends. */
interface SenderRow {
  readonly id: number
  readonly data: OutgoingRecord
  readonly trace: string | null
}

/**
 * Locks the oldest row of a sender that is not younger than a given one. Undefined: there is none any more, or the oldest was
 * deleted while this waited for its lock.
 */
export async function lockOldestOfSender(
  transaction: Knex.Transaction,
  senderId: number,
  upTo: number,
  except: readonly number[],
): Promise<SenderRow | undefined> {
  const [row] = await queryPrepared<SenderRow>(transaction, 'oldest-of-sender', oldestOfSender, [
    senderId,
    upTo,
    except,
  ])
  return row
}

const oldestOfSender = `
  select id, data, ${traceDigits('trace_id')} as trace from outbox
  where sender_id = $1 and id <= $2 and failed_at is null and id <> all($3::bigint[])
  order by sender_id, id limit 1
  for update`

export async function isInOutbox(db: Knex, outboxId: number): Promise<boolean> {
  return (await db('outbox').where({ id: outboxId }).first('id')) !== undefined
}

/** True for a record that is not dispatched yet. Its row may be locked by a dispatch that waits for the record. */
export async function isUndispatched(
  transaction: Knex.Transaction,
  senderId: number,
  { record, guid }: { readonly record: string; readonly guid: string },
): Promise<boolean> {
  const row = await transaction('outbox')
    .where({ senderId })
    .whereRaw(`data ->> 'record' = ? and data ->> 'guid' = ?`, [record, guid])
    .first('id')
  return row !== undefined
}

async function doNothing(): Promise<void> {}

/** The outbox row of a resumed message. */
export interface MessageRow {
  readonly id: number
  readonly data: unknown
  readonly payload: string
  readonly acceptedAt: Date
  readonly trace: string | null
}

/** Reads the rows that still exist. */
export async function findMessageRows(db: Knex, ids: readonly number[]): Promise<readonly MessageRow[]> {
  if (ids.length === 0) return []
  return queryPrepared<MessageRow>(db, 'messages-of-rows', messagesOfRows, [ids])
}

const messagesOfRows = `
  select id, data, payload, accepted_at as "acceptedAt", ${traceDigits('trace_id')} as trace
  from unnest(${opaqueParam('$1', 'bigint[]')}) as id join outbox using (id)
  where payload is not null`

/**
 * Deletes rows in the transaction of their effect; returns those that existed, whose work is not done yet. In the order of their ids, as
 * the sweeper: otherwise two transactions could deadlock.
 */
export async function deleteOutboxRows(db: Knex, ids: readonly number[]): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set()
  const rows = await queryPrepared<{ id: number }>(db, 'delete-outbox-rows', deletedRows, [
    ids.toSorted((one, other) => one - other),
  ])
  return new Set(rows.map(({ id }) => id))
}

const deletedRows = `
  delete from outbox using unnest(${opaqueParam('$1', 'bigint[]')}) as done(id) where outbox.id = done.id returning outbox.id`

/** The outbox rows of one or more jobs of a kind, for a handler that does their work together. */
export interface JobGroup<Data> {
  /** Deletes the rows in the transaction of their effect; returns the data of those that no other worker has done. */
  take(transaction: Knex.Transaction): Promise<readonly Data[]>
}

export function groupOfJob<Data>({ data, finish }: JobContext & { readonly data: Data }): JobGroup<Data> {
  return {
    async take(transaction) {
      await finish(transaction)
      return [data]
    },
  }
}

/** A row that this process has written. */
export interface OutboxRowOf<Data> {
  readonly id: number
  readonly data: Data
}

export function groupOfRows<Data>(rows: readonly OutboxRowOf<Data>[]): JobGroup<Data> {
  return {
    async take(transaction) {
      const deletedIds = await deleteOutboxRows(
        transaction,
        rows.map(({ id }) => id),
      )
      return rows.flatMap(({ id, data }) => (deletedIds.has(id) ? [data] : []))
    },
  }
}

export function readOutboxId(data: unknown): number | undefined {
  const isRowsJob = typeof data === 'object' && data !== null && 'outboxId' in data
  return isRowsJob && typeof data.outboxId === 'number' ? data.outboxId : undefined
}

/** How a row was given up. */
export interface RowFailure {
  readonly fault: string
  /** The failed job, which the queue keeps for a while. */
  readonly job?: { readonly id: string | undefined; readonly attempts: number } | undefined
  /** The host of the other pod, where only the payload has it. */
  readonly pod?: string | undefined
}

/**
 * Marks the row of a dead letter: the sweeper skips it until the operator replays it. The failure stays there when the queue is
 * emptied, and no list has to read the job.
 */
export async function markFailed(db: Knex, outboxId: number, { fault, job, pod }: RowFailure): Promise<void> {
  const failure = { ...(job && { job: job.id, attempts: job.attempts }), ...(pod !== undefined && { pod }) }
  await db('outbox')
    .where({ id: outboxId })
    .update({
      failedAt: db.fn.now(),
      data: db.raw('data || ?::jsonb', [JSON.stringify({ fault, failure })]),
    })
}

/** Finds rows that no job has completed in time, the oldest first. */
export async function findOverdueRows(
  transaction: Knex.Transaction,
  queues: readonly QueueName[],
  limit: number,
): Promise<readonly OutboxJob[]> {
  const rows = await transaction('outbox')
    .whereNull('failedAt')
    .where('sweepAt', '<=', transaction.fn.now())
    .whereIn('queue', queues)
    .orderBy('sweepAt')
    .limit(limit)
    .select('id', 'queue', 'name')
  return rows
}

/** Postpones the next sweep of rows whose jobs were added again by a minute. */
export async function postponeSweep(transaction: Knex.Transaction, rows: readonly OutboxJob[]): Promise<void> {
  await transaction.raw(`update outbox set sweep_at = now() + interval '1 minute' where id = any(?)`, [
    rows.map((row) => row.id),
  ])
}

/** Makes every row due now, or those of one queue, after the queue was emptied. */
export async function sweepAllNow(db: Knex, queue?: QueueName): Promise<void> {
  await db('outbox')
    .whereNull('failedAt')
    .modify((query) => queue !== undefined && query.where({ queue }))
    .where('sweepAt', '>', db.fn.now())
    .update({ sweepAt: db.raw(NOW) })
}

/** Removes the mark of a dead letter, so that the sweeper adds the jobs of these rows. */
export async function unmarkFailed(db: Knex, outboxIds: readonly number[]): Promise<void> {
  await db('outbox')
    .whereIn('id', [...outboxIds])
    .update({ failedAt: null, sweepAt: db.raw(NOW), data: db.raw(`data - 'fault' - 'failure'`) })
}

/** Makes rows of unknown queues, written by a newer version, dead letters; otherwise the sweeper would repeat them forever. */
export async function failUnknownQueues(transaction: Knex.Transaction): Promise<void> {
  await transaction('outbox')
    .whereNull('failedAt')
    .whereNotIn('queue', QUEUES)
    .update({ failedAt: transaction.fn.now() })
}
