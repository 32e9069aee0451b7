/**
 * When groups of a group commit grow. A group that was large, or slow, shows that its target is under load: then fewer, larger groups
 * cost less.
 */
export interface GrowthLimits {
  /** Kinds of load; of those that fit a group, the last one counts. */
  readonly loads: readonly GroupLoad[]
  /** Items that start the next group at once. */
  readonly startItems: number
}

/** Shown by a group of at least `items` that has taken `ms` or longer. */
interface GroupLoad {
  readonly items: number
  readonly ms: number
  /** The next group then starts when no call was added for `pauseMs`, or after `waitMs` at the latest. */
  readonly pauseMs: number
  readonly waitMs: number
}

/** Calls that wait for a group; undefined: a group is running. */
type CountWaitingCalls = () => number | undefined

/**
 * The states of a group commit that grows:
 *
 *     idle ──(a large group was slow)──▶ busy ──(few items wait)──▶ waiting
 *      ▲  ▲                               │                           │
 *      │  └────(a group was fast)─────────┘                           │
 *      └───────────(no call was added, or the time is over)───────────┘
 *
 * In `idle` any number of items starts a group, in the other states `startItems` do.
 */
export interface GroupGrowth {
  /** Whether this number of items may start a group while no other group is running. */
  mayStart(items: number): boolean
  /** Waits for more calls, then calls `start`. */
  wait(countWaitingCalls: CountWaitingCalls, start: () => void): void
  recordGroup(items: number, ms: number): void
}

export function openGroupGrowth({ loads, startItems }: GrowthLimits): GroupGrowth {
  let load: GroupLoad | undefined
  let isWaiting = false

  async function waitForCalls({ pauseMs, waitMs }: GroupLoad, countWaitingCalls: CountWaitingCalls): Promise<void> {
    const until = performance.now() + waitMs
    let lastCalls = -1
    for (;;) {
      const calls = countWaitingCalls()
      if (calls === undefined || calls === lastCalls || performance.now() >= until) return
      lastCalls = calls
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  return {
    mayStart: (items) => load === undefined || items >= startItems,
    wait(countWaitingCalls, start) {
      if (isWaiting || load === undefined) return
      isWaiting = true
      void waitForCalls(load, countWaitingCalls).then(() => {
        isWaiting = false
        load = undefined // the waiting calls have waited; the next group measures again
        start()
      })
    },
    recordGroup(items, ms) {
      load = loads.findLast((each) => items >= each.items && ms >= each.ms)
    },
  }
}
