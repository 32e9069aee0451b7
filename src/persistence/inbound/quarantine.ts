import type { Knex } from 'knex'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import { queryPrepared, queryRows } from '../database/database.js'
import { inTransaction } from '../database/transactions.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'
import { traceDigitsSql } from '../sql/trace.js'

export interface NewQuarantinedMessage {
  readonly receivedAt: Date
  readonly recipientGuid: string | null
  readonly source: string | null
  readonly author: string | null
  readonly host: string | null
  readonly entity: string | null
  readonly guid: string | null
  readonly fault: string
  readonly detail: string | null
  readonly payload: string
  readonly bytes: number
  readonly isWhole: boolean
  /** The digest in hexadecimal digits. */
  readonly digest: string
  readonly trace: string | null
}

/** A rejected message without its payload. */
export interface QuarantinedMessage extends Omit<NewQuarantinedMessage, 'payload'> {
  readonly id: number
  readonly lastAt: Date
  /** How often an equal message was rejected. */
  readonly times: number
  readonly state: 'held' | 'replaying' | 'replayed'
  readonly result: string | null
}

export interface QuarantineBounds {
  readonly maxMessages: number
  readonly maxBytes: number
  readonly rowsOfFault: number
  readonly rowsOfHost: number
}

/**
 * Stores rejected messages with one statement, one process after the other, and deletes the oldest beyond the bounds. The statement does
 * not see its own rows, so it also deletes as many as it stores. Equal messages are one row with their number.
 */
