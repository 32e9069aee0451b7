import type { RunningWorkers, WorkersHealth } from './start-workers.js'

const POLL_INTERVAL_MS = 10_000
const STUCK_AFTER_MS = 120_000

export interface WatchdogTimes {
  readonly intervalMs: number
  readonly afterMs: number
}

/**
 * Ends a process whose workers get no answer for three minutes although the stores answer: a worker counts as unresponsive after one
 * minute, and the process ends two minutes later. Clients of a queue have lost their connection permanently while all else was healthy.
 * During an outage of the stores a new process would not help.
 */
export function startWatchdog(
  workers: Pick<RunningWorkers, 'unresponsive' | 'health'>,
  end: (health: WorkersHealth) => void,
  { intervalMs, afterMs }: WatchdogTimes = { intervalMs: POLL_INTERVAL_MS, afterMs: STUCK_AFTER_MS },
): { stop(): void } {
  let lastHealthyAt = performance.now()
  const timer = setInterval(async () => {
    // The stores are checked only when a worker gets no answer.
    const health = workers.unresponsive().length > 0 ? await workers.health() : undefined
    const isStuck = health?.hasDatabase && health.hasQueue && health.unresponsive.length > 0
    if (!isStuck) lastHealthyAt = performance.now()
    else if (performance.now() - lastHealthyAt >= afterMs) end(health)
  }, intervalMs)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
