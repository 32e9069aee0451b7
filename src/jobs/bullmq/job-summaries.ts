import type { Job } from 'bullmq'
import type { Cluster, Redis } from 'ioredis'
import type pg from 'pg'

/** A job without its data, which may have a hundred kilobytes. */
export interface JobSummary {
  readonly id: string
  readonly name: string
  /** Milliseconds since 1970, like `finishedAt`. */
  readonly addedAt: number
  /** Null: it has not ended. */
  readonly finishedAt: number | null
  /** Ended attempts. */
  readonly attempts: number
  /** The error of the last attempt. */
  readonly fault: string | null
  /** The deduplication key with which it was added. */
  readonly deduplicationKey: string | null
  readonly origin: JobOrigin
}

/** Where a job comes from, as its last run has recorded it. Null: unknown. */
export interface JobOrigin {
  /** The host of the pod that has sent the message, by its unverified author. */
  readonly pod: string | null
  /** The trace of the request that has added it. */
  readonly trace: string | null
}

/** Records the origin of a job in its progress, which lists read without the data of the job. */
export async function saveOrigin(job: Pick<Job, 'updateProgress'>, origin: JobOrigin): Promise<void> {
  await job.updateProgress({ ...origin })
}

/** Reads the progress of a job, as a value or as the JSON of Redis. */
export function readOrigin(progress: unknown): JobOrigin {
  const { pod = null, trace = null } = Object(typeof progress === 'string' ? JSON.parse(progress) : progress)
  return { pod, trace }
}

/** Reads the jobs with these ids, in their order; ended ones are left out. */
export type ReadSummaries = (queue: string, prefix: string, ids: readonly string[]) => Promise<readonly JobSummary[]>

/** The columns of the library's table for `summaryOfRow`; the data, which may be stored apart, is not touched. */
export const SUMMARY_COLUMNS_SQL =
  'id, name, added_at_ms, finished_at_ms, attempts_made, failed_reason, dedup_id, progress'

export function summaryOfRow(row: pg.QueryResultRow): JobSummary {
  return {
    id: row.id,
    name: row.name,
    addedAt: Number(row.added_at_ms),
    finishedAt: row.finished_at_ms === null ? null : Number(row.finished_at_ms),
    attempts: row.attempts_made,
    fault: row.failed_reason,
    deduplicationKey: row.dedup_id,
    origin: readOrigin(row.progress),
  }
}

/** The fields of a job in Redis for `summaryOfFields`, as arguments of a Lua script. */
export const SUMMARY_FIELDS = `'name', 'timestamp', 'finishedOn', 'atm', 'failedReason', 'deid', 'progress'`

/** A field that the job does not have is null. */
export function summaryOfFields(id: string, fields: readonly (string | null | undefined)[]): JobSummary {
  const [name, addedAt, finishedAt, attempts, fault, deduplicationKey, progress] = fields
  return {
    id,
    name: name ?? '',
    addedAt: Number(addedAt),
    finishedAt: typeof finishedAt === 'string' ? Number(finishedAt) : null,
    attempts: Number(attempts ?? 0),
    fault: fault ?? null,
    deduplicationKey: deduplicationKey ?? null,
    origin: readOrigin(progress),
  }
}

const SUMMARIES_SQL = `
  select ${SUMMARY_COLUMNS_SQL}
  from unnest($2::text[]) with ordinality as requested(id, position)
  join job using (id)
  where job.queue = $1
  order by position`

export function postgresSummaries(pool: Pick<pg.Pool, 'query'>): ReadSummaries {
  return async (queue, _prefix, ids) => {
    const { rows } = await pool.query(SUMMARIES_SQL, [queue, [...ids]])
    return rows.map(summaryOfRow)
  }
}

/** Returns the ids of the jobs that run next: the first without a priority, and the first of those with one. */
export type FindNextJobs = (queue: string, prefix: string) => Promise<readonly string[]>

/** The library finds the first job of a list only by counting the list. */
const NEXT_JOBS_SQL = `
  (select id from job where queue = $1 and state = 'waiting' and priority = 0 order by seq limit 1)
  union all
  (select id from job where queue = $1 and state = 'waiting' and priority > 0 order by priority, seq limit 1)`

export function postgresNextJobs(pool: Pick<pg.Pool, 'query'>): FindNextJobs {
  return async (queue) => {
    const { rows } = await pool.query(NEXT_JOBS_SQL, [queue])
    return rows.map(({ id }) => id)
  }
}

const NEXT_JOBS_SCRIPT = `
  local found = redis.call('LRANGE', KEYS[1], -1, -1)
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, 0)) do
    found[#found + 1] = id
  end
  return found`

export function redisNextJobs(redis: Pick<Redis | Cluster, 'eval'>): FindNextJobs {
  return async (queue, prefix) => {
    const keys = [`${prefix}:${queue}:wait`, `${prefix}:${queue}:prioritized`]
    return (await redis.eval(NEXT_JOBS_SCRIPT, keys.length, ...keys)) as readonly string[] // ids of jobs
  }
}

/** One script for many jobs: a command for each job would take ten times as long. */
const READ_FIELDS_SQL = `
  local found = {}
  for index, id in ipairs(ARGV) do
    found[index] = redis.call('HMGET', KEYS[1] .. id, ${SUMMARY_FIELDS})
  end
  return found`

export function redisSummaries(redis: Pick<Redis | Cluster, 'eval'>): ReadSummaries {
  return async (queue, prefix, ids) => {
    if (ids.length === 0) return []
    const jobFields = (await redis.eval(READ_FIELDS_SQL, 1, `${prefix}:${queue}:`, ...ids)) as (string | null)[][] // one for each id
    return jobFields.flatMap((fields, index) => {
      const hasEnded = typeof fields[0] !== 'string' // or the job was evicted
      return hasEnded ? [] : summaryOfFields(ids[index] ?? '', fields)
    })
  }
}
