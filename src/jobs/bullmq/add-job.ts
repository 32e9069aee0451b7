import type { PostgresQueueBackend } from 'bullmq'
import type pg from 'pg'

/** A job in the form in which the library passes it to its backend. */
type AddedJob = Parameters<PostgresQueueBackend['addJob']>[0]

/** Whether the job has no id, deduplication key, delay, flow or schedule of its own. All others are left to the library. */
export function isPlainJob({ id, parent, deduplicationId, repeatJobKey, opts, ...job }: AddedJob): boolean {
  const { delay = job.delay, lifo } = opts
  return ![id, parent, deduplicationId, repeatJobKey, delay, lifo].some(Boolean)
}

/** Adds a plain job with one named statement; returns its id. The function of the library calls four others. */
export async function addPlainJob(
  pool: Pick<pg.Pool, 'query'>,
  queue: string,
  { name, data, opts, timestamp, ...job }: AddedJob,
): Promise<string> {
  const { attempts = 1, priority = job.priority ?? 0 } = opts
  const { rows } = await pool.query<{ readonly id: string }>({
    name: 'added-job',
    text: ADDED_JOB_SQL,
    values: [queue, name, data, JSON.stringify(opts), priority, attempts, timestamp],
  })
  const [added] = rows
  if (added === undefined) throw new Error('The statement that adds a job has returned no id.')
  return added.id
}

/**
 * Writes the same row and notification as the library, without its two events, which nothing reads. It uses the lock and the id of the
 * library, so that jobs may be added both ways, also while a queue is being emptied.
 */
const ADDED_JOB_SQL = `
  with added as (
    insert into job (queue, id, seq, name, state, data, opts, priority, max_attempts, added_at_ms)
    select $1, next_job_id($1), nextval('job_seq'), $2, 'waiting', $3::jsonb, $4::jsonb, $5::integer, $6::integer, $7::bigint
    from pg_advisory_xact_lock_shared(hashtext('bullmq:finalization'), hashtext($1))
    returning id
  )
  select id, pg_notify('bullmq_jobs', $1) from added`
