import { setTimeout as pause } from 'node:timers/promises'
import type { Job } from 'bullmq'
import type { ObservedWorker } from '../src/jobs/bullmq/observed-worker.js'
import { federationBackoff } from '../src/jobs/definitions.js'
import type { QueueName } from '../src/jobs/queues/queue-names.js'
import type { ServeOptions } from '../src/jobs/queues/serve-queue.js'
import { isDatabaseReachable } from '../src/persistence/database/database.js'
import { findSecondsSinceRun } from '../src/persistence/database/periodic-runs.js'
import type { RunningJob } from '../src/persistence/operations/processes.js'
import type { Pod } from '../src/pod/pod.js'
import { openAdaptiveConcurrency } from './adaptive-concurrency.js'
import { withDeadline } from './deadline.js'
import type { DirectDelivery, DirectHandler } from './direct-runs.js'
import { startSchedules } from './handlers/maintenance.js'
import { openInboundLoad } from './inbound-load.js'
import { inboundRunner, isInbound } from './inbound-runner.js'
import { openRunCounters } from './run-counters.js'
import { type HandlerTable, jobRunner } from './run-job.js'
import { startQueueSampling } from './sample-queues.js'
import { openSuspectQueue } from './suspects.js'
import { startSweeping } from './sweeper.js'

/** Jobs that run at a time. Those of the outbound queues mostly wait for sockets, so there are many. */
const CONCURRENCY: Readonly<Record<QueueName, number>> = {
  inbound: 32, // at least: see adaptive-concurrency.ts
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
  readonly lock: number
  /** Milliseconds between two searches for jobs whose worker is gone. */
  readonly stalledCheck: number
  /** Milliseconds a handler has. */
  readonly deadline: number
  /** Milliseconds after which a stopping process aborts its running jobs … */
  readonly abortAfter: number
  /** … and after which it stops waiting for them. */
  readonly closeWithin: number
  backoff(attemptsMade: number): number
}

const TIMING: Timing = {
  lock: 30_000,
  stalledCheck: 15_000,
  deadline: 45_000,
  abortAfter: 25_000,
  closeWithin: 28_000,
  backoff: (attemptsMade) => federationBackoff(attemptsMade),
}

export interface WorkersOptions {
  /** Handlers of the jobs of each served queue; jobs that carry messages need none. */
  readonly handlers: Readonly<Partial<Record<QueueName, HandlerTable>>>
  /** Work that this process does without a job after it has written the row; of the served queues only. */
  readonly direct?: readonly DirectHandler[]
  /** The same for deliveries. */
  readonly directDelivery?: DirectDelivery
  /** Not set: those of the configuration. */
  readonly queues?: readonly QueueName[]
  /** Replaces single times; for tests, which cannot wait for minutes. */
  readonly timing?: Partial<Timing>
}

