import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../../persistence/database/database.js'
import { saveFaultOfReplay } from '../../persistence/inbound/quarantine.js'
import { type Counts, NO_COUNTS, raiseCountsSql, raiseCountsValues } from '../../persistence/inbound/raise-counts.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import type { Services } from '../../services/services.js'
import { resumeWaitingJob } from '../definitions.js'
import {
  enqueueJobs,
  enqueueJobsOfKind,
  type NewJob,
  newOutboxRowsSql,
  newOutboxRowsValues,
  runOrAddNewRows,
} from '../outbox/enqueue-jobs.js'
import { giveUpRow, type RowFailure } from '../outbox/give-up-rows.js'
import { runOrAddAfterCommit } from '../outbox/run-or-add.js'
import type { OutboxRow } from '../queues/add-jobs.js'
import type { EntityKey } from './entity-key.js'
import { WAITING_LIMITS } from './limits.js'
import { giveUpOverdueUnverified } from './unverified-messages.js'

/** Messages that one transaction resumes. */
const RESUMED_MESSAGE_BATCH_SIZE = 1_000

/** Fields of the outbox row of a resumed message, in addition to its body. */
export interface ResumedMessage {
  readonly recipientGuid: string | null
  readonly times: number
  /** The wait is over: if the entity is still unknown, the message becomes a dead letter. */
  readonly last: boolean
  /** The row of a message that is replayed from the quarantine. */
  readonly quarantineId?: number
  /** Filters do not apply. */
  readonly isReleased?: boolean
}

/** Whether a resumed message may wait for one more entity. */
export function mayWaitAgain({ times, last }: Pick<ResumedMessage, 'times' | 'last'>): boolean {
  return !last && times < WAITING_LIMITS.maxWaitsOfMessage
}

/** Stored entities, with the changes that they cause. */
export interface StoredEntityEffects {
  readonly entityKeys: readonly EntityKey[]
  readonly counts: Counts
  readonly jobs: readonly NewJob[]
}

/**
 * Raises the counters of stored entities, turns messages that wait for them into outbox rows, and enqueues jobs. One statement for all,
 * because every message pays for each statement. Without entities only the jobs are enqueued.
 */
export async function raiseCountsAndResumeMessages(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  { entityKeys, counts, jobs }: StoredEntityEffects,
): Promise<void> {
  if (entityKeys.length === 0) {
    if (Object.values(counts).some((list) => list.length > 0))
      throw new Error('Counters change without a stored entity.')
    await enqueueJobs(services, transaction, jobs)
    return
  }
  const resumedCount = await resumeBatch(services, transaction, { entityKeys, counts, jobs })
  if (resumedCount === RESUMED_MESSAGE_BATCH_SIZE)
    await enqueueJobsOfKind(services, transaction, resumeWaitingJob, [{ entityKeys }])
}

/** Turns messages that wait for stored entities into outbox rows, in transactions of bounded size. */
export async function resumeWaiting(
  services: Pick<Services, 'db' | 'jobs'>,
  entityKeys: readonly string[],
): Promise<void> {
  let count = RESUMED_MESSAGE_BATCH_SIZE
  while (count === RESUMED_MESSAGE_BATCH_SIZE) {
    count = await services.db.transaction((transaction) =>
      resumeBatch(services, transaction, { entityKeys, counts: NO_COUNTS, jobs: [] }),
    )
  }
}

/** Marks an outbox row as a dead letter, stores the result of a replay, and resumes the messages that waited for its effect for the last time. */
export async function giveUpOutboxRow(
  services: Pick<Services, 'db' | 'jobs'>,
  outboxId: number,
  failure: RowFailure,
): Promise<void> {
  await services.db.transaction(async (transaction) => {
    await giveUpRow(transaction, outboxId, failure)
    await saveFaultOfReplay(transaction, outboxId, failure.fault)
    runOrAddAfterCommit(services, transaction, await resumeLast(transaction, 'asked_by = ?', outboxId))
  })
}

