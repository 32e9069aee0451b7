import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { traceDigitsSql } from '../../persistence/sql/trace.js'
import type { OutgoingRecord } from '../definitions.js'

/** A row of a sender, locked until the transaction ends. */
interface SenderRow {
  readonly id: number
  readonly data: OutgoingRecord
  readonly trace: string | null
}

/**
 * Locks the oldest row of a sender that is not younger than a given one. Undefined: no row is left, or the oldest was
 * deleted while this waited for its lock.
 */
export async function lockOldestOfSender(
  transaction: Knex.Transaction,
  senderId: number,
  upTo: number,
  except: readonly number[],
): Promise<SenderRow | undefined> {
  const [row] = await queryPrepared<SenderRow>(transaction, 'oldest-of-sender', OLDEST_OF_SENDER_SQL, [
    senderId,
    upTo,
    except,
  ])
  return row
}

const OLDEST_OF_SENDER_SQL = `
  select id, data, ${traceDigitsSql('trace_id')} as trace from outbox
  where sender_id = $1 and id <= $2 and failed_at is null and id <> all($3::bigint[])
  order by sender_id, id limit 1
  for update`

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
