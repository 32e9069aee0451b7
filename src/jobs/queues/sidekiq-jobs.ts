import { Redis } from 'ioredis'

/** What Sidekiq of a diaspora* pod has left in its Redis. */
export interface SidekiqJobs {
  /** Processes that have reported within a minute. */
  readonly processes: number
  /** Jobs that would still run, by class. */
  readonly waiting: Readonly<Record<string, number>>
  /** Jobs that Sidekiq has given up. */
  readonly dead: number
}

const QUEUES = ['urgent', 'high', 'medium', 'low', 'default'] as const
const SORTED_SETS = ['schedule', 'retry'] as const
const BATCH_SIZE = 1_000
const ALIVE_SECONDS = 60

/** Counts the jobs by reading commands only. */
export async function countSidekiqJobs(url: string): Promise<SidekiqJobs> {
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1, retryStrategy: () => null })
  redis.on('error', () => undefined) // the command reports it
  try {
    await redis.connect()
    const waiting: Record<string, number> = {}
    const count = async (read: (start: number) => Promise<readonly string[]>) => {
      for (let start = 0; ; start += BATCH_SIZE) {
        const jobs = await read(start)
        for (const job of jobs) waiting[classOf(job)] = (waiting[classOf(job)] ?? 0) + 1
        if (jobs.length < BATCH_SIZE) return
      }
    }
    for (const queue of QUEUES) await count((start) => redis.lrange(`queue:${queue}`, start, start + BATCH_SIZE - 1))
    for (const set of SORTED_SETS) await count((start) => redis.zrange(set, `${start}`, `${start + BATCH_SIZE - 1}`))
    return { processes: await countProcesses(redis), waiting, dead: await redis.zcard('dead') }
  } finally {
    redis.disconnect()
  }
}

async function countProcesses(redis: Redis): Promise<number> {
  const since = Date.now() / 1_000 - ALIVE_SECONDS
  const beats = await Promise.all((await redis.smembers('processes')).map((name) => redis.hget(name, 'beat')))
  return beats.filter((beat) => Number(beat ?? 0) > since).length
}

/** The class without the module of all workers; arguments may be private. */
function classOf(job: string): string {
  try {
    const { class: name } = JSON.parse(job)
    return /^[\w:]{1,100}$/.test(name) ? String(name).replace(/^Workers::/, '') : 'unreadable'
  } catch {
    return 'unreadable'
  }
}