export async function insertQuarantined(
  db: Knex,
  messages: readonly NewQuarantinedMessage[],
  { maxMessages, maxBytes, rowsOfFault, rowsOfHost }: QuarantineBounds,
): Promise<void> {
  const addedBytes = messages.reduce((sum, { payload }) => sum + envelopeBytes(payload), 0)
  const otherRows = [maxMessages, rowsOfFault, rowsOfHost].map((bound) => Math.max(0, bound - messages.length))
  const values = [JSON.stringify(messages), ...otherRows, maxBytes - addedBytes]
  await inTransaction(db, async (transaction) => {
    // Statements that run at the same time do not see each other's rows: together they would exceed the bounds.
    await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('quarantine', 0))`)
    await queryPrepared(transaction, 'quarantined-messages', QUARANTINED_SQL, values)
  })
}

const QUARANTINED_SQL = `
  with added as (
    select * from json_to_recordset($1::json) as message(
      "receivedAt" timestamptz, "recipientGuid" text, source text, author text, host text, entity text, guid text, fault text,
      detail text, payload text, bytes integer, "isWhole" boolean, digest text, trace uuid
    )
  ), bounded as (
    delete from quarantine where id in (
      select id from (
        select id, row_number() over latest as rank, sum(case when is_whole then bytes else 4096 end) over latest as size
        from quarantine window latest as (order by id desc)
      ) as ranked
      where rank > $2::integer or size > $5::bigint
      union all
      select excess.id from (select distinct fault from added) as faults, lateral (
        select id from quarantine where quarantine.fault = faults.fault order by id desc offset $3::integer
      ) as excess
      union all
      select excess.id from (select distinct coalesce(host, source, '') as host from added) as hosts, lateral (
        select id from quarantine where coalesce(quarantine.host, quarantine.source, '') = hosts.host collate "C"
        order by id desc offset $4::integer
      ) as excess
    ) and not exists (select from added where decode(added.digest, 'hex') = quarantine.digest)
  )
  insert into quarantine (
    received_at, recipient_guid, source, author, host, entity, guid, fault, detail, payload, bytes, is_whole, digest, trace_id, times
  )
  select distinct on (digest) "receivedAt", "recipientGuid", source, author, host, entity, guid, fault, detail, payload, bytes,
    "isWhole", decode(digest, 'hex'), trace, count(*) over (partition by digest)
  from added order by digest
  on conflict (digest) do update set times = quarantine.times + excluded.times, last_at = excluded.last_at, fault = excluded.fault,
    detail = excluded.detail, trace_id = excluded.trace_id`

const COLUMNS = [
  'id',
  'receivedAt',
  'lastAt',
  'times',
  'recipientGuid',
  'source',
  'author',
  'host',
  'entity',
  'guid',
  'fault',
  'detail',
  'bytes',
  'isWhole',
  'state',
  'result',
]

const DIGITS_SQL = `encode(digest, 'hex') as digest, ${traceDigitsSql('trace_id')} as trace`

export interface QuarantineFilter {
  readonly ids?: readonly number[] | undefined
  readonly fault?: string | undefined
  readonly host?: string | undefined
  readonly state?: QuarantinedMessage['state'] | undefined
}

/** Lists rejected messages without their payloads, latest first. */
export async function listQuarantined(
  db: Knex,
  filter: QuarantineFilter,
  page: IdPage,
): Promise<ListPage<QuarantinedMessage>> {
  const query = selectQuarantined(db, filter).select(...COLUMNS, db.raw(DIGITS_SQL))
  return readIdPage(query, page)
}

export async function findQuarantined(db: Knex, id: number): Promise<QuarantinedMessage | undefined> {
  return selectQuarantined(db, { ids: [id] }).first(...COLUMNS, db.raw(DIGITS_SQL))
}

export async function findQuarantinedPayload(db: Knex, id: number): Promise<string | undefined> {
  const row = await db('quarantine').where({ id }).first('payload')
  return row?.payload
}

export async function countQuarantined(db: Knex, filter: QuarantineFilter): Promise<number> {
  const row = await selectQuarantined(db, filter).count('* as count').first()
  return Number(row?.['count'] ?? 0)
}

export async function countQuarantinedByFault(
  db: Knex,
): Promise<readonly { readonly fault: string; readonly count: number }[]> {
  return queryRows<{ readonly fault: string; readonly count: number }>(
    db,
    'select fault, count(*)::integer as count from quarantine group by fault order by count desc, fault limit 30',
  )
}

/** Rows of a filter with ids greater than `after`, up to `end`. */
export interface QuarantineRange {
  readonly after: number
  readonly end: number
}

/** The range of all rows that match now. Returns undefined if there are none. */
export async function findQuarantineRange(db: Knex, filter: QuarantineFilter): Promise<QuarantineRange | undefined> {
  const row = await selectQuarantined(db, filter).max('id as end').first()
  return row?.['end'] === null || row === undefined ? undefined : { after: 0, end: Number(row['end']) }
}

/** Locks the oldest rows of a range. */
export async function lockQuarantined(
  transaction: Knex.Transaction,
  filter: QuarantineFilter,
  { after, end }: QuarantineRange,
  limit: number,
): Promise<readonly { readonly id: number; readonly isWhole: boolean }[]> {
  return selectQuarantined(transaction, filter)
    .where('id', '>', after)
    .where('id', '<=', end)
    .orderBy('id')
    .limit(limit)
    .forUpdate()
    .select('id', 'isWhole')
}

export async function deleteQuarantined(transaction: Knex.Transaction, ids: readonly number[]): Promise<void> {
  await transaction('quarantine')
    .whereIn('id', [...ids])
    .delete()
}

function selectQuarantined(db: Knex, { ids, fault, host, state }: QuarantineFilter): Knex.QueryBuilder {
  const query = db('quarantine')
  if (ids !== undefined) query.whereIn('id', [...ids])
  if (fault !== undefined) query.where({ fault })
  if (host !== undefined) query.where({ host })
  if (state !== undefined) query.where({ state })
  return query
}

/** Copies messages to the outbox, from where they are received again; returns the new rows. */
export async function replayQuarantined(
  transaction: Knex.Transaction,
  ids: readonly number[],
  { isReleased }: { readonly isReleased: boolean },
): Promise<readonly { readonly id: number; readonly queue: 'inbound' | 'inbound-private'; readonly name: string }[]> {
  return queryRows<{ readonly id: number; readonly queue: 'inbound' | 'inbound-private'; readonly name: string }>(
    transaction,
    `with replayed as (
       update quarantine set state = 'replaying', result = null where id = any(?)
       returning id, recipient_guid, payload, received_at, trace_id
     )
     insert into outbox (queue, name, data, payload, accepted_at, trace_id)
     select
       case when recipient_guid is null then 'inbound' else 'inbound-private' end,
       case when recipient_guid is null then 'receive-public' else 'receive-private' end,
       jsonb_build_object('recipientGuid', recipient_guid, 'times', 0, 'last', false, 'quarantineId', id, 'isReleased', ?::boolean),
       payload, received_at, trace_id
     from replayed order by id
     returning id, queue, name`,
    [[...ids], isReleased],
  )
}

/** Stores the fault of a replay whose outbox row becomes a dead letter. Rows of other work have no effect. */
export async function saveFaultOfReplay(db: Knex, outboxId: number, fault: string): Promise<void> {
  await db.raw(
    `update quarantine set state = 'replayed', result = ?
     where id = (select (data ->> 'quarantineId')::bigint from outbox where id = ?)`,
    [fault, outboxId],
  )
}

/** Stores the results of replays. */
export async function saveReplayResults(
  db: Knex,
  results: readonly { readonly id: number; readonly result: string }[],
): Promise<void> {
  await db.raw(
    `update quarantine set state = 'replayed', result = replayed.result
     from json_to_recordset(?::json) as replayed(id bigint, result text) where quarantine.id = replayed.id`,
    [JSON.stringify(results)],
  )
}