/** Resumes messages whose time is over, and gives up unverified ones. Returns the number of resumed messages. */
export async function resumeOverdue(
  services: Pick<Services, 'jobs' | 'log'>,
  transaction: Knex.Transaction,
  limit: number,
): Promise<number> {
  await giveUpOverdueUnverified(services, transaction, limit)
  const overdue = `id in (
    select id from waiting where due_at <= now() and signed order by due_at limit ? for update skip locked
  )`
  const rows = await resumeLast(transaction, overdue, limit)
  if (rows.length > 0) runOrAddAfterCommit(services, transaction, rows)
  return rows.length
}

/** Resumes the oldest messages that wait for these entities, up to a limit, and returns their number. */
async function resumeBatch(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  { entityKeys, counts, jobs }: Omit<StoredEntityEffects, 'entityKeys'> & { readonly entityKeys: readonly string[] },
): Promise<number> {
  const rows = await queryPrepared<ResumedOrEnqueued>(transaction, 'resume-messages', resumeSql, [
    entityKeys,
    ...raiseCountsValues(counts),
    ...newOutboxRowsValues(transaction, jobs),
  ])
  const resumedRows = rows.filter(({ isResumed }) => isResumed)
  const newIds = rows.filter(({ isResumed }) => !isResumed).map(({ id }) => id)
  runOrAddAfterCommit(services, transaction, resumedRows)
  runOrAddNewRows(services, transaction, { jobs, ids: newIds })
  return resumedRows.length
}

/** An inserted outbox row: of a resumed message, or of a job. */
type ResumedOrEnqueued = OutboxRow & { readonly isResumed: boolean }

/**
 * The keys are joined, because for `= any(…)` the planner would expect too few rows. The parameters of each part follow those of the parts
 * before it.
 */
function resumeSql(): string {
  const keys = [[]]
  const raisedCounts = [...keys, ...raiseCountsValues(NO_COUNTS)]
  const oldest = `using (
    select waiting.id from unnest(${opaqueParam('$1', 'text[]')}) as entity_key join waiting on waits_for = entity_key
    order by waiting.id limit ${RESUMED_MESSAGE_BATCH_SIZE}
  ) as oldest where waiting.id = oldest.id`
  return `
    with ${takenMessagesSql(oldest)}, ${raiseCountsSql(keys)},
    enqueued as (${newOutboxRowsSql(raisedCounts)}), resumed_rows as (${resumedRowsSql(false)})
    select id, queue, name, true as "isResumed" from resumed_rows
    union all
    select id, null, null, false from enqueued
    order by "isResumed", id`
}

/** Resumes messages that may not wait again. */
async function resumeLast(
  transaction: Knex.Transaction,
  condition: string,
  value: number,
): Promise<readonly OutboxRow[]> {
  const text = `with ${takenMessagesSql(`where ${condition}`)} ${resumedRowsSql(true)}`
  return queryRows<OutboxRow>(transaction, text, [value])
}

/** Takes the waiting messages that the condition selects, as a CTE. */
function takenMessagesSql(condition: string): string {
  return `resumed as (delete from waiting ${condition} returning waiting.*)`
}

/** Turns the taken messages into outbox rows. Each message returns to the queue by which it was received. */
function resumedRowsSql(isLast: boolean): string {
  return `
    insert into outbox (queue, name, data, payload, accepted_at, trace_id)
    select
      case when recipient_guid is null then 'inbound' else 'inbound-private' end,
      name,
      jsonb_build_object('recipientGuid', recipient_guid, 'times', times, 'last', ${isLast})
        || case when quarantine_id is null then '{}' else jsonb_build_object('quarantineId', quarantine_id, 'isReleased', is_released) end,
      payload,
      accepted_at,
      trace_id
    from resumed order by resumed.id
    returning id, queue, name`
}
