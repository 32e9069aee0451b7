import type { JobJson } from 'bullmq'
import type pg from 'pg'
import { gather } from '../group-commit.js'

/** A job that is done, and whether who did it wants another one. */
interface Finished {
  readonly id: string
  readonly token: string
  readonly wantsNext: boolean
}

/** A job in the form in which the library reads it; the token is of who is to do it. */
type TakenJob = JobJson & { readonly token: string }

/** What became of those that were finished at the same moment. */
interface Turn {
  /** By their tokens. Nobody has one where nothing waits, or where somebody has said how many may be done at a time. */
  readonly taken: ReadonlyMap<string, TakenJob>
  /** Tokens of those that are not simply gone now: others hold them, or they are part of something. */
  readonly left: ReadonlySet<string>
}

interface Left {
  readonly left: readonly string[] | null
}

type TurnRow = Left & (TakenJob | { readonly token: null })

interface TurnOptions {
  readonly pool: Pick<pg.Pool, 'query'>
  readonly queue: string
  /** Milliseconds that a job belongs to who took it. */
  readonly lock: number
  readonly worker: string | undefined
}

/** As many as a worker may have in hand; and a second group may set out while the first is under way. */
const AT_A_TIME = { items: 256, bytes: Number.POSITIVE_INFINITY, atOnce: 2, sizeOf: () => 1 }

/**
 * Ends jobs that nothing is kept of and takes the next ones, all that come at the same moment with one statement. The library
 * has a transaction of fifteen statements for each job, and an event that nobody reads for each step of it: 800 µs of the
 * server.
 */
export function finishTogether({ pool, queue, lock, worker }: TurnOptions): (finished: Finished) => Promise<Turn> {
  const turn = gather<Finished, Turn>(AT_A_TIME, async (all) => {
    const { rows } = await pool.query<TurnRow>({
      name: 'finished-together',
      text: finishedTogether,
      values: [
        queue,
        all.map(({ id }) => id),
        all.map(({ token }) => token),
        all.map(({ wantsNext }) => wantsNext),
        Date.now(),
        lock,
        worker,
      ],
    })
    const taken = rows.filter((row): row is Left & TakenJob => row.token !== null)
    return { taken: new Map(taken.map((job) => [job.token, job])), left: new Set(rows[0]?.left) }
  })
  return (finished) => turn([finished])
}

/**
 * What somebody else holds at this moment is passed by: whoever has many rows must not wait for one. What is part of a flow, or holds a
 * name, has more to be done with than to delete it. Jobs whose time has come are waiting from the next statement on.
 */
const finishedTogether = `
  with finished as (
    select * from unnest($2::text[], $3::text[], $4::boolean[]) with ordinality as row(id, token, wants_next, place)
  ), held as (
    select job.queue, finished.id, finished.token, finished.wants_next, finished.place
    from finished join job on job.queue = $1 and job.id = finished.id
    where job.state = 'active' and job.lock_token = finished.token
      and job.parent_id is null and job.dedup_id is null and job.pending_deps = 0
    for update of job skip locked
  ), ended as (
    delete from job using held where job.queue = held.queue and job.id = held.id
  ), wanting as (
    select token, row_number() over (order by place) as place from held where wants_next
  ), due as (
    select queue, id from job
    where queue = $1 and state = 'delayed' and process_at_ms <= $5 and exists (select from wanting)
    for update skip locked
  ), begun as (
    update job set state = 'waiting', delay_ms = 0 from due where job.queue = due.queue and job.id = due.id
  ), free as (
    select id from job
    where queue = $1 and state = 'waiting' and not exists (
      select from meta where queue = $1 and (field in ('concurrency', 'max') or field = 'paused' and value = '1')
    )
    order by priority, seq
    limit (select count(*) from wanting)
    for update skip locked
  ), next as (
    select free.id, wanting.token
    from (select id, row_number() over () as place from free) as free join wanting using (place)
  ), taken as (
    update job set
      state = 'active', lock_token = next.token, locked_until_ms = $5::bigint + $6::bigint, processed_at_ms = $5,
      processed_by = $7, attempts_started = attempts_started + 1
    from next where job.queue = $1 and job.id = next.id
    returning job.*
  )
  select
    (select array_agg(token) from finished where place not in (select place from held)) as left,
    taken.lock_token as token, taken.id, taken.name, taken.data::text as data, taken.opts, taken.progress,
    attempts_made as "attemptsMade", attempts_started as "attemptsStarted", processed_at_ms::float8 as "processedOn",
    added_at_ms::float8 as timestamp, delay_ms::float8 as delay, priority, failed_reason as "failedReason",
    coalesce(stacktrace::text, '[]') as stacktrace, coalesce(return_value::text, 'null') as returnvalue,
    case when parent_id is not null then json_build_object('id', parent_id, 'queueKey', parent_queue) end as parent,
    parent_key as "parentKey", scheduler_id as "repeatJobKey", dedup_id as "deduplicationId",
    deferred_failure as "deferredFailure", processed_by as "processedBy", stalled_count as "stalledCounter"
  from (values (1)) as one left join taken on true`
