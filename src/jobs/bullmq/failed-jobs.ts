import type { Cluster, Redis } from 'ioredis'
import type pg from 'pg'
import { type JobSummary, SUMMARY_COLUMNS_SQL, SUMMARY_FIELDS, summaryOfFields, summaryOfRow } from './job-summaries.js'

/** A position in the failed jobs of a queue, which are in the order of their end and id. */
interface FailedJobPosition {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly id: string
}

export interface FailedJobPage {
  readonly order: 'newest first' | 'oldest first'
  /** Only jobs after this position, in this order. */
  readonly startAfter: FailedJobPosition
  readonly limit: number
  /** Only jobs that failed with this error. */
  readonly fault?: string | undefined
  /** Only jobs with the messages of this pod. */
  readonly pod?: string | undefined
}

/**
 * Reads failed jobs without their data. Those of outbox rows are left out: the row is the dead letter. The index of the library leads
 * to the position, so that a page costs the same anywhere in a long list.
 */
export type ReadFailedJobs = (queue: string, prefix: string, page: FailedJobPage) => Promise<readonly JobSummary[]>

interface FailedJobCount {
  /** The error of the jobs. */
  readonly fault: string | null
  /** The pod of their messages; null: unknown. */
  readonly pod: string | null
  /** The beginning of the hour in which they failed, in milliseconds since 1970. */
  readonly hour: number
  readonly count: number
}

export interface FailedJobSelection {
  /** Milliseconds since 1970. */
  readonly since: number
  readonly until: number
  readonly fault?: string | undefined
  readonly pod?: string | undefined
  /** Maximum number of failed jobs of this time that are read, the latest first. Jobs of outbox rows and with other errors count too. */
  readonly latest: number
}

export interface FailedJobCounts {
  readonly counts: readonly FailedJobCount[]
  /** There are older jobs, which were not read. */
  readonly isCut: boolean
}

/** Counts failed jobs without outbox rows by their errors, pods and hours. */
export type CountFailedJobs = (queue: string, prefix: string, selection: FailedJobSelection) => Promise<FailedJobCounts>

/** Returns those of the queues that have failed jobs: a list of dead letters reads no others. */
export type FindFailedQueues = (
  queues: readonly { readonly queue: string; readonly prefix: string }[],
) => Promise<readonly string[]>

const FAILED_QUEUES_SQL = `
  select queue from unnest($1::text[]) as input(queue)
  where exists (select from job where job.queue = input.queue and state = 'failed')`

export function postgresFailedQueues(pool: Pick<pg.Pool, 'query'>): FindFailedQueues {
  return async (queues) => {
    const { rows } = await pool.query(FAILED_QUEUES_SQL, [queues.map(({ queue }) => queue)])
    return rows.map(({ queue }) => queue)
  }
}

export function redisFailedQueues(redis: Pick<Redis | Cluster, 'exists'>): FindFailedQueues {
  return async (queues) => {
    const keyCounts = await Promise.all(queues.map(({ queue, prefix }) => redis.exists(`${prefix}:${queue}:failed`)))
    return queues.flatMap(({ queue }, index) => (keyCounts[index] === 1 ? [queue] : []))
  }
}

const ROW_NAMES = 'outbox-'

export function postgresFailedJobs(pool: Pick<pg.Pool, 'query'>): ReadFailedJobs {
  return async (queue, _prefix, { order, startAfter: { at, id }, limit, fault = null, pod = null }) => {
    const statement = order === 'newest first' ? newestFirst : oldestFirst
    const { rows } = await pool.query(statement, [queue, at, id, limit, fault, pod])
    return rows.map(summaryOfRow)
  }
}

const HOUR_MS = 3_600_000

/** One job more than wanted is read, to see whether there are older ones. */
const COUNT_FAILED_SQL = `
  with latest as materialized (
    select failed_reason, progress ->> 'pod' as pod, finished_at_ms - finished_at_ms % ${HOUR_MS} as hour,
      dedup_id is not null and dedup_id like '${ROW_NAMES}%' as is_of_row,
      row_number() over (order by finished_at_ms desc) > $5::bigint as is_beyond
    from job
    where queue = $1 and state = 'failed' and finished_at_ms >= $2 and finished_at_ms < $3
    order by finished_at_ms desc limit $5::bigint + 1
  )
  select failed_reason as fault, pod, hour, is_beyond,
    (count(*) filter (
      where not is_of_row and ($4::text is null or failed_reason = $4) and ($6::text is null or pod = $6)
    ))::integer as count
  from latest
  group by failed_reason, pod, hour, is_beyond`

export function postgresCountFailedJobs(pool: Pick<pg.Pool, 'query'>): CountFailedJobs {
  return async (queue, _prefix, { since, until, fault = null, pod = null, latest }) => {
    const { rows } = await pool.query(COUNT_FAILED_SQL, [queue, since, until, fault, latest, pod])
    return {
      counts: rows
        .filter((row) => !row.is_beyond && row.count > 0)
        .map((row) => ({ fault: row.fault, pod: row.pod, hour: Number(row.hour), count: row.count })),
      isCut: rows.some((row) => row.is_beyond),
    }
  }
}

function failedJobsSql(compare: '<' | '>', direction: 'asc' | 'desc'): string {
  return `
    select ${SUMMARY_COLUMNS_SQL}
    from job
    where queue = $1 and state = 'failed' and finished_at_ms ${compare}= $2
      and (finished_at_ms ${compare} $2 or id collate "C" ${compare} $3)
      and (dedup_id is null or dedup_id not like '${ROW_NAMES}%')
      and ($5::text is null or failed_reason = $5)
      and ($6::text is null or progress ->> 'pod' = $6)
    order by finished_at_ms ${direction}, id collate "C" ${direction}
    limit $4`
}

