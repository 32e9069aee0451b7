import type { AnyJob, DataOf } from '../definitions.js'
import { versionedData } from '../job-version.js'
import type { OptionsOf } from './job-options.js'
import type { OpenQueue, QueueClient } from './queue-client.js'
import { QUEUES, type QueueName } from './queue-names.js'
import type { QueueStore } from './queue-store.js'
import { QueueDrained } from './queue-unavailable.js'

interface AddOneOptions {
  /** A second job with the key is not added while the first is waiting or running. */
  readonly deduplicationKey?: string
  /** Milliseconds until the job may begin. */
  readonly delay?: number
  /** Replaces the priority of the definition. Jobs with a larger number run later. */
  readonly priority?: number | undefined
}

export interface AddOptions {
  /** Milliseconds in which the queue has to acknowledge the jobs. */
  readonly withinMs?: number
  /**
   * The jobs were added before, without an effect. A Redis that evicts keys may have lost a job and kept its deduplication key,
   * which would keep every later one out.
   */
  readonly mayExist?: boolean
  /** Priority of all these jobs, instead of that of the definition. */
  readonly priority?: number | undefined
}

/** An outbox row that becomes a job. */
export interface OutboxRow {
  readonly id: number
  readonly queue: QueueName
  readonly name: string
  /** Milliseconds until the job may begin. */
  readonly delay?: number | undefined
  /** Set if this process has just written the row; the queue gets neither data nor trace. */
  readonly data?: unknown
  readonly trace?: string | null
}

export interface JobAdding {
  /** Resolves once the queue has acknowledged the job; rejects with QueueUnavailable after a second without. */
  add<Definition extends AnyJob>(job: Definition, data: DataOf<Definition>, options?: AddOneOptions): Promise<void>
  /** Adds one job for each key, unless one waits. While one with the key is running, exactly one more follows it. */
  addEach<Definition extends AnyJob>(
    job: Definition,
    each: readonly { readonly deduplicationKey: string; readonly data: DataOf<Definition> }[],
    options?: AddOptions,
  ): Promise<void>
  /** Adds one job for each data. A job with a deduplication key is left out while another one with this key waits or is running. */
  addAll<Definition extends AnyJob>(
    job: Definition,
    all: readonly DataOf<Definition>[],
    options?: {
      readonly deduplicationKeys?: readonly string[]
      /** The jobs are parts of a job that the queue has accepted: they are also added while the queue is being drained. */
      readonly canDivide?: boolean
    } & Pick<AddOptions, 'priority' | 'withinMs'>,
  ): Promise<void>
  /** Adds one job per outbox row, unless there is one. */
  addOutboxRows(rows: readonly OutboxRow[], options?: AddOptions): Promise<void>
  /** Refuses new work for these queues with QueueDrained, and accepts it for all others. */
  refuseJobsFor(queues: readonly QueueName[]): void
  acceptsJobs(queue: QueueName): boolean
}

/** The lists of jobs that have not ended. */
const UNFINISHED = ['wait', 'prioritized', 'delayed', 'active'] as const

interface AddingOptions {
  readonly client: QueueClient
  readonly store: QueueStore
  readonly prefix: string
  readonly optionsOf: OptionsOf
  /** Timeout of jobs that are added without one of their own. */
  readonly acknowledgedWithinMs: number
}

/** Adds jobs to their queues, with the options of their definitions. */
export function createJobAdding(options: AddingOptions): JobAdding {
  const { client, store, prefix, optionsOf, acknowledgedWithinMs } = options
  let drainedQueues: ReadonlySet<QueueName> = new Set()

  function requireAccepted(name: QueueName): void {
    if (drainedQueues.has(name)) throw new QueueDrained(`The queue ${name} is being drained and accepts no jobs.`)
  }

  /** Adds the jobs whose deduplication key is free, or belongs to a job that the queue has lost. */
  async function addUnique(
    name: QueueName,
    jobs: Parameters<OpenQueue['addBulk']>[0],
    { withinMs = acknowledgedWithinMs, mayExist = false }: AddOptions,
  ): Promise<void> {
    requireAccepted(name)
    await client.request(
      name,
      async (queue) => {
        const addedJobs = await queue.addBulk(jobs) // the existing job where the key was taken
        if (!mayExist) return
        const unfinishedIds = new Set<string | undefined>(await queue.getRanges([...UNFINISHED], 0, -1))
        const freedKeys = await Promise.all(
          addedJobs.map((job) => !unfinishedIds.has(job.id) && job.removeDeduplicationKey()),
        )
        const lostJobs = jobs.filter((_, index) => freedKeys[index])
        if (lostJobs.length > 0) await queue.addBulk(lostJobs)
      },
      { withinMs },
    )
  }

  function jobOfRow({ id, queue, name, delay }: OutboxRow) {
    const opts = optionsOf({ queue, name }, { delay, deduplication: { id: `outbox-${id}` } })
    return { name, data: { outboxId: id }, opts }
  }

  return {
    async add(job, data, { deduplicationKey, ...own } = {}) {
      requireAccepted(job.queue)
      const options = optionsOf(job, {
        ...own,
        ...(deduplicationKey !== undefined && { deduplication: { id: deduplicationKey } }),
      })
      const keys = store.prefixOf(prefix, job.queue)
      const add = (queue: OpenQueue) => store.safely(keys, () => queue.add(job.name, versionedData(job, data), options))
      await client.request(job.queue, add, { withinMs: acknowledgedWithinMs })
    },

    async addEach(job, each, options = {}) {
      if (each.length === 0) return
      const { priority } = options
      const jobs = each.map(({ deduplicationKey, data }) => {
        const opts = optionsOf(job, { priority, deduplication: { id: deduplicationKey, keepLastIfActive: true } })
        return { name: job.name, data: versionedData(job, data), opts }
      })
      await addUnique(job.queue, jobs, options)
    },

    async addAll(job, all, { deduplicationKeys = [], priority, withinMs, canDivide = false } = {}) {
      if (!canDivide) requireAccepted(job.queue)
      const jobs = all.map((data, index) => {
        const id = deduplicationKeys[index]
        const opts = optionsOf(job, { priority, ...(id !== undefined && { deduplication: { id } }) })
        return { name: job.name, data: versionedData(job, data), opts }
      })
      await client.request(job.queue, (queue) => queue.addBulk(jobs), withinMs === undefined ? {} : { withinMs })
    },

    async addOutboxRows(rows, options = {}) {
      const queues = QUEUES.filter((name) => rows.some((row) => row.queue === name))
      await Promise.all(
        queues.map((name) => addUnique(name, rows.filter((row) => row.queue === name).map(jobOfRow), options)),
      )
    },

    refuseJobsFor(queues) {
      drainedQueues = new Set(queues)
    },
    acceptsJobs: (queue) => !drainedQueues.has(queue),
  }
}
