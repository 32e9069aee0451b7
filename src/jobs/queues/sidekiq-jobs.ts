import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'

/** Jobs that Sidekiq of a diaspora* pod has left in its Redis. */
export interface SidekiqJobs {
  /** Processes that have reported within a minute. */
  readonly processes: number
  /** Jobs that would still run, by class. */
  readonly waiting: Readonly<Record<string, number>>
  /** Jobs that Sidekiq has given up. */
  readonly dead: number
}

/** A job that would still run. */
export interface SidekiqJob {
  /** Class of the job without the module of all workers; `unreadable`: the job is not JSON of Sidekiq. */
  readonly name: string
  readonly args: readonly unknown[]
  /** Unique; of an unreadable job the hash of its text. */
  readonly id: string
  readonly createdAt: Date
  /** Undefined: now. */
  readonly dueAt: Date | undefined
}

const QUEUES = ['urgent', 'high', 'medium', 'low', 'default'] as const
const SORTED_SETS = ['schedule', 'retry'] as const
/** A job may hold some megabytes: the encrypted messages for all recipients of one pod. */
const BATCH_SIZE = 20
const ALIVE_SECONDS = 60

/** Counts the jobs by reading commands only. */
export async function countSidekiqJobs(url: string): Promise<SidekiqJobs> {
  return withRedis(url, async (redis) => {
    const waitingByName: Record<string, number> = {}
    for await (const jobs of listPages(redis)) {
      for (const { name } of jobs) waitingByName[name] = (waitingByName[name] ?? 0) + 1
    }
    return { processes: await countProcesses(redis), waiting: waitingByName, dead: await redis.zcard('dead') }
  })
}

/** Reads the jobs that would still run, some at a time, by reading commands only. */
export async function readSidekiqJobs(url: string, use: (jobs: readonly SidekiqJob[]) => Promise<void>): Promise<void> {
  await withRedis(url, async (redis) => {
    for await (const jobs of listPages(redis)) await use(jobs)
  })
}

async function withRedis<Result>(url: string, run: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1, retryStrategy: () => null })
  redis.on('error', () => undefined) // the command reports it
  try {
    await redis.connect()
    return await run(redis)
  } finally {
    redis.disconnect()
  }
}

async function* listPages(redis: Redis): AsyncGenerator<readonly SidekiqJob[]> {
  for (const queue of QUEUES) {
    for (let start = 0, length = BATCH_SIZE; length === BATCH_SIZE; start += BATCH_SIZE) {
      const jobs = await redis.lrange(`queue:${queue}`, start, start + BATCH_SIZE - 1)
      length = jobs.length
      yield jobs.map((job) => readJob(job, undefined))
    }
  }
  for (const set of SORTED_SETS) {
    for (let start = 0, length = BATCH_SIZE; length === BATCH_SIZE; start += BATCH_SIZE) {
      const keys = await redis.zrange(set, `${start}`, `${start + BATCH_SIZE - 1}`, 'WITHSCORES')
      length = keys.length / 2
      yield Array.from({ length }, (_, index) => readJob(keys[index * 2] ?? '', keys[index * 2 + 1]))
    }
  }
}

async function countProcesses(redis: Redis): Promise<number> {
  const since = Date.now() / 1_000 - ALIVE_SECONDS
  const beats = await Promise.all((await redis.smembers('processes')).map((name) => redis.hget(name, 'beat')))
  return beats.filter((beat) => Number(beat ?? 0) > since).length
}

function readJob(text: string, score: string | undefined): SidekiqJob {
  const dueAt = score === undefined ? undefined : timeOf(Number(score))
  try {
    const { class: name, args, jid, created_at: created } = JSON.parse(text)
    if (/^[\w:]{1,100}$/.test(name) && Array.isArray(args) && /^[\w-]{1,100}$/.test(jid)) {
      return { name: name.replace(/^Workers::/, ''), args, id: jid, createdAt: timeOf(Number(created)), dueAt }
    }
  } catch {
    // not JSON
  }
  const id = createHash('sha256').update(text).digest('hex')
  return { name: 'unreadable', args: [], id, createdAt: timeOf(Number.NaN), dueAt }
}

/** `since` is in seconds, or in milliseconds since Sidekiq 8. An unreadable time counts as 1970. */
function timeOf(since: number): Date {
  if (!Number.isFinite(since) || since < 0) return new Date(0)
  return new Date(Math.min(since > 100_000_000_000 ? since : since * 1_000, Date.UTC(9999, 0)))
}
