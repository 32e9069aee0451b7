import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import type { Pod } from '../../pod/pod.js'
import { type AnyJob, type DataOf, dispatchJob, type OutgoingRecord } from '../definitions.js'
import { groupCommit } from '../group-commit.js'
import type { OutboxJob } from '../queues/add-jobs.js'
import { QUEUES, type QueueName } from '../queues/queue-names.js'
import { afterCommit } from './after-commit.js'

const HAND_OVER_WITHIN = 500
/** So many are made up in one go, some 40 ms. */
const HANDED_OVER_AT_ONCE = 500

/** Columns have milliseconds: rounded up, a row would be due only in the next one. */
const NOW = `date_trunc('milliseconds', now())`

/** What a handler is given to do, and the way to say that it is done. */
export interface Work<Data = unknown> {
  readonly data: Data
  /** The body of a message that waited, and when the web process accepted it. */
  readonly payload: string | undefined
  readonly acceptedAt: Date | undefined
  /** Of the row; not set: the job has none. */
  readonly outboxId?: number | undefined
  /** The person of this pod who has written what the row is about. */
  readonly senderId?: number | undefined
  /**
   * Deletes the outbox row in the transaction of the effect. Throws AlreadyDone, so that everything rolls back, when
   * somebody else has done the work meanwhile.
   */
  finish(transaction: Knex.Transaction): Promise<void>
}

export interface TakenWork extends Work {
  readonly outboxId: number | undefined
  /** Deletes the row of a handler that had no transaction of its own to do it in. */
  finishIfOpen(): Promise<void>
}

/** The outbox row is gone: the work has been done by another worker. */
export class AlreadyDone extends Error {
  override name = 'AlreadyDone'
}

/** Stores what must follow from a change in the change's own transaction; the queue gets it after the commit. */
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

/** Something to do, whatever it is. */
export interface NewJob {
  readonly job: AnyJob
  readonly data: unknown
  /** The person of this pod whose rows are dispatched in order. */
  readonly senderId?: number
}

export function newJob<Definition extends AnyJob>(job: Definition, data: DataOf<Definition>): NewJob {
  return { job, data }
}

/** Has records of one person of this pod sent to other pods, after all that they have written before. */
export function newDispatchJob(senderId: number, record: OutgoingRecord): NewJob {
  return { job: dispatchJob, data: record, senderId }
}

/** The same for jobs of any kinds: what is written together is one statement. */
export async function enqueueJobs(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  all: readonly NewJob[],
  handOver: HandOverOptions = {},
): Promise<readonly number[]> {
  if (all.length === 0) return []
  const written = await queryPrepared<{ id: number }>(transaction, 'new-work', newWork, [
    all.map(({ job }) => job.queue),
    all.map(({ job }) => job.name),
    all.map(({ data }) => JSON.stringify(data)),
    all.map(({ senderId }) => senderId ?? null),
  ])
  const rows = written.flatMap(({ id }, index) => {
    const { queue, name } = all[index]?.job ?? {}
    return queue === undefined || name === undefined ? [] : [{ id, queue, name, ...handOver }]
  })
  handOverAfter(pod, transaction, rows)
  return rows.map(({ id }) => id)
}

const newWork = `
  insert into outbox (queue, name, data, sender_id)
  select queue, name, data::jsonb, sender_id
  from unnest(${opaqueParam('$1', 'text[]')}, $2::text[], $3::text[], $4::bigint[])
    with ordinality as row(queue, name, data, sender_id, place)
  order by place
  returning id`

/** Hands rows that this transaction has written to the queue after its commit; what gets lost there, the sweeper adds. */
export const handOverAfter = afterCommit<OutboxJob>(({ jobs }, rows) => {
  const handOver = handOvers.get(jobs) ?? openHandOver(jobs)
  handOvers.set(jobs, handOver)
  return handOver(rows)
})

type HandOver = (rows: readonly OutboxJob[]) => Promise<void>

const handOvers = new WeakMap<Pod['jobs'], HandOver>()

/** What commits while others are handed over goes together: PostgreSQL takes ten jobs at three times the cost of one. */
function openHandOver(jobs: Pod['jobs']): HandOver {
  return groupCommit(
    { atOnce: 1, items: HANDED_OVER_AT_ONCE, bytes: Number.POSITIVE_INFINITY, sizeOf: () => 0 },
    (rows: readonly OutboxJob[]) => jobs.handOver(rows, { within: HAND_OVER_WITHIN }),
  )
}

