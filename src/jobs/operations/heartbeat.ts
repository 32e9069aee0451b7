import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { performance, type RecordableHistogram } from 'node:perf_hooks'
import { singleFlight } from '../../concurrency/single-flight.js'
import { readSoftware } from '../../config/software.js'
import { recordLoopLag } from '../../logging/loop-lag.js'
import { listSlowStatements } from '../../persistence/database/slow-statements.js'
import {
  deleteProcess,
  type PodClock,
  type ProcessStatus,
  type RunningJob,
  recordHeartbeat,
  type ThreadLoad,
} from '../../persistence/operations/processes.js'
import type { RequestedQueueState } from '../../persistence/operations/queue-controls.js'
import { listPictureStores } from '../../persistence/photos/open-pictures.js'
import type { Services } from '../../services/services.js'
import type { JobQueues } from '../queues/job-queues.js'
import { isQueueName, type QueueName } from '../queues/queue-names.js'

const INTERVAL_MS = 5_000
const JOBS_SHOWN = 50
const SLOW_STATEMENTS_SHOWN = 20

export interface HeartbeatOptions {
  readonly kind: 'web' | 'worker'
  /** Queues that this process serves, and pauses on request. */
  readonly queues?: readonly QueueName[]
  readonly runningJobs?: () => readonly RunningJob[]
  readonly podClock?: () => PodClock | undefined
  readonly threads?: () => ThreadLoad
}

/** Shows this process to operators, and applies their commands for the queues. */
export function startHeartbeat(
  { config, db, jobs, log }: Pick<Services, 'config' | 'db' | 'jobs' | 'log'>,
  { kind, queues = [], runningJobs = () => [], podClock = () => undefined, threads }: HeartbeatOptions,
): { readonly beatNow: () => Promise<void>; close(): Promise<void> } {
  const process_ = {
    id: randomUUID(),
    kind,
    host: hostname(),
    pid: process.pid,
    version: readSoftware().version,
    startedAt: new Date(performance.timeOrigin),
  }
  const applyStates = requestedStateApplier(jobs, queues)
  const loopLag = recordLoopLag()
  let utilization = performance.eventLoopUtilization()

  function currentStatus(): ProcessStatus {
    const { rss, heapUsed } = process.memoryUsage()
    const now = performance.eventLoopUtilization()
    const busy = performance.eventLoopUtilization(now, utilization).utilization
    utilization = now
    const clock = podClock()
    const slowStatements = listSlowStatements(db).slice(0, SLOW_STATEMENTS_SHOWN)
    return {
      rssBytes: rss,
      heapBytes: heapUsed,
      busyPercent: Math.round(busy * 100),
      loopLagMs: Math.round(readAndResetLoopLagMs(loopLag.lag)),
      ...(threads && { threads: threads() }),
      queues,
      jobs: runningJobs().slice(0, JOBS_SHOWN),
      ...(config.isolated && { isolated: true as const }),
      pictures: listPictureStores(config),
      ...(clock && { podClock: clock }),
      ...(slowStatements.length > 0 && { slowStatements }),
    }
  }

  const beatNow = singleFlight(async () => {
    try {
      await applyStates(await recordHeartbeat(db, { ...process_, facts: currentStatus() }))
    } catch (err) {
      log.debug({ err }, 'heartbeat failed') // an outage has its own log lines
    }
  })
  void beatNow()
  const timer = setInterval(beatNow, INTERVAL_MS)
  return {
    beatNow,
    async close() {
      clearInterval(timer)
      loopLag.stop()
      await beatNow()
      await deleteProcess(db, process_.id).catch(() => {})
    },
  }
}

/** Milliseconds by which 99 of 100 samples since the last call were late at most. */
function readAndResetLoopLagMs(lag: RecordableHistogram): number {
  const milliseconds = lag.count === 0 ? 0 : lag.percentile(99) / 1_000
  lag.reset()
  return milliseconds
}

type QueueStates = readonly Pick<RequestedQueueState, 'queue' | 'state'>[]

/**
 * Compares each time: a queue store that was emptied has forgotten that its queues are paused, and one that did not answer may have paused
 * a queue after it was resumed.
 */
function requestedStateApplier(
  jobs: Pick<JobQueues, 'pause' | 'resume' | 'isPaused' | 'refuseJobsFor' | 'inProcessRuns'>,
  served: readonly QueueName[],
): (requested: QueueStates) => Promise<void> {
  async function apply(queue: QueueName, state: RequestedQueueState['state']): Promise<void> {
    const isPaused = await jobs.isPaused(queue)
    if (state === 'paused' && !isPaused) await jobs.pause(queue)
    if (state !== 'paused' && isPaused) await jobs.resume(queue)
  }

  return async (requested) => {
    const knownQueues = requested.flatMap(({ queue, state }) => (isQueueName(queue) ? [{ queue, state }] : []))
    jobs.refuseJobsFor(knownQueues.filter(({ state }) => state === 'draining').map(({ queue }) => queue))
    jobs.inProcessRuns.stopFor(knownQueues.filter(({ state }) => state !== 'running').map(({ queue }) => queue))
    await Promise.all(
      knownQueues.filter(({ queue }) => served.includes(queue)).map(({ queue, state }) => apply(queue, state)),
    )
  }
}
