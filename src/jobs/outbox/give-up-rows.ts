import type { Knex } from 'knex'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import { QUEUES } from '../queues/queue-names.js'

/** How a row was given up. */
export interface RowFailure {
  readonly fault: string
  /** The failed job, which the queue keeps for a while. */
  readonly job?: { readonly id: string | undefined; readonly attempts: number } | undefined
  /** The host of the other pod, where only the payload has it. */
  readonly pod?: string | undefined
}

/**
 * Marks the row of a dead letter: the sweeper skips it until the operator replays it. The row keeps the failure when the queue is emptied,
 * and lists need not read the job.
 */
export async function giveUpRow(db: Knex, outboxId: number, { fault, job, pod }: RowFailure): Promise<void> {
  const failure = { ...(job && { job: job.id, attempts: job.attempts }), ...(pod !== undefined && { pod }) }
  await db('outbox')
    .where({ id: outboxId })
    .update({
      failedAt: db.fn.now(),
      data: db.raw('data || ?::jsonb', [JSON.stringify({ fault, failure })]),
    })
}

/** Removes the mark of a dead letter, so that the sweeper adds the jobs of these rows. */
export async function reopenRows(db: Knex, outboxIds: readonly number[]): Promise<void> {
  await db('outbox')
    .whereIn('id', [...outboxIds])
    .update({ failedAt: null, sweepAt: db.raw(NOW_SQL), data: db.raw(`data - 'fault' - 'failure'`) })
}

/** Makes rows of unknown queues, written by a newer version, dead letters; otherwise the sweeper would repeat them forever. */
export async function giveUpRowsOfUnknownQueues(transaction: Knex.Transaction): Promise<void> {
  await transaction('outbox')
    .whereNull('failedAt')
    .whereNotIn('queue', QUEUES)
    .update({ failedAt: transaction.fn.now() })
}