const newestFirst = failedJobsSql('<', 'desc')
const oldestFirst = failedJobsSql('>', 'asc')

/** Jobs that one run of the script reads: longer runs would delay all other clients of Redis. */
const JOBS_OF_RUN = 1_000

/** The pod in the progress of a job. Older versions and the library leave a number there, or nothing. */
const POD_OF_PROGRESS = `
  local function podOf(progress)
    local isRead, value = pcall(cjson.decode, progress)
    return isRead and type(value) == 'table' and value.pod or nil
  end`

/** Returns the fields and the id of the jobs that match, then whether the list ends here. An empty argument stands for any value. */
const READ_FAILED_SQL = `${POD_OF_PROGRESS}
  local newest, at, from = ARGV[1] == 'newest first', ARGV[2], tonumber(ARGV[3])
  local ids = newest and redis.call('ZREVRANGEBYSCORE', KEYS[1], at, '-inf', 'LIMIT', from, ARGV[4])
    or redis.call('ZRANGEBYSCORE', KEYS[1], at, '+inf', 'LIMIT', from, ARGV[4])
  local found = {}
  for _, id in ipairs(ids) do
    local job = redis.call('HMGET', KEYS[2] .. id, ${SUMMARY_FIELDS})
    local isOfRow = job[6] and string.sub(job[6], 1, ${ROW_NAMES.length}) == '${ROW_NAMES}'
    local isWanted = (ARGV[5] == '' or job[5] == ARGV[5]) and (ARGV[6] == '' or podOf(job[7]) == ARGV[6])
    if job[1] and isWanted and not isOfRow then
      job[8] = id
      found[#found + 1] = job
    end
  end
  return { found, #ids < tonumber(ARGV[4]) and 1 or 0 }`

export function redisFailedJobs(redis: Pick<Redis | Cluster, 'eval'>): ReadFailedJobs {
  return async (queue, prefix, { order, startAfter, limit, fault = '', pod = '' }) => {
    const summaries: JobSummary[] = []
    for (let from = 0; summaries.length < limit; from += JOBS_OF_RUN) {
      const keys = [`${prefix}:${queue}:failed`, `${prefix}:${queue}:`]
      const [jobs, isEnd] = (await redis.eval(
        READ_FAILED_SQL,
        2,
        ...keys,
        order,
        startAfter.at,
        from,
        JOBS_OF_RUN,
        fault,
        pod,
      )) as ScriptResult
      summaries.push(
        ...jobs
          .map((fields) => summaryOfFields(fields[7] ?? '', fields))
          .filter((job) => isAfter(job, startAfter, order)),
      )
      if (isEnd === 1) break
    }
    return summaries.slice(0, limit)
  }
}

/** Returns errors, ends and pods of the jobs that match, then whether there are older jobs. */
const COUNT_FAILED_SCRIPT = `${POD_OF_PROGRESS}
  local wanted = tonumber(ARGV[4])
  local ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', ARGV[3], wanted + 1)
  local found = {}
  for place = 1, math.min(#ids, wanted) do
    local job = redis.call('HMGET', KEYS[2] .. ids[place], 'failedReason', 'finishedOn', 'deid', 'progress')
    local isOfRow = job[3] and string.sub(job[3], 1, ${ROW_NAMES.length}) == '${ROW_NAMES}'
    local pod = podOf(job[4])
    local isWanted = (ARGV[5] == '' or job[1] == ARGV[5]) and (ARGV[6] == '' or pod == ARGV[6])
    if job[2] and isWanted and not isOfRow then found[#found + 1] = { job[1], job[2], pod or false } end
  end
  return { found, #ids > wanted and 1 or 0 }`

export function redisCountFailedJobs(redis: Pick<Redis | Cluster, 'eval'>): CountFailedJobs {
  return async (queue, prefix, { since, until, fault: wantedFault = '', pod: wantedPod = '', latest }) => {
    const counts = new Map<string, FailedJobCount>()
    let readJobs = 0
    let hasOlder = true
    while (hasOlder && readJobs < latest) {
      const jobsOfRun = Math.min(JOBS_OF_RUN, latest - readJobs)
      const keys = [`${prefix}:${queue}:failed`, `${prefix}:${queue}:`]
      const [jobs, more] = (await redis.eval(
        COUNT_FAILED_SCRIPT,
        2,
        ...keys,
        `(${until}`,
        since,
        readJobs,
        jobsOfRun,
        wantedFault,
        wantedPod,
      )) as ScriptResult
      for (const [fault = null, finishedAt, pod = null] of jobs) {
        const hour = Number(finishedAt) - (Number(finishedAt) % HOUR_MS)
        const key = JSON.stringify([fault, pod, hour])
        counts.set(key, { fault, pod, hour, count: (counts.get(key)?.count ?? 0) + 1 })
      }
      readJobs += jobsOfRun
      hasOlder = more === 1
    }
    return { counts: [...counts.values()], isCut: hasOlder }
  }
}

type ScriptResult = readonly [readonly (string | null)[][], 0 | 1]

/** The script reads from the millisecond of the position; jobs of that millisecond before it are dropped here. */
function isAfter(
  { id, finishedAt }: Pick<JobSummary, 'id' | 'finishedAt'>,
  startAfter: FailedJobPosition,
  order: FailedJobPage['order'],
): boolean {
  if (finishedAt !== startAfter.at) return true
  return order === 'newest first' ? id < startAfter.id : id > startAfter.id
}
