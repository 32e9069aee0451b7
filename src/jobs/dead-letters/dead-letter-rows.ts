import type { Knex } from 'knex'
import { countEachSql, type GroupedCount } from '../../persistence/sql/count-each.js'
import { traceDigitsSql } from '../../persistence/sql/trace.js'
import { type DeadLetterFilter, keysOfSource, type SourcePage } from './dead-letter.js'

/** An outbox row that was given up, without its payload: payloads may be gigabytes together. */
export interface DeadLetterRow {
  readonly id: number
  readonly queue: string
  readonly name: string
  /** Null: only the job has it. */
  readonly fault: string | null
  readonly pod: string | null
  readonly entity: string | null
  readonly guid: string | null
  /** Attempts of its job; null: an earlier version has given it up. */
  readonly attempts: number | null
  readonly jobId: string | null
  readonly trace: string | null
  readonly hasNoPayload: boolean
  readonly createdAt: Date
  readonly failedAt: Date
}

/** The host of the pod from which the job would fetch; the entity that it is about. */
const POD_SQL = `regexp_replace(coalesce(data ->> 'from', data ->> 'address', data ->> 'host', data #>> '{failure,pod}'), '^.*@', '')`
const ENTITY_SQL = `coalesce(data ->> 'record', data ->> 'type')`

const GROUPS = {
  queue: 'queue',
  fault: `data ->> 'fault'`,
  pod: POD_SQL,
  entity: ENTITY_SQL,
  hour: `to_char(date_trunc('hour', failed_at at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:00:00"Z"')`,
} as const

export type DeadLetterGroup = keyof typeof GROUPS

export const DEAD_LETTER_GROUPS: readonly DeadLetterGroup[] = ['queue', 'fault', 'pod', 'entity', 'hour']

/** Lists rows that were given up, without their payloads. */
export async function listDeadLetterRows(
  db: Knex,
  filter: DeadLetterFilter,
  { order, startAfter, limit }: SourcePage<number>,
): Promise<readonly DeadLetterRow[]> {
  const query = deadLetterRows(db, filter)
  if (query === undefined) return []
  const [compare, direction] = order === 'newest first' ? ['<', 'desc'] : ['>', 'asc']
  return query
    .whereRaw(`(failed_at, id) ${compare} (?, ?::bigint)`, [startAfter.at, startAfter.id])
    .orderBy('failedAt', direction)
    .orderBy('id', direction)
    .limit(limit)
    .select('id', 'queue', 'name', 'createdAt', 'failedAt')
    .select(db.raw(`data ->> 'fault' as fault, ${POD_SQL} as pod, ${ENTITY_SQL} as entity, data ->> 'guid' as guid`))
    .select(db.raw(`(data #>> '{failure,attempts}')::integer as attempts, data #>> '{failure,job}' as "jobId"`))
    .select(db.raw(`${traceDigitsSql('trace_id')} as trace`))
    .select({ hasNoPayload: db.raw(`payload is null and name in ('receive-public', 'receive-private')`) })
}

/** The pods from which the jobs of rows would fetch, where they are known. */
export async function findPodsOfRows(db: Knex, ids: readonly number[]): Promise<ReadonlyMap<number, string | null>> {
  if (ids.length === 0) return new Map()
  const rows = await db('outbox')
    .whereIn('id', [...ids])
    .select('id', db.raw(`${POD_SQL} as pod`))
  return new Map(rows.map(({ id, pod }: { readonly id: number; readonly pod: string | null }) => [id, pod]))
}

/**
 * Counts given-up rows by each of the given properties: all matching rows, or those among the `latest` rows. Without `latest` the statement
 * needs no order, so that it may read an index only.
 */
export async function countDeadLetterRows(
  db: Knex,
  filter: DeadLetterFilter,
  groupings: readonly DeadLetterGroup[],
  latest: number | undefined,
): Promise<readonly GroupedCount[]> {
  const { ids, since, until, ...properties } = filter
  const inTime = { ...(ids && { ids }), ...(since && { since }), ...(until && { until }) }
  const rows = deadLetterRows(db, latest === undefined ? filter : inTime)
  if (rows === undefined) return []
  const { columns, counts } = countEachSql(groupings.map((by) => GROUPS[by]))
  const matchingRows =
    latest === undefined
      ? rows
      : withProperties(
          db.from(
            rows
              .orderBy('failedAt', 'desc')
              .orderBy('id', 'desc')
              .limit(latest)
              .select('id', 'queue', 'data', 'failedAt')
              .as('latest'),
          ),
          properties,
        )
  return db
    .with('counted', matchingRows.select(db.raw(columns)))
    .from(db.raw(`(${counts}) as counts`))
    .select('*')
}

/** Undefined: no row can match. */
function deadLetterRows(
  db: Knex,
  { ids, since, until, ...properties }: DeadLetterFilter,
): Knex.QueryBuilder | undefined {
  const keys = ids && keysOfSource(ids, 'rows')
  if (keys?.length === 0) return undefined
  const query = db('outbox').whereNotNull('failedAt')
  if (keys !== undefined) query.whereIn('id', keys.map(Number))
  if (since !== undefined) query.where('failedAt', '>=', since)
  if (until !== undefined) query.where('failedAt', '<', until)
  return withProperties(query, properties)
}

function withProperties(
  query: Knex.QueryBuilder,
  { queue, fault, pod, entity }: Pick<DeadLetterFilter, 'queue' | 'fault' | 'pod' | 'entity'>,
): Knex.QueryBuilder {
  if (queue !== undefined) query.where({ queue })
  if (fault !== undefined) query.whereRaw(`data ->> 'fault' = ?`, [fault])
  if (pod !== undefined) query.whereRaw(`${POD_SQL} = ?`, [pod])
  if (entity !== undefined) query.whereRaw(`${ENTITY_SQL} = ?`, [entity])
  return query
}
