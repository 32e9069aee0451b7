import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { traceDigitsSql } from '../../persistence/sql/trace.js'

/** The input of a handler, and the function that completes the job. */
export interface JobContext<Data = unknown> {
  readonly data: Data
  /** The body of a resumed message, and when the web process accepted it. */
  readonly payload: string | undefined
  readonly acceptedAt: Date | undefined
  /** Id of the outbox row; not set: the job has no row. */
  readonly outboxId?: number | undefined
  /** The local author of the record of the row. */
  readonly senderId?: number | undefined
  /** Trace of the request or message that caused the job. */
  readonly trace?: string | undefined
  /**
   * Deletes the outbox row in the transaction of the effect. Throws AlreadyDone, so that everything rolls back, when another worker
   * has done the job in the meantime.
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

/** Ends a job without its effect: the sweeper adds it again after this number of seconds. Always throws `Postponed`. */
export async function postpone(db: Knex, outboxId: number, seconds: number): Promise<never> {
  await db('outbox')
    .where({ id: outboxId })
    .update({ sweepAt: db.raw(`${NOW_SQL} + make_interval(secs => ?)`, [seconds]) })
  throw new Postponed('The work is postponed.')
}

/** Reads the outbox row of a job; `undefined` when the row is gone, because another worker has done the job. */
export async function loadJob(db: Knex, data: unknown): Promise<LoadedJob | undefined> {
  const outboxId = readOutboxId(data)
  if (outboxId === undefined) {
    return { outboxId, data, payload: undefined, acceptedAt: undefined, finish: doNothing, finishIfOpen: doNothing }
  }
  const [row] = await queryPrepared<LoadedRow>(db, 'outbox-row', OUTBOX_ROW_SQL, [outboxId])
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
      const deletedRows = await deleteOutboxRows(transaction, [outboxId])
      if (deletedRows.size === 0) throw new AlreadyDone('The outbox row is gone.')
      isOpen = false
    },
    async finishIfOpen() {
      if (isOpen) await deleteOutboxRows(db, [outboxId])
    },
  }
}

interface LoadedRow {
  readonly data: unknown
  readonly payload: string | null
  readonly acceptedAt: Date | null
  readonly senderId: number | null
  readonly trace: string | null
}

const OUTBOX_ROW_SQL = `
  select data, payload, accepted_at as "acceptedAt", sender_id as "senderId", ${traceDigitsSql('trace_id')} as trace
  from outbox where id = $1`

export async function isInOutbox(db: Knex, outboxId: number): Promise<boolean> {
  return (await db('outbox').where({ id: outboxId }).first('id')) !== undefined
}

async function doNothing(): Promise<void> {}

/**
 * Deletes rows in the transaction of their effect; returns those that existed, whose work is not done yet. In the order of their ids, as
 * the sweeper: otherwise two transactions could deadlock.
 */
export async function deleteOutboxRows(db: Knex, ids: readonly number[]): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set()
  const rows = await queryPrepared<{ id: number }>(db, 'delete-outbox-rows', DELETE_ROWS_SQL, [
    ids.toSorted((one, other) => one - other),
  ])
  return new Set(rows.map(({ id }) => id))
}

const DELETE_ROWS_SQL = `
  delete from outbox using unnest(${opaqueParam('$1', 'bigint[]')}) as done(id) where outbox.id = done.id returning outbox.id`

export function readOutboxId(data: unknown): number | undefined {
  const isRowsJob = typeof data === 'object' && data !== null && 'outboxId' in data
  return isRowsJob && typeof data.outboxId === 'number' ? data.outboxId : undefined
}
