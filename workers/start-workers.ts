import { setTimeout as pause } from 'node:timers/promises'
import type { Job } from 'bullmq'
import type { ObservedWorker } from '../src/jobs/bullmq/observed-worker.js'
import { federationBackoff } from '../src/jobs/definitions.js'
import type { QueueName } from '../src/jobs/queues/queue-names.js'
import type { ServeOptions } from '../src/jobs/queues/serve-queue.js'
import { isDatabaseReachable } from '../src/persistence/database/database.js'
import { findSecondsSinceRun } from '../src/persistence/database/periodic-runs.js'
import type { Pod } from '../src/pod/pod.js'
import { openRoom } from './adaptive-concurrency.js'
import { lookAfterSchedules } from './handlers/maintenance.js'
import { inboundRunner, isInbound } from './inbound-runner.js'
import { countJob, noteJobWait } from './job-metrics.js'
import { type HandlerTable, jobRunner } from './run-job.js'
import { openSuspectLine } from './suspects.js'
import { startSweeping } from './sweeper.js'

/** Jobs in hand at a time. Slots of the outbound queues do nothing but wait for sockets, so there are many. */
const CONCURRENCY: Readonly<Record<QueueName, number>> = {
  inbound: 32, // at least: see room.ts
  'inbound-private': 8,
  fetch: 16,
  'fetch-unproven': 64,
  outbound: 128,
  'outbound-slow': 64,
  relay: 2, // a flood of relays must leave the database to others
  notify: 8,
  photos: 2,
  maintenance: 2,
}

interface Timing {
  /** Milliseconds a job is safe from others after its worker was last heard of. */
  readonly lock: number
  /** Milliseconds between two looks for jobs whose worker is gone. */
  readonly stalledCheck: number
  /** Milliseconds a handler has. */
  readonly deadline: number
  /** Milliseconds after which a stopping process takes the jobs in hand away from their handlers … */
  readonly grace: number
  /** … and after which it waits for nothing more. */
  readonly patience: number
  backoff(attemptsMade: number): number
}

const TIMING: Timing = {
  lock: 30_000,
  stalledCheck: 15_000,
  deadline: 45_000,
  grace: 25_000,
  patience: 28_000,
  backoff: (attemptsMade) => federationBackoff(attemptsMade),
}

export interface WorkersOptions {
  /** What to do with the jobs of each queue that is served; those that carry messages need none. */
  readonly handlers: Readonly<Partial<Record<QueueName, HandlerTable>>>
  /** Not set: those of the configuration. */
  readonly queues?: readonly QueueName[]
  /** What differs from the usual times; for tests, which cannot wait for minutes. */
  readonly timing?: Partial<Timing>
}

export interface WorkersHealth {
  readonly ready: boolean
  readonly database: boolean
  readonly queue: boolean
  /** Seconds since the sweeper last ran, anywhere; null: never, or unknown. */
  readonly lastSweep: number | null
  /** As `RunningWorkers.deaf`. */
  readonly deaf: readonly QueueName[]
}

export interface RunningWorkers {
  /** No new job; those in hand finish, or fail as an ordinary attempt when their time is over. */
  close(): Promise<void>
  health(): Promise<WorkersHealth>
  /** Queues of which their worker here has heard nothing for too long. */
  deaf(): readonly QueueName[]
}

/** Longer than the deadline: while every slot is busy with a slow job, nothing is asked of the queue. */
const HEARD_WITHIN_MS = 60_000
const SWEPT_WITHIN = 45
const ASK_EVERY_MS = 250

/** Lets this process work on the queues it serves. */
export function startWorkers(pod: Pod, options: WorkersOptions): RunningWorkers {
  const timing = { ...TIMING, ...options.timing }
  const queues = options.queues ?? pod.config.workerQueues
  const stopping = new AbortController()
  const suspects = openSuspectLine()
  let inHand = 0

  async function countedWhile(queue: QueueName, job: Job, run: (job: Job) => Promise<void>): Promise<void> {
    inHand += 1
    noteJobWait(queue, Date.now() - (job.timestamp + job.delay))
    const began = performance.now()
    try {
      await run(job)
      countJob(queue, 'done', performance.now() - began)
    } catch (error) {
      countJob(queue, 'failed', performance.now() - began)
      throw error
    } finally {
      inHand -= 1
    }
  }

  /** Takes more jobs in hand while they hold little. */
  function serveInRoom(queue: QueueName, run: (job: Job) => Promise<void>, serving: ServeOptions): ObservedWorker {
    const room = openRoom()
    const worker = pod.jobs.serve(
      queue,
      async (job) => {
        worker.concurrency = room.enter(job)
        try {
          await countedWhile(queue, job, run)
        } finally {
          room.leave(job)
        }
      },
      serving,
    )
    return worker
  }

  const workers = queues.map((queue) => {
    const handlers: HandlerTable = { probe: async () => {}, ...options.handlers[queue] }
    const runner = { handlers, suspects, deadline: timing.deadline, stopping: stopping.signal }
    const run = isInbound(queue) ? inboundRunner(pod, queue, runner) : jobRunner(pod, runner)
    const given = pod.config.workerConcurrency[queue]
    const serving = { ...timing, concurrency: given ?? CONCURRENCY[queue] }
    if (queue === 'inbound' && given === undefined) return serveInRoom(queue, run, serving)
    return pod.jobs.serve(queue, (job) => countedWhile(queue, job, run), serving)
  })
  const looksAfterAll = queues.includes('maintenance')
  const schedules = looksAfterAll ? lookAfterSchedules(pod) : undefined
  const sweeping = looksAfterAll ? startSweeping(pod) : undefined

  async function close(): Promise<void> {
    const closed = Promise.all([schedules?.stop(), sweeping?.stop(), ...workers.map((worker) => worker.close())])
    const over = new AbortController()
    const ended = Promise.race([closed, nobodyToWaitFor(over.signal)])
    await within(timing.grace, ended)
    stopping.abort()
    await within(timing.patience - timing.grace, ended)
    over.abort()
  }

  /** While the queue is away its workers cannot close; nothing is in hand then that could still be handed back. */
  async function nobodyToWaitFor(over: AbortSignal): Promise<void> {
    while (!over.aborted && (inHand > 0 || (await queueReachable(pod)))) {
      await pause(ASK_EVERY_MS, undefined, { signal: over }).catch(() => {})
    }
  }

  async function health(): Promise<WorkersHealth> {
    const [database, queue] = await Promise.all([isDatabaseReachable(pod.db), queueReachable(pod)])
    // It may go away between two questions, and whoever asks for health must hear that, not die of it.
    const lastSweep = database ? await findSecondsSinceRun(pod.db, 'sweep').catch(() => null) : null
    const isSwept = lastSweep !== null && lastSweep < SWEPT_WITHIN
    return {
      ready: database && queue && isSwept && deaf().length === 0,
      ...{ database, queue, lastSweep, deaf: deaf() },
    }
  }

  function deaf(): readonly QueueName[] {
    return queues.filter((_, index) => isDeaf(workers[index]))
  }

  return { close, health, deaf }
}

function isDeaf(worker: ObservedWorker | undefined): boolean {
  return worker === undefined || !worker.isRunning() || Date.now() - worker.lastAnswerAt > HEARD_WITHIN_MS
}

async function queueReachable({ jobs }: Pod): Promise<boolean> {
  return jobs.counts('maintenance').then(
    () => true,
    () => false,
  )
}

async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController()
  await Promise.race([work, pause(milliseconds, undefined, { signal: timer.signal }).catch(() => {})])
  timer.abort()
}
