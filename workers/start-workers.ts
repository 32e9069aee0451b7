import { setTimeout as pause } from 'node:timers/promises'
import type { Job } from 'bullmq'
import type { ObservedWorker } from '../src/jobs/bullmq/observed-worker.js'
import { federationBackoff } from '../src/jobs/definitions.js'
import { type InboundQueue, isInboundQueue, type QueueName } from '../src/jobs/queues/queue-names.js'
import type { ServeOptions } from '../src/jobs/queues/serve-queue.js'
import { isDatabaseReachable } from '../src/persistence/database/database.js'
import { SWEEP_LIMITS } from '../src/persistence/database/limits.js'
import { findSecondsSinceRun } from '../src/persistence/database/periodic-runs.js'
import type { RunningJob } from '../src/persistence/operations/processes.js'
import type { Services } from '../src/services/services.js'
import { openAdaptiveConcurrency } from './adaptive-concurrency.js'
import { startSchedules } from './handlers/maintenance.js'
import type { InProcessDelivery, InProcessHandler } from './in-process-runs/run-in-groups.js'
import { startInProcessRuns } from './in-process-runs/start-in-process-runs.js'
import { openInboundLoad } from './inbound-load.js'
import { createInboundRunner } from './inbound-runner.js'
import { putBackDelay } from './put-back.js'
import { openRunCounters } from './run-counters.js'
import { createJobRunner, type HandlerTable } from './run-job.js'
import { startQueueSampling } from './sample-queues.js'
import { createSuspectRunner } from './suspects.js'
import { startSweeping, startSweepingCopy } from './sweeper.js'

/** Jobs that run at a time. Those of the outbound queues mostly wait for sockets, so there are many. */
const CONCURRENCY: Readonly<Record<QueueName, number>> = {
  inbound: 32, // of both inbound queues at least: see adaptive-concurrency.ts
  'inbound-private': 8,
  fetch: 16,
  'fetch-unproven': 64,
  outbound: 128,
  'outbound-slow': 64,
  relay: 2, // a flood of relays must leave the database to others
  notify: 8,
  mail: 4, // MAIL_LIMIT bounds their number
  photos: 2,
  maintenance: 2,
}

interface Timing {
  /** Milliseconds a job is locked after the last heartbeat of its worker. */
  readonly lockMs: number
  /** Milliseconds between two searches for jobs whose worker is gone. */
  readonly stalledCheckMs: number
  /** Milliseconds a handler has. */
  readonly timeoutMs: number
  /** Milliseconds after which a stopping process aborts its running jobs. */
  readonly abortAfterMs: number
  /** Milliseconds after which a stopping process no longer waits for aborted jobs. */
  readonly closeWithinMs: number
  backoff(attemptsMade: number): number
  /** Milliseconds until a job that needs a newer version is taken again. */
  putBackDelay(timesPutBack: number): number
}

const TIMING: Timing = {
  lockMs: 30_000,
  stalledCheckMs: 15_000,
  timeoutMs: 45_000,
  abortAfterMs: 25_000,
  closeWithinMs: 28_000,
  backoff: (attemptsMade) => federationBackoff(attemptsMade),
  putBackDelay: (timesPutBack) => putBackDelay(timesPutBack),
}

export interface WorkersOptions {
  /** Handlers of the jobs of each served queue; messages have no handler: see `inbound-runner.ts`. */
  readonly handlers: Readonly<Partial<Record<QueueName, HandlerTable>>>
  /** Work that this process does without a job after it has written the row; of the served queues only. */
  readonly inProcessHandlers?: readonly InProcessHandler[]
  /** Deliveries that this process does without a job; for served queues only. */
  readonly inProcessDelivery?: InProcessDelivery
  /** Not set: the queues of the configuration. */
  readonly queues?: readonly QueueName[]
  /** Replaces single times; for tests, which cannot wait for minutes. */
  readonly timing?: Partial<Timing>
}

export interface WorkersHealth {
  readonly isReady: boolean
  readonly hasDatabase: boolean
  readonly hasQueue: boolean
  /** Seconds since the sweeper last ran, anywhere; null: never, or unknown. */
  readonly lastSweep: number | null
  /** Queues as in `RunningWorkers.unresponsive`. */
  readonly unresponsive: readonly QueueName[]
}

export interface RunningWorkers {
  /** Starts no new job. Running ones finish, or fail as an ordinary attempt when their time is over. */
  close(): Promise<void>
  health(): Promise<WorkersHealth>
  /** Queues that have not answered the worker of this process for too long. */
  unresponsive(): readonly QueueName[]
  /** The jobs that this process runs now, without their data. */
  runningJobs(): readonly RunningJob[]
}

/** Above the time limit of a job: while all slots are busy, the worker sends no request to the queue. */
const ANSWERED_WITHIN_MS = 60_000
const CHECK_INTERVAL_MS = 250

