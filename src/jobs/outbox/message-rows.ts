import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { traceDigitsSql } from '../../persistence/sql/trace.js'

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
  return queryPrepared<MessageRow>(db, 'messages-of-rows', MESSAGES_OF_ROWS_SQL, [ids])
}

const MESSAGES_OF_ROWS_SQL = `
  select id, data, payload, accepted_at as "acceptedAt", ${traceDigitsSql('trace_id')} as trace
  from unnest(${opaqueParam('$1', 'bigint[]')}) as id join outbox using (id)
  where payload is not null`
