import type { RunningWorkers, WorkersHealth } from './start-workers.js'

const LOOK_EVERY = 10_000
const STUCK_AFTER = 120_000

export interface WatchdogTimes {
  readonly every: number
  readonly after: number
}

/**
 * Clients of a queue have been seen to lose their connection for good while all else looked healthy. A process that hears
 * nothing for two minutes although the stores answer is better replaced; while they are away, another one would hear no more.
 */
export function endWhenStuck(
  workers: Pick<RunningWorkers, 'deaf' | 'health'>,
  end: (health: WorkersHealth) => void,
  { every, after }: WatchdogTimes = { every: LOOK_EVERY, after: STUCK_AFTER },
): { stop(): void } {
  let wellAt = performance.now()
  const timer = setInterval(async () => {
    // The stores are asked only if there is something to ask about.
    const now = workers.deaf().length > 0 ? await workers.health() : undefined
    const isStuck = now?.database && now.queue && now.deaf.length > 0
    if (!isStuck) wellAt = performance.now()
    else if (performance.now() - wellAt >= after) end(now)
  }, every)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
