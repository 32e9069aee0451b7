import type { Knex } from 'knex'
import { queryRow, queryRows } from '../../persistence/database/database.js'
import type { Services } from '../../services/services.js'
import { inChunks } from '../chunks.js'
import { WAITING_LIMITS } from './limits.js'
import { reportDropped } from './unverified-messages.js'
import type { WaitingDropReason } from './waiting-metrics.js'

export type WaitingLimits = { readonly [Name in keyof typeof WAITING_LIMITS]: number }

/** A smaller table cannot exceed its limits, so that its rows are not counted. */
const UNCOUNTED_BYTES = 32 * 1024 * 1024

/**
 * Deletes waiting and dead messages beyond their limits, the oldest first. No statement reads a payload. The limits of a host for
 * unverified messages are applied when they are stored; all other limits here.
 */
export async function deleteMessagesBeyondLimits(
  services: Pick<Services, 'db' | 'log'>,
  limits: WaitingLimits = WAITING_LIMITS,
  uncountedBytes = UNCOUNTED_BYTES,
): Promise<void> {
  await deleteExcess(services, limits, {
    table: 'waiting',
    host: 'sender_host',
    reason: 'total_bound',
    isVerified: false,
    excess: `
      select id from (
        select id, bytes, row_number() over latest as rank, sum(bytes) over latest as size,
          sum(case when bytes > :longMessageBytes then bytes else 0 end) over latest as size_of_long
        from waiting where not signed
        window latest as (order by id desc)
      ) as ranked
      where rank > :maxUnverifiedMessages or size > :maxUnverifiedBytes
        or (bytes > :longMessageBytes and size_of_long > :maxLongUnverifiedBytes)`,
  })
  if (await isLarge(services.db, 'waiting', uncountedBytes)) {
    await deleteExcess(services, limits, {
      table: 'waiting',
      host: 'sender_host',
      reason: 'host_bound',
      isVerified: true,
      excess: `
        select id from (
          select id, row_number() over latest as rank, sum(bytes) over latest as size
          from waiting where signed and sender_host is not null
          window latest as (partition by sender_host order by id desc)
        ) as ranked
        where rank > :maxMessagesOfHost or size > :maxBytesOfHost`,
    })
    await deleteExcess(services, limits, {
      table: 'waiting',
      host: 'sender_host',
      reason: 'total_bound',
      isVerified: true,
      excess: `
        select id from (
          select id, row_number() over latest as rank, sum(bytes) over latest as size
          from waiting where signed
          window latest as (order by id desc)
        ) as ranked
        where rank > :maxVerifiedMessages or size > :maxVerifiedBytes`,
    })
  }
  if (await isLarge(services.db, 'outbox', uncountedBytes)) {
    // octet_length reads the size from the TOAST pointer, not the payload.
    await deleteExcess(services, limits, {
      table: 'outbox',
      host: 'null',
      reason: 'dead_bound',
      isVerified: true,
      excess: `
        select id from (
          select id, row_number() over latest as rank, sum(coalesce(octet_length(payload), 0)) over latest as size
          from outbox where failed_at is not null and name in ('receive-public', 'receive-private')
          window latest as (order by failed_at desc, id desc)
        ) as ranked
        where rank > :maxDeadMessages or size > :maxDeadBytes`,
    })
  }
  await endOrphanedLookups(services.db, limits)
}

interface Excess {
  readonly table: 'waiting' | 'outbox'
  /** The expression for the host of a deleted row. */
  readonly host: string
  readonly reason: WaitingDropReason
  readonly isVerified: boolean
  /** Selects the ids of the rows beyond the limit. */
  readonly excess: string
}

/** Deletes in small batches, so that other transactions do not wait long. Skips locked rows: they are being processed. */
async function deleteExcess(
  services: Pick<Services, 'db' | 'log'>,
  limits: WaitingLimits,
  { table, host, reason, isVerified, excess }: Excess,
): Promise<void> {
  const bindings = { ...limits }
  const excessRows = await queryRows<{ readonly id: number }>(services.db, excess, bindings)
  const ids = excessRows.map(({ id }) => id)
  for (const batch of inChunks(ids, limits.rowsPerBatch)) {
    const rows = await queryRows<{ readonly host: string | null }>(
      services.db,
      `with locked as materialized (
         select id from ${table} where id = any(?) order by id for update skip locked
       )
       delete from ${table} using locked where ${table}.id = locked.id returning ${host} as host`,
      [[...batch]],
    )
    reportDropped(
      services,
      rows.map((row) => ({ host: row.host, reason })),
      { isVerified },
    )
  }
}

async function isLarge(db: Knex, table: Excess['table'], bytes: number): Promise<boolean> {
  const { isOverLimit } = await queryRow<{ readonly isOverLimit: boolean }>(
    db,
    `select pg_total_relation_size(?::regclass) > ? as "isOverLimit"`,
    [table, bytes],
  )
  return isOverLimit
}

/** Deletes lookups for which no message waits. */
async function endOrphanedLookups(db: Knex, { rowsPerBatch }: WaitingLimits): Promise<void> {
  await db.raw(
    `delete from signer_lookups where address in (
       select address from signer_lookups
       where created_at < now() - interval '1 minute'
         and not exists (select from waiting where waits_for = 'person:' || address)
       order by address limit ? for update skip locked
     )`,
    [rowsPerBatch],
  )
}