export interface WorkersHealth {
  readonly ready: boolean
  readonly database: boolean
  readonly queue: boolean
  /** Seconds since the sweeper last ran, anywhere; null: never, or unknown. */
  readonly lastSweep: number | null
  /** As `RunningWorkers.unresponsive`. */
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

/** Longer than the deadline: while every slot runs a slow job, the worker sends no request. */
const ANSWERED_WITHIN_MS = 60_000
const SWEPT_WITHIN = 45
const CHECK_EVERY_MS = 250

/** Starts the workers of this process. */
export function startWorkers(pod: Pod, options: WorkersOptions): RunningWorkers {
  const timing = { ...TIMING, ...options.timing }
  const queues = options.queues ?? pod.config.workerQueues
  const ending = new AbortController()
  const stopping = new AbortController()
  const suspects = openSuspectQueue()
  const counters = openRunCounters()
  const load = openInboundLoad()

  /** Runs more jobs at a time while they carry few messages. */
  function serveAdaptively(queue: QueueName, run: (job: Job) => Promise<void>, serving: ServeOptions): ObservedWorker {
    const running = openAdaptiveConcurrency()
    const worker = pod.jobs.serve(
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

  function deliverDirectly({ atOnce, run }: DirectDelivery): () => void {
    const deliver = (podId: number) =>
      withDeadline(timing.deadline, stopping.signal, (signal) => run(pod, podId, signal))
    return pod.jobs.directRuns.deliveries.serve({
      atOnce: Math.min(atOnce, pod.config.workerConcurrency.outbound ?? atOnce),
      run: (podId) => counters.runDirectly('outbound', 'deliver', () => deliver(podId)),
    })
  }

  const workers = queues.map((queue) => {
    const handlers: HandlerTable = { probe: async () => {}, ...options.handlers[queue] }
    const runner = { handlers, suspects, deadline: timing.deadline, stopping: stopping.signal }
    const run = isInbound(queue) ? inboundRunner(pod, queue, { ...runner, load }) : jobRunner(pod, runner)
    const given = pod.config.workerConcurrency[queue]
    const serving = { ...timing, concurrency: given ?? CONCURRENCY[queue] }
    if (queue === 'inbound' && given === undefined) return serveAdaptively(queue, run, serving)
    return pod.jobs.serve(queue, (job) => counters.runJob(queue, job, run), serving)
  })
  const endDirectRuns = (options.direct ?? [])
    .filter(({ job }) => queues.includes(job.queue))
    .map(({ job, atOnce, open }) => {
      const run = open(pod, { deadline: timing.deadline, ending: ending.signal, stopping: stopping.signal, load })
      const { queue, name } = job
      return pod.jobs.directRuns.serve({
        queue,
        name,
        atOnce,
        run: (row) => counters.runDirectly(queue, name, () => run(row)),
      })
    })
  if (options.directDelivery !== undefined && queues.includes('outbound')) {
    endDirectRuns.push(deliverDirectly(options.directDelivery))
  }
  const hasMaintenanceQueue = queues.includes('maintenance')
  const schedules = hasMaintenanceQueue ? startSchedules(pod) : undefined
  const sweeping = hasMaintenanceQueue ? startSweeping(pod) : undefined
  const sampling = hasMaintenanceQueue ? startQueueSampling(pod) : undefined

  async function close(): Promise<void> {
    for (const end of endDirectRuns) end()
    ending.abort()
    const closed = Promise.all([
      ...[schedules?.stop(), sweeping?.stop(), sampling?.stop(), counters.directRunsEnded()],
      ...workers.map((worker) => worker.close()),
    ])
    const over = new AbortController()
    const ended = Promise.race([closed, allEndedOrUnreachable(over.signal)])
    await within(timing.abortAfter, ended)
    stopping.abort()
    await within(timing.closeWithin - timing.abortAfter, ended)
    over.abort()
  }

  /** During an outage of the queue its workers cannot close, and running jobs cannot be returned to it. */
  async function allEndedOrUnreachable(over: AbortSignal): Promise<void> {
    while (!over.aborted && (counters.runningJobs().length > 0 || (await queueReachable(pod)))) {
      await pause(CHECK_EVERY_MS, undefined, { signal: over }).catch(() => {})
    }
  }

  function unresponsive(): readonly QueueName[] {
    return queues.filter((_, index) => isUnresponsive(workers[index]))
  }

  return { close, health: () => readHealth(pod, unresponsive), unresponsive, runningJobs: counters.runningJobs }
}

async function readHealth(pod: Pod, listUnresponsive: () => readonly QueueName[]): Promise<WorkersHealth> {
  const [database, queue] = await Promise.all([isDatabaseReachable(pod.db), queueReachable(pod)])
  // The database may become unavailable between the two requests: that is part of the result, not an error.
  const lastSweep = database ? await findSecondsSinceRun(pod.db, 'sweep').catch(() => null) : null
  const isSwept = lastSweep !== null && lastSweep < SWEPT_WITHIN
  const unresponsive = listUnresponsive()
  return { ready: database && queue && isSwept && unresponsive.length === 0, database, queue, lastSweep, unresponsive }
}

function isUnresponsive(worker: ObservedWorker | undefined): boolean {
  return worker === undefined || !worker.isRunning() || Date.now() - worker.lastAnswerAt > ANSWERED_WITHIN_MS
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
