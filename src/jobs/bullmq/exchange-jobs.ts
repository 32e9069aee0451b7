import type { JobJson } from 'bullmq'
import type pg from 'pg'
import { groupCommit } from '../../concurrency/group-commit.js'
import type { EmptyQueueState } from './empty-queue-state.js'

/** A finished job, and whether its worker takes the next one; or a worker that only takes one. */
interface JobRequest {
  /** Undefined: no job was finished. */
  readonly id?: string
  readonly token: string
  readonly wantsNext: boolean
}

/** A job in the form that the library reads, with the token of the worker slot that runs it. */
type NextJob = JobJson & { readonly token: string }

/** The result for all requests that shared a statement. */
interface ExchangeResult {
  /** Next jobs by token. Empty when no job waits, or when the queue is paused or has a limit. */
  readonly nextJobs: ReadonlyMap<string, NextJob>
  /** Tokens of jobs that were not finished: their rows are locked, or they belong to a flow or have a deduplication key. */
  readonly notFinished: ReadonlySet<string>
  /** The queue is paused or has a limit, so that the library has to start its jobs. */
  readonly isLimited: boolean
  /** When the next delayed job is due, in milliseconds since 1970; null: there is none. */
  readonly nextDelayedAt: number | null
}

interface QueueState extends Pick<ExchangeResult, 'isLimited' | 'nextDelayedAt'> {
  readonly notFinished: readonly string[] | null
  /** A job waits that this statement has not started. */
  readonly isMoreWaiting: boolean
}

type ResultRow = QueueState & (NextJob | { readonly token: null })

interface ExchangeOptions {
  readonly pool: Pick<pg.Pool, 'query'>
  readonly queue: string
  /** Milliseconds for which a next job is locked. */
  readonly lockMs: number
  readonly worker: string | undefined
  readonly empty: Pick<EmptyQueueState, 'beginFetch'>
}

/** A group has as many jobs as a worker may run at a time. A second group may start while the first is under way. */
const BATCHES = { maxItems: 256, maxConcurrent: 2 }

/**
 * Finishes jobs that are removed on completion and takes the next ones, with one statement for all that end or are wanted at the same
 * moment. The library has a transaction of fifteen statements for each job, and an unread event for each step: 800 µs of the server.
 * The statement also returns whether more jobs wait, for which the library has two others.
 */
export function openJobExchange({
  pool,
  queue,
  lockMs,
  worker,
  empty,
}: ExchangeOptions): (request: JobRequest) => Promise<ExchangeResult> {
  const exchange = groupCommit<JobRequest, ExchangeResult>(BATCHES, async (all) => {
    const recordQueueState = empty.beginFetch()
    const { rows } = await pool.query<ResultRow>({
      name: 'exchanged-jobs',
      text: EXCHANGED_JOBS_SQL,
      values: [
        queue,
        all.map(({ id }) => id ?? null),
        all.map(({ token }) => token),
        all.map(({ wantsNext }) => wantsNext),
        Date.now(),
        lockMs,
        worker,
      ],
    })
    const nextJobs = rows.filter((row): row is QueueState & NextJob => row.token !== null)
    const [{ isLimited = true, nextDelayedAt = null, isMoreWaiting = true, notFinished = null } = {}] = rows
    recordQueueState({ isEmpty: !isLimited && !isMoreWaiting, nextDelayedAt })
    return {
      nextJobs: new Map(nextJobs.map((job) => [job.token, job])),
      notFinished: new Set(notFinished),
      isLimited,
      nextDelayedAt,
    }
  })
  return (request) => exchange([request])
}

/**
 * Returns the next jobs, the tokens of those that could not be finished, and the state of the queue. Locked rows are skipped: a
 * group must not wait for one row. Jobs of a flow or with a deduplication key are left to the library, which does more than delete
 * them. Delayed jobs that are due can be started from the next statement on. All lookups use the primary key or the index of waiting jobs.
 */
const EXCHANGED_JOBS_SQL = `
  with finished as (
    select * from unnest($2::text[], $3::text[], $4::boolean[]) with ordinality as row(id, token, wants_next, position)
  ), locked as (
    select job.queue, finished.id, finished.token, finished.wants_next, finished.position
    from finished join job on job.queue = $1 and job.id = finished.id
    where job.state = 'active' and job.lock_token = finished.token
      and job.parent_id is null and job.dedup_id is null and job.pending_deps = 0
    for update of job skip locked
  ), deleted as (
    delete from job using locked where job.queue = locked.queue and job.id = locked.id
  ), requests as (
    select token, row_number() over (order by position) as position from (
      select token, position from locked where wants_next
      union all
      select token, position from finished where id is null
    ) as all_requests
  ), limits as materialized (
    select exists (
      select from meta where queue = $1 and (field in ('concurrency', 'max') or field = 'paused' and value = '1')
    ) as are_set
  ), due_jobs as (
    select queue, id from job
    where queue = $1 and state = 'delayed' and process_at_ms <= $5 and exists (select from requests)
    for update skip locked
  ), promoted as (
    update job set state = 'waiting', delay_ms = 0 from due_jobs where job.queue = due_jobs.queue and job.id = due_jobs.id
  ), waiting_jobs as (
    select id from job
    where queue = $1 and state = 'waiting' and not (select are_set from limits)
    order by priority, seq
    limit (select count(*) from requests)
    for update skip locked
  ), assigned as (
    select waiting_jobs.id, requests.token
    from (select id, row_number() over () as position from waiting_jobs) as waiting_jobs join requests using (position)
  ), started as (
    update job set
      state = 'active', lock_token = assigned.token, locked_until_ms = $5::bigint + $6::bigint, processed_at_ms = $5,
      processed_by = $7, attempts_started = attempts_started + 1
    from assigned where job.queue = $1 and job.id = assigned.id
    returning job.*
  )
  select
    (
      select array_agg(token) from finished where id is not null and position not in (select position from locked)
    ) as "notFinished",
    (select are_set from limits) as "isLimited",
    ( -- Not with exists, which drops the order and so may use the primary key.
      select id from job where queue = $1 and state = 'waiting' and id not in (select id from waiting_jobs)
      order by priority, seq limit 1
    ) is not null as "isMoreWaiting",
    (
      select process_at_ms::float8 from job where queue = $1 and state = 'delayed' order by process_at_ms limit 1
    ) as "nextDelayedAt",
    started.lock_token as token, started.id, started.name, started.data::text as data, started.opts, started.progress,
    attempts_made as "attemptsMade", attempts_started as "attemptsStarted", processed_at_ms::float8 as "processedOn",
    added_at_ms::float8 as timestamp, delay_ms::float8 as delay, priority, failed_reason as "failedReason",
    coalesce(stacktrace::text, '[]') as stacktrace, coalesce(return_value::text, 'null') as returnvalue,
    case when parent_id is not null then json_build_object('id', parent_id, 'queueKey', parent_queue) end as parent,
    parent_key as "parentKey", scheduler_id as "repeatJobKey", dedup_id as "deduplicationId",
    deferred_failure as "deferredFailure", processed_by as "processedBy", stalled_count as "stalledCounter"
  from (values (1)) as one left join started on true`