/** Starts the workers of this process. */
export function startWorkers(services: Services, options: WorkersOptions): RunningWorkers {
  const timing = { ...TIMING, ...options.timing }
  const queues = options.queues ?? services.config.workerQueues
  const stopping = new AbortController()
  const abortRunning = new AbortController()
  const runSuspect = createSuspectRunner()
  const counters = openRunCounters()
  const load = openInboundLoad()

  /** Runs more jobs at a time while they carry few messages. */
  function serveAdaptively(
    queue: InboundQueue,
    run: (job: Job) => Promise<void>,
    serving: ServeOptions,
  ): ObservedWorker {
    const running = openAdaptiveConcurrency(queue)
    const worker = services.jobs.serve(
      queue,
      async (job) => {
        worker.concurrency = running.begin(job)
        try {
          await counters.runJob(queue, job, run)
        } finally {
          running.end(job)
        }
      },
      serving,
    )
    return worker
  }

  const workers = queues.map((queue) => {
    const handlers: HandlerTable = { probe: async () => {}, ...options.handlers[queue] }
    const { timeoutMs, putBackDelay } = timing
    const runner = { handlers, runSuspect, timeoutMs, putBackDelay, abortSignal: abortRunning.signal }
    const run = isInboundQueue(queue)
      ? createInboundRunner(services, queue, { ...runner, load })
      : createJobRunner(services, runner)
    const configuredConcurrency = services.config.workerConcurrency[queue]
    const serving = { ...timing, concurrency: configuredConcurrency ?? CONCURRENCY[queue] }
    if (isInboundQueue(queue) && configuredConcurrency === undefined) return serveAdaptively(queue, run, serving)
    return services.jobs.serve(queue, (job) => counters.runJob(queue, job, run), serving)
  })
  const endInProcessRuns = startInProcessRuns(services, {
    queues,
    handlers: options.inProcessHandlers,
    delivery: options.inProcessDelivery,
    limits: {
      timeoutMs: timing.timeoutMs,
      stopping: stopping.signal,
      abortSignal: abortRunning.signal,
      load,
    },
    counters,
  })
  const hasMaintenanceQueue = queues.includes('maintenance')
  const schedules = hasMaintenanceQueue ? startSchedules(services) : undefined
  const sweepCopy = () => (services.config.isolated ? startSweepingCopy(services, queues) : undefined)
  const sweeping = hasMaintenanceQueue ? startSweeping(services) : sweepCopy()
  const sampling = hasMaintenanceQueue ? startQueueSampling(services) : undefined

  async function close(): Promise<void> {
    endInProcessRuns()
    stopping.abort()
    const closing = Promise.all([
      schedules?.stop(),
      sweeping?.stop(),
      sampling?.stop(),
      counters.inProcessRunsEnded(),
      ...workers.map((worker) => worker.close()),
    ])
    const stopWaiting = new AbortController()
    const endOfClosing = Promise.race([closing, waitUntilIdleAndQueueUnreachable(stopWaiting.signal)])
    await waitAtMost(timing.abortAfterMs, endOfClosing)
    abortRunning.abort()
    await waitAtMost(timing.closeWithinMs - timing.abortAfterMs, endOfClosing)
    stopWaiting.abort()
  }

  /** During an outage of the queue its workers cannot close, and running jobs cannot be returned to it. */
  async function waitUntilIdleAndQueueUnreachable(stopWaiting: AbortSignal): Promise<void> {
    while (!stopWaiting.aborted && (counters.runningJobs().length > 0 || (await isQueueReachable(services)))) {
      await pause(CHECK_INTERVAL_MS, undefined, { signal: stopWaiting }).catch(() => {})
    }
  }

  function listUnresponsive(): readonly QueueName[] {
    return queues.filter((_, index) => isUnresponsive(workers[index]))
  }

  return {
    close,
    health: () => readHealth(services, listUnresponsive),
    unresponsive: listUnresponsive,
    runningJobs: counters.runningJobs,
  }
}

async function readHealth(services: Services, listUnresponsive: () => readonly QueueName[]): Promise<WorkersHealth> {
  const [hasDatabase, hasQueue] = await Promise.all([isDatabaseReachable(services.db), isQueueReachable(services)])
  // The database may become unavailable between the two requests: that is part of the result, not an error.
  const lastSweep = hasDatabase ? await findSecondsSinceRun(services.db, 'sweep').catch(() => null) : null
  const isSwept = lastSweep !== null && lastSweep < SWEEP_LIMITS.staleSeconds
  const unresponsive = listUnresponsive()
  const isReady = hasDatabase && hasQueue && isSwept && unresponsive.length === 0
  return { isReady, hasDatabase, hasQueue, lastSweep, unresponsive }
}

function isUnresponsive(worker: ObservedWorker | undefined): boolean {
  return worker === undefined || !worker.isRunning() || Date.now() - worker.lastAnswerAt > ANSWERED_WITHIN_MS
}

async function isQueueReachable({ jobs }: Services): Promise<boolean> {
  return jobs.counts('maintenance').then(
    () => true,
    () => false,
  )
}

async function waitAtMost(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController()
  await Promise.race([work, pause(milliseconds, undefined, { signal: timer.signal }).catch(() => {})])
  timer.abort()
}