/** Finds what a job is about; `undefined` when its outbox row is gone and there is nothing left to do. */
export async function takeWork(db: Knex, data: unknown): Promise<TakenWork | undefined> {
  const outboxId = outboxIdOf(data)
  if (outboxId === undefined) {
    return { outboxId, data, payload: undefined, acceptedAt: undefined, finish: nothing, finishIfOpen: nothing }
  }
  const [row] = await queryPrepared<WorkRow>(db, 'work', workOfRow, [outboxId])
  if (row === undefined) return undefined

  let open = true
  return {
    outboxId,
    data: row.data,
    payload: row.payload ?? undefined,
    acceptedAt: row.acceptedAt ?? undefined,
    senderId: row.senderId ?? undefined,
    async finish(transaction) {
      const deleted = await takeRows(transaction, [outboxId])
      if (deleted.size === 0) throw new AlreadyDone('The outbox row is gone.')
      open = false
    },
    async finishIfOpen() {
      if (open) await takeRows(db, [outboxId])
    },
  }
}

interface WorkRow {
  readonly data: unknown
  readonly payload: string | null
  readonly acceptedAt: Date | null
  readonly senderId: number | null
}

const workOfRow = `select data, payload, accepted_at as "acceptedAt", sender_id as "senderId" from outbox where id = $1`

/** A row of a sender, locked until the transaction ends. */
interface SenderRow {
  readonly id: number
  readonly data: OutgoingRecord
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
  select id, data from outbox
  where sender_id = $1 and id <= $2 and failed_at is null and id <> all($3::bigint[])
  order by sender_id, id limit 1
  for update`

export async function isInOutbox(db: Knex, outboxId: number): Promise<boolean> {
  return (await db('outbox').where({ id: outboxId }).first('id')) !== undefined
}

/** True for a record that nobody has dispatched yet. Its row may be locked by a dispatch that waits for the record. */
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

async function nothing(): Promise<void> {}

/** Rows of messages that have waited. */
export interface MessageRow {
  readonly id: number
  readonly data: unknown
  readonly payload: string
  readonly acceptedAt: Date
}

/** Those of these rows that are still there. */
export async function findMessageRows(db: Knex, ids: readonly number[]): Promise<readonly MessageRow[]> {
  if (ids.length === 0) return []
  return queryPrepared<MessageRow>(db, 'messages-of-rows', messagesOfRows, [ids])
}

const messagesOfRows = `
  select id, data, payload, accepted_at as "acceptedAt"
  from unnest(${opaqueParam('$1', 'bigint[]')}) as id join outbox using (id)
  where payload is not null`

/**
 * Deletes rows in the transaction of what they are about; returns those that were there, for whose work nobody has done yet. In one
 * order, as the sweeper: else two of them could wait for each other.
 */
export async function takeRows(db: Knex, ids: readonly number[]): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set()
  const rows = await queryPrepared<{ id: number }>(db, 'taken-rows', takenRows, [
    ids.toSorted((one, other) => one - other),
  ])
  return new Set(rows.map(({ id }) => id))
}

const takenRows = `
  delete from outbox using unnest(${opaqueParam('$1', 'bigint[]')}) as taken(id) where outbox.id = taken.id returning outbox.id`

export function outboxIdOf(data: unknown): number | undefined {
  const isRowsJob = typeof data === 'object' && data !== null && 'outboxId' in data
  return isRowsJob && typeof data.outboxId === 'number' ? data.outboxId : undefined
}

/** The job of this row is a dead letter: the sweeper leaves the row alone until the operator replays it. */
export async function markFailed(db: Knex, outboxId: number): Promise<void> {
  await db('outbox').where({ id: outboxId }).update({ failedAt: db.fn.now() })
}

/** Rows that no job has picked up for too long, the oldest first. */
export async function leftBehind(
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

/** Rows that were added again; the next look at them is a minute away. */
export async function sweptAgain(transaction: Knex.Transaction, rows: readonly OutboxJob[]): Promise<void> {
  await transaction.raw(`update outbox set sweep_at = now() + interval '1 minute' where id = any(?)`, [
    rows.map((row) => row.id),
  ])
}

/** The queue has lost its memory: every row is due again, not only those that were due anyway. */
export async function sweepAllNow(db: Knex): Promise<void> {
  await db('outbox')
    .whereNull('failedAt')
    .where('sweepAt', '>', db.fn.now())
    .update({ sweepAt: db.raw(NOW) })
}

/** The jobs of these rows may run again: from now on the sweeper sees to them. */
export async function unmarkFailed(db: Knex, outboxIds: readonly number[]): Promise<void> {
  await db('outbox')
    .whereIn('id', [...outboxIds])
    .update({ failedAt: null, sweepAt: db.raw(NOW) })
}

/** Rows of a newer version, for a queue that this one does not have, are dead letters and not a loop. */
export async function failUnknownQueues(transaction: Knex.Transaction): Promise<void> {
  await transaction('outbox')
    .whereNull('failedAt')
    .whereNotIn('queue', QUEUES)
    .update({ failedAt: transaction.fn.now() })
}
