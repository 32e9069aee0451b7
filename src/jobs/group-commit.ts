export interface GroupCommitLimits<Item> {
  /** Groups that may run at a time; items added meanwhile make the next group larger. */
  readonly atOnce: number
  /** Items that start a group beside running ones; fewer wait until one of those ends. Not set: any number. */
  readonly enough?: number
  /** Beside a group that runs longer than this, any number of items starts the next one. Not set: never. */
  readonly slowMs?: number
  /** How a group grows under load. Not set: it starts with the items that wait. */
  readonly growth?: Growth
  /** Limits of a group; a call with more has a group of its own. */
  readonly items: number
  /** Bytes, or another measure. Not set: no limit. */
  readonly size?: number
  /** The size of an item. Not set: sizes are not counted. */
  sizeOf?(item: Item): number
  /** The time limit of a call, from its start to its result. Not set: none. */
  readonly timeLimit?: { readonly ms: number; error(): Error }
}

/**
 * After a group of at least `after` items has taken `slow` milliseconds or longer, its target is under load, and fewer, larger groups
 * cost less: the next one starts with `enough` items, when none was added for a millisecond, or after `ms` at the latest.
 */
interface Growth {
  readonly after: number
  readonly slow: number
  readonly enough: number
  readonly ms: number
}

interface Entry<Item, Result> {
  readonly items: readonly Item[]
  /** Its time limit has passed; its result is discarded. */
  isExpired: boolean
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Group commit: runs the items of many calls in few groups; each call gets the result of its group. A single call starts at once:
 * only calls under load wait for others.
 */
export function groupCommit<Item, Result>(
  limits: GroupCommitLimits<Item>,
  run: (items: readonly Item[]) => Promise<Result>,
): (items: readonly Item[]) => Promise<Result> {
  const pending: Entry<Item, Result>[] = []
  const { atOnce, enough = 1, slowMs = Number.POSITIVE_INFINITY, growth } = limits
  /** Start times of the running groups, the oldest first. */
  const starts = new Map<object, number>()
  let slowTimer: NodeJS.Timeout | undefined
  let running = 0
  let isScheduled = false
  let isBusy = false
  let isGrowing = false

  function startGroups(): void {
    isScheduled = false
    while (pending.length > 0 && mayStart()) {
      const group = takeGroup(pending, limits)
      if (group.length === 0) return
      void runGroup(group)
    }
    if (pending.length > 0 && running > 0 && running < atOnce) startWhenSlow()
    if (growth !== undefined && pending.length > 0 && running === 0 && !isGrowing) void grow(growth.ms)
  }

  function ageOfOldest(): number {
    const [oldest = Number.POSITIVE_INFINITY] = starts.values()
    return performance.now() - oldest
  }

  function startWhenSlow(): void {
    if (slowMs === Number.POSITIVE_INFINITY || slowTimer !== undefined) return
    const start = () => {
      slowTimer = undefined
      startGroups()
    }
    slowTimer = setTimeout(start, Math.max(1, slowMs - ageOfOldest()))
  }

  function mayStart(): boolean {
    const waiting = itemsIn(pending)
    if (running > 0) return running < atOnce && (waiting >= enough || ageOfOldest() >= slowMs)
    return growth === undefined || !isBusy || waiting >= growth.enough
  }

  async function grow(ms: number): Promise<void> {
    isGrowing = true
    const until = performance.now() + ms
    for (let seen = -1; running === 0 && pending.length !== seen && performance.now() < until; ) {
      seen = pending.length
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    isGrowing = false
    isBusy = false // the waiting calls have waited; the next group measures again
    startGroups()
  }

  async function runGroup(group: readonly Entry<Item, Result>[]): Promise<void> {
    running += 1
    const start = performance.now()
    starts.set(group, start)
    try {
      const result = await run(group.flatMap(({ items }) => items))
      for (const entry of group) entry.resolve(result)
    } catch (error) {
      for (const entry of group) entry.reject(error)
    }
    running -= 1
    starts.delete(group)
    if (growth) isBusy = itemsIn(group) >= growth.after && performance.now() - start >= growth.slow
    startGroups()
  }

  return (items) =>
    new Promise((resolve, reject) => {
      pending.push(entryOf(items, limits, resolve, reject))
      if (isScheduled || running >= atOnce) return
      isScheduled = true
      setImmediate(startGroups)
    })
}

function entryOf<Item, Result>(
  items: readonly Item[],
  { timeLimit }: GroupCommitLimits<Item>,
  resolve: (result: Result) => void,
  reject: (error: unknown) => void,
): Entry<Item, Result> {
  const entry = { items, isExpired: false, resolve, reject }
  if (timeLimit === undefined) return entry
  const timer = setTimeout(() => {
    entry.isExpired = true
    reject(timeLimit.error())
  }, timeLimit.ms)
  return Object.assign(entry, {
    resolve(result: Result) {
      clearTimeout(timer)
      resolve(result)
    },
    reject(error: unknown) {
      clearTimeout(timer)
      reject(error)
    },
  })
}

function itemsIn<Item, Result>(pending: readonly Entry<Item, Result>[]): number {
  return pending.reduce((sum, { items }) => sum + items.length, 0)
}

/** Takes as many entries from the front as fit; always at least one. */
function takeGroup<Item, Result>(
  pending: Entry<Item, Result>[],
  limits: GroupCommitLimits<Item>,
): readonly Entry<Item, Result>[] {
  const group: Entry<Item, Result>[] = []
  const { sizeOf = () => 0, size: maxSize = Number.POSITIVE_INFINITY } = limits
  let passed = 0
  let items = 0
  let size = 0
  for (const entry of pending) {
    if (!entry.isExpired) {
      items += entry.items.length
      size += entry.items.reduce((sum, item) => sum + sizeOf(item), 0)
      if (group.length > 0 && (items > limits.items || size > maxSize)) break
      group.push(entry)
    }
    passed += 1
  }
  pending.splice(0, passed)
  return group
}
