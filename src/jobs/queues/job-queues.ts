import { setTimeout as pause } from 'node:timers/promises'
import { type Job, Queue } from 'bullmq'
import type { Logger } from 'pino'
import { StartError } from '../../errors/start-error.js'
import { openOutageLog } from '../../logging/outage-log.js'
import { WatchedWorker } from '../bullmq/watched-worker.js'
import type { AnyJob, DataOf } from '../definitions.js'
import { openJobOptions } from './job-options.js'
import { QUEUES, type QueueName } from './queue-names.js'
import { checkQueueSchema, openPostgresStore, type QueueStore } from './queue-store.js'
import { openRedisStore } from './redis-store.js'
import { logSometimes } from './throttled-log.js'

export { migrateQueue } from './queue-store.js'

/** The queue did not acknowledge in time. It may have the job all the same. */
export class QueueAway extends Error {
  override name = 'QueueAway'
}

interface EnqueueOptions {
  /** Keeps a second, equal job out while the first is waiting or running. */
  readonly unique?: string
  /** Milliseconds until the job may begin. */
  readonly delay?: number
  /** Instead of that of the definition; a larger number comes later. */
  readonly priority?: number | undefined
}

export interface AddOptions {
  /** Milliseconds in which the queue has to acknowledge them. */
  readonly within?: number
  /**
   * They were added before, and nothing has come of it. A Redis that evicts may have thrown away what becomes of a job and kept its
   * name, which would keep every later one out.
   */
  readonly again?: boolean
  /** Of all of them, instead of that of the definition. */
  readonly priority?: number | undefined
}

/** An outbox row on its way to the queue. */
export interface OutboxJob {
  readonly id: number
  readonly queue: QueueName
  readonly name: string
  /** Milliseconds until the job may begin. */
  readonly delay?: number | undefined
}

export interface QueueCounts {
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
}

export interface ServeOptions {
  readonly concurrency: number
  /** Milliseconds a job is safe from others after its worker was last heard of. */
  readonly lock: number
  /** Milliseconds between two looks for jobs whose worker is gone. */
  readonly stalledCheck: number
  backoff(attemptsMade: number): number
}

export interface Schedule {
  readonly job: AnyJob
  readonly every: number
}

export interface JobQueues {
  readonly store: 'redis' | 'postgresql'
  /** Resolves once the queue has acknowledged the job; rejects with QueueAway after a second without. */
  enqueue<Definition extends AnyJob>(job: Definition, data: DataOf<Definition>, options?: EnqueueOptions): Promise<void>
  /**
   * Adds one job of this kind for each name, unless one waits. While one of the name is running, just one more follows it.
   */
  enqueueEach<Definition extends AnyJob>(
    job: Definition,
    each: readonly { readonly unique: string; readonly data: DataOf<Definition> }[],
    options?: AddOptions,
  ): Promise<void>
  /** Adds as many jobs of this kind as there is data; where they have names, each unless one of its name waits or is running. */
  enqueueAll<Definition extends AnyJob>(
    job: Definition,
    all: readonly DataOf<Definition>[],
    options?: { readonly names?: readonly string[]; readonly priority?: number | undefined },
  ): Promise<void>
  /** Adds one job per outbox row, unless there is one. */
  handOver(rows: readonly OutboxJob[], options?: AddOptions): Promise<void>
  /** Whether a job that was added under this unique name waits or is running. */
  isUnderWay(queue: QueueName, unique: string): Promise<boolean>
  counts(queue: QueueName): Promise<QueueCounts>
  /** The job that is next in line. */
  oldestWaiting(queue: QueueName): Promise<Job | undefined>
  /** The latest first. */
  failed(queue: QueueName, from: number, count: number): Promise<readonly Job[]>
  find(queue: QueueName, jobId: string): Promise<Job | undefined>
  /** How many workers serve the queue, in all processes. */
  workers(queue: QueueName): Promise<number>
  /** Of the jobs that wait, run or come later: how many no schedule has made. One that Redis has thrown away is none. */
  unscheduled(queue: QueueName): Promise<number>
  /** Makes sure that the schedules of a queue are there and go on; tells whether any had to be made. */
  keepSchedules(queue: QueueName, schedules: readonly Schedule[]): Promise<boolean>
  /** Ends the schedules of a queue that other code has made, and that nobody asks for. */
  endOtherSchedules(queue: QueueName, kept: readonly Schedule[]): Promise<void>
  /** False: messages of others should come later, so that there is room to take in those that are here. */
  hasRoom(): Promise<boolean>
  /** What the operator should change about the store, in sentences. */
  warnings(): Promise<readonly string[]>
  serve(queue: QueueName, run: (job: Job) => Promise<void>, options: ServeOptions): WatchedWorker
}

export interface QueueSettings {
  readonly redisUrl: string | undefined
  /** Replicas of Redis that must have what is enqueued; not set: none. */
  readonly redisReplicas?: number
  readonly databaseUrl: string
  readonly log: Logger
  /** In front of every key in Redis. */
  readonly prefix?: string
  /** Jobs beside those in definitions.ts; for tests. */
  readonly definitions?: readonly AnyJob[]
}

