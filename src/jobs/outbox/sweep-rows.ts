import type { Knex } from 'knex'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import type { OutboxRow } from '../queues/add-jobs.js'
import type { QueueName } from '../queues/queue-names.js'

/** Finds rows that no job has completed in time, the oldest first. */
export async function findOverdueRows(
  transaction: Knex.Transaction,
  queues: readonly QueueName[],
  limit: number,
): Promise<readonly OutboxRow[]> {
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
export async function postponeSweep(transaction: Knex.Transaction, rows: readonly OutboxRow[]): Promise<void> {
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
    .update({ sweepAt: db.raw(NOW_SQL) })
}
