import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { findTrace } from '../../persistence/database/transactions.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import type { Services } from '../../services/services.js'
import { type AnyJob, type DataOf, dispatchJob, type OutgoingRecord } from '../definitions.js'
import { versionedData } from '../job-version.js'
import { runOrAddAfterCommit } from './run-or-add.js'

/** The sweeper adds a job again that no worker has taken within this time. */
const SWEPT_AFTER_SECONDS = 5

/** Stores a job in the transaction of the change that causes it; adds it to the queue after the commit. */
export async function enqueueJob<Definition extends AnyJob>(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  job: Definition,
  data: DataOf<Definition>,
): Promise<void> {
  await enqueueJobsOfKind(services, transaction, job, [data])
}

/** Enqueues any number of jobs of one kind; returns the ids of their rows, in order. */
export async function enqueueJobsOfKind<Definition extends AnyJob>(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  job: Definition,
  dataOfJobs: readonly DataOf<Definition>[],
): Promise<readonly number[]> {
  return enqueueJobs(
    services,
    transaction,
    dataOfJobs.map((data) => newJob(job, data)),
  )
}

/** A job with its data. */
export interface NewJob {
  readonly job: AnyJob
  readonly data: unknown
  /** The local person whose rows are dispatched in order. */
  readonly senderId?: number
  /** Seconds until the sweeper adds the job; not set: it runs, or is added, after the commit. */
  readonly dueInSeconds?: number
}

export function newJob<Definition extends AnyJob>(job: Definition, data: DataOf<Definition>): NewJob {
  return { job, data }
}

/** A job that dispatches a record of a local person, after all records they have written before. */
export function newDispatchJob(senderId: number, record: OutgoingRecord): NewJob {
  return { job: dispatchJob, data: record, senderId }
}

interface DelayOptions {
  /** Milliseconds until the jobs may begin. */
  readonly delay?: number
}

/** Enqueues jobs of any kinds with one statement; returns the ids of their rows, in order. */
export async function enqueueJobs(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  newJobs: readonly NewJob[],
  options: DelayOptions = {},
): Promise<readonly number[]> {
  if (newJobs.length === 0) return []
  const values = newOutboxRowsValues(transaction, newJobs)
  const rows = await queryPrepared<{ id: number }>(transaction, 'new-outbox-rows', NEW_OUTBOX_ROWS_SQL, values)
  const ids = rows.map(({ id }) => id)
  runOrAddNewRows(services, transaction, { jobs: newJobs, ids }, options)
  return ids
}

/** Runs or adds these jobs after the commit. A statement with `newOutboxRowsSql` has inserted their rows, in this order. */
export function runOrAddNewRows(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  { jobs, ids }: { readonly jobs: readonly NewJob[]; readonly ids: readonly number[] },
  options: DelayOptions = {},
): void {
  const trace = findTrace(transaction)
  const rows = ids.flatMap((id, index) => {
    const { job, data, dueInSeconds } = jobs[index] ?? {}
    if (job === undefined || dueInSeconds !== undefined) return []
    return [{ id, queue: job.queue, name: job.name, data, trace, ...options }]
  })
  runOrAddAfterCommit(services, transaction, rows)
}

/** Parameters of `newOutboxRowsSql`. */
export function newOutboxRowsValues(transaction: Knex.Transaction, newJobs: readonly NewJob[]): readonly unknown[] {
  return [
    newJobs.map(({ job }) => job.queue),
    newJobs.map(({ job }) => job.name),
    newJobs.map(({ job, data }) => JSON.stringify(versionedData(job, data))),
    newJobs.map(({ senderId }) => senderId ?? null),
    newJobs.map(({ dueInSeconds }) => dueInSeconds ?? SWEPT_AFTER_SECONDS),
    findTrace(transaction),
  ]
}

/** Inserts the rows of jobs and returns their ids in order. Its parameters are numbered after `precedingValues`. */
export function newOutboxRowsSql(precedingValues: readonly unknown[]): string {
  const $ = (index: number) => `$${precedingValues.length + index}` as const
  return `
  insert into outbox (queue, name, data, sender_id, sweep_at, trace_id)
  select queue, name, data::jsonb, sender_id, ${NOW_SQL} + make_interval(secs => due), ${$(6)}::uuid
  from unnest(${opaqueParam($(1), 'text[]')}, ${$(2)}::text[], ${$(3)}::text[], ${$(4)}::bigint[], ${$(5)}::integer[])
    with ordinality as row(queue, name, data, sender_id, due, position)
  order by position
  returning id`
}

const NEW_OUTBOX_ROWS_SQL = newOutboxRowsSql([])