const ACKNOWLEDGED_WITHIN = 1_000
const ANSWERED_WITHIN = 5_000
/** To tell an outage from a single failure. */
const ANSWERS_WITHIN = 2_000
const OVERDUE = 10_000
/** Where a job is that has not come to its end. */
const UNFINISHED = ['wait', 'prioritized', 'delayed', 'active'] as const

/** Opens the queue on Redis when there is an address for it, else in the database. Neither has to answer: see QueueAway. */
export async function openJobQueues(settings: QueueSettings): Promise<JobQueues & { close(): Promise<void> }> {
  const { redisUrl, redisReplicas = 0, databaseUrl, log, prefix: pod = 'pod' } = settings
  const logError = logSometimes(log)
  const outages = openOutageLog({ name: 'queue', log, answers })
  const report = (where: string, error: Error) => {
    void outages.suspect(error).then((isOutage) => {
      if (!isOutage) logError(where, error)
    })
  }
  const optionsOf = openJobOptions(settings.definitions)
  if (redisUrl === undefined) await checkSchema(databaseUrl, logError)
  const store: QueueStore =
    redisUrl === undefined
      ? openPostgresStore(databaseUrl, report)
      : openRedisStore(redisUrl, { replicas: redisReplicas, report })

  await Promise.race([store.firstContact, pause(ACKNOWLEDGED_WITHIN, undefined, { ref: false })])

  type OpenQueue = Queue<unknown, void, string, unknown, void, string, ReturnType<QueueStore['backend']>, 'shared'>
  const open = new Map<QueueName, OpenQueue>()
  const underWay = new Set<Promise<unknown>>()

  function queueOf(name: QueueName): OpenQueue {
    const known = open.get(name)
    if (known) return known
    const streams = { events: { maxLen: 100 } }
    const queue: OpenQueue = new Queue(
      name,
      { connection: 'shared', prefix: store.prefixOf(pod, name), streams },
      store.backend,
    )
    queue.on('error', (error: Error) => report(name, error))
    open.set(name, queue)
    // A queue whose first contact failed never recovers; the next caller gets another.
    queue.waitUntilReady().catch(() => {
      if (open.get(name) === queue) open.delete(name)
      void queue.close().catch(() => {})
    })
    return queue
  }

  async function answers(): Promise<boolean> {
    return ask('inbound', (queue) => queue.getJobCounts('waiting'), ANSWERS_WITHIN).then(
      () => true,
      () => false,
    )
  }

  /** The race is around the whole call: parts of it have no time limit of their own. */
  async function ask<Answer>(
    name: QueueName,
    question: (queue: OpenQueue) => Promise<Answer>,
    within = ANSWERED_WITHIN,
  ): Promise<Answer> {
    if (!store.isReady()) throw away(new QueueAway('The queue is out of reach.'))
    const answer = question(queueOf(name))
    underWay.add(answer)
    const settled = () => void underWay.delete(answer)
    answer.then(settled, settled)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new QueueAway(`The queue did not answer within ${within} ms.`)), within)
    })
    try {
      return await Promise.race([answer, late])
    } catch (error) {
      if (isWrongData(error)) throw error
      if (error instanceof QueueAway) throw away(error)
      throw away(new QueueAway('The queue did not take the job or answer the question.', { cause: error }))
    } finally {
      clearTimeout(timer)
    }
  }

  function away(error: QueueAway): QueueAway {
    void outages.suspect(error)
    return error
  }

  /** Adds those whose name is free. A name is as good as free when its job is nowhere any more. */
  async function addNamed(
    name: QueueName,
    jobs: Parameters<OpenQueue['addBulk']>[0],
    { within = ACKNOWLEDGED_WITHIN, again = false }: AddOptions,
  ): Promise<void> {
    await ask(
      name,
      async (queue) => {
        const added = await queue.addBulk(jobs) // where a name was taken, its job
        if (!again) return
        const unfinished = new Set<string | undefined>(await queue.getRanges([...UNFINISHED], 0, -1))
        const freed = await Promise.all(added.map((job) => !unfinished.has(job.id) && job.removeDeduplicationKey()))
        const lost = jobs.filter((_, index) => freed[index])
        if (lost.length > 0) await queue.addBulk(lost)
      },
      within,
    )
  }

  return {
    store: store.kind,

    async enqueue(job, data, { unique, ...own } = {}) {
      const options = optionsOf(job, { ...own, ...(unique !== undefined && { deduplication: { id: unique } }) })
      const prefix = store.prefixOf(pod, job.queue)
      const add = (queue: OpenQueue) => store.safely(prefix, () => queue.add(job.name, data, options))
      await ask(job.queue, add, ACKNOWLEDGED_WITHIN)
    },

    async enqueueEach(job, each, options = {}) {
      if (each.length === 0) return
      const { priority } = options
      const jobs = each.map(({ unique, data }) => {
        const opts = optionsOf(job, { priority, deduplication: { id: unique, keepLastIfActive: true } })
        return { name: job.name, data, opts }
      })
      await addNamed(job.queue, jobs, options)
    },

    async enqueueAll(job, all, { names = [], priority } = {}) {
      const jobs = all.map((data, index) => {
        const id = names[index]
        const opts = optionsOf(job, { priority, ...(id !== undefined && { deduplication: { id } }) })
        return { name: job.name, data, opts }
      })
      await ask(job.queue, (queue) => queue.addBulk(jobs))
    },

    async handOver(rows, options = {}) {
      const queues = QUEUES.filter((name) => rows.some((row) => row.queue === name))
      const bulkJob = ({ id, queue, name, delay }: OutboxJob) => {
        const opts = optionsOf({ queue, name }, { delay, deduplication: { id: `outbox-${id}` } })
        return { name, data: { outboxId: id }, opts }
      }
      await Promise.all(
        queues.map((name) => addNamed(name, rows.filter((row) => row.queue === name).map(bulkJob), options)),
      )
    },

    async isUnderWay(name, unique) {
      return (await ask(name, (queue) => queue.getDeduplicationJobId(unique))) !== null
    },

    async counts(name) {
      const found = await ask(name, (queue) =>
        queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed'),
      )
      const count = (state: string) => found[state] ?? 0
      return {
        waiting: count('waiting') + count('prioritized'),
        active: count('active'),
        delayed: count('delayed'),
        failed: count('failed'),
      }
    },

    async oldestWaiting(name) {
      return ask(name, async (queue) => {
        const last = ((await queue.getJobCounts('waiting'))['waiting'] ?? 0) - 1
        const [job] = last < 0 ? [] : await queue.getJobs(['waiting'], last, last)
        return job
      })
    },

    failed: (name, from, count) => ask(name, (queue) => queue.getJobs(['failed'], from, from + count - 1)),
    find: (name, jobId) => ask(name, (queue) => queue.getJob(jobId)),
    workers: (name) => ask(name, (queue) => queue.getWorkersCount()),

    async unscheduled(name) {
      const jobs = await ask(name, (queue) => queue.getJobs(['waiting', 'active', 'delayed'], 0, 1_000))
      return jobs.filter((job) => job.repeatJobKey === undefined).length
    },

    async keepSchedules(name, schedules) {
      return ask(name, async (queue) => {
        const made = await Promise.all(
          schedules.map(async ({ job, every }) => {
            // One by one: the list of all of them asks for each as well, and for their names before.
            const schedule = await queue.getJobScheduler(job.name)
            const wait = (schedule?.next ?? 0) - Date.now()
            // A process whose clock is wrong may have made one that begins tomorrow.
            if (schedule?.every === every && wait > -OVERDUE && wait < every + OVERDUE) return false
            await queue.upsertJobScheduler(job.name, { every }, { name: job.name, data: {}, opts: optionsOf(job) })
            return true
          }),
        )
        return made.includes(true)
      })
    },

    async endOtherSchedules(name, kept) {
      const names = new Set(kept.map(({ job }) => job.name))
      await ask(name, async (queue) => {
        const found = await queue.getJobSchedulers()
        const others = found.filter(({ key }) => !names.has(key))
        await Promise.all(others.map(({ key }) => queue.removeJobScheduler(key)))
      })
    },

    hasRoom: () => ask('inbound', () => store.hasRoom()),

    async warnings() {
      if (!store.isReady()) throw new QueueAway('The queue is out of reach.')
      return store.warnings()
    },

    serve(name, run, { concurrency, lock, stalledCheck, backoff }) {
      // Workers that all look in the same moment need a connection each.
      const apart = 1 + QUEUES.indexOf(name) / 100
      const worker = new WatchedWorker(
        name,
        run,
        {
          connection: 'shared',
          prefix: store.prefixOf(pod, name),
          concurrency,
          lockDuration: lock,
          stalledInterval: Math.round(stalledCheck * apart),
          drainDelay: store.lookEvery * apart,
          maxStalledCount: 1_000, // suspects.ts has the limit; the default fails a job whose worker was killed twice
          runRetryDelay: 2_000, // the default of 15 s is how late a worker would notice that PostgreSQL is back
          removeOnComplete: { count: 0 }, // of a job that Redis has thrown away, with its own options
          settings: { backoffStrategy: backoff },
        },
        store.backend,
      )
      worker.on('error', (error: Error) => report(`worker ${name}`, error))
      return worker
    },

    async close() {
      outages.close()
      await Promise.race([Promise.allSettled(underWay), pause(ACKNOWLEDGED_WITHIN, undefined, { ref: false })])
      await Promise.allSettled([...open.values()].map((queue) => queue.close()))
      await store.close()
    },
  }
}

/** A database that is away now is somebody else's subject; one without our tables is not. */
async function checkSchema(databaseUrl: string, report: (where: string, error: Error) => void): Promise<void> {
  try {
    await checkQueueSchema(databaseUrl)
  } catch (error) {
    if (error instanceof StartError || !(error instanceof Error)) throw error
    report('start', error)
  }
}

/** PostgreSQL class 22: it understood and cannot store this. Asking again would not help. */
function isWrongData(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && /^22.{3}$/.test(error.code)
}
