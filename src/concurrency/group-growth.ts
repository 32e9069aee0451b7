/**
 * When groups of a group commit grow. A group of at least `busyItems` that has taken `busyMs` or longer shows that its target is under
 * load: then fewer, larger groups cost less.
 */
export interface GrowthLimits {
  readonly busyItems: number
  readonly busyMs: number
  /** Items that start the next group at once. */
  readonly startItems: number
  /** Fewer items start it when no call was added for a millisecond, or after this time at the latest. */
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
  /** Whether so many items may start a group while no other one is running. */
  mayStart(items: number): boolean
  /** Waits for more calls, then calls `start`. */
  wait(countWaitingCalls: CountWaitingCalls, start: () => void): void
  recordGroup(items: number, ms: number): void
}

export function openGroupGrowth({ busyItems, busyMs, startItems, waitMs }: GrowthLimits): GroupGrowth {
  let isBusy = false
  let isWaiting = false

  async function waitForCalls(countWaitingCalls: CountWaitingCalls): Promise<void> {
    const until = performance.now() + waitMs
    let lastCalls = -1
    for (;;) {
      const calls = countWaitingCalls()
      if (calls === undefined || calls === lastCalls || performance.now() >= until) return
      lastCalls = calls
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  return {
    mayStart: (items) => !isBusy || items >= startItems,
    wait(countWaitingCalls, start) {
      if (isWaiting) return
      isWaiting = true
      void waitForCalls(countWaitingCalls).then(() => {
        isWaiting = false
        isBusy = false // the waiting calls have waited; the next group measures again
        start()
      })
    },
    recordGroup(items, ms) {
      isBusy = items >= busyItems && ms >= busyMs
    },
  }
}
