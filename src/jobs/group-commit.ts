export interface GroupCommitLimits<Item> {
  /** How many groups may be under way; what comes meanwhile makes the next group larger. */
  readonly atOnce: number
  /** So many are worth a group beside those that are under way; fewer wait until one of them ends. Not set: any are. */
  readonly enough?: number
  /** A group that takes longer than this is slow: beside it any number of items is enough. Not set: however long it takes. */
  readonly slowMs?: number
  /** How a group grows while many are coming. Not set: it sets out with whatever is there. */
  readonly swell?: Swell
  /** Of a group; a caller who brings more than these has a group of their own. */
  readonly items: number
  readonly bytes: number
  sizeOf(item: Item): number
  /** How long a caller waits, from the call to the answer; not set: for as long as it takes. */
  readonly patience?: { readonly ms: number; error(): Error }
}

/**
 * Once a group of at least `after` items has taken `slow` milliseconds or longer, whatever it waits for is busy, and fewer groups
 * leave more room for the work in them: the next one sets out when it has `enough`, when nobody came for a millisecond, or after
 * `ms` at the latest.
 */
interface Swell {
  readonly after: number
  readonly slow: number
  readonly enough: number
  readonly ms: number
}

interface Entry<Item, Result> {
  readonly items: readonly Item[]
  /** Its caller has given up; whatever comes of it now, nobody hears it. */
  isOver: boolean
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Group commit: runs what many callers bring in few groups, and tells each caller how its group went. A lone caller goes at
 * once: only who comes in a crowd waits for more of it.
 */
export function groupCommit<Item, Result>(
  limits: GroupCommitLimits<Item>,
  run: (items: readonly Item[]) => Promise<Result>,
): (items: readonly Item[]) => Promise<Result> {
  const line: Entry<Item, Result>[] = []
  const { atOnce, enough = 1, slowMs = Number.POSITIVE_INFINITY, swell } = limits
  /** When the groups under way began, the oldest first. */
  const starts = new Map<object, number>()
  let slowTimer: NodeJS.Timeout | undefined
  let underWay = 0
  let isDue = false
  let isBusy = false
  let isGrowing = false

  function startGroups(): void {
    isDue = false
    while (line.length > 0 && isTime()) {
      const group = takeGroup(line, limits)
      if (group.length === 0) return
      void runGroup(group)
    }
    if (line.length > 0 && underWay > 0 && underWay < atOnce) lookWhenSlow()
    if (swell !== undefined && line.length > 0 && underWay === 0 && !isGrowing) void grow(swell.ms)
  }

  function ageOfOldest(): number {
    const [oldest = Number.POSITIVE_INFINITY] = starts.values()
    return performance.now() - oldest
  }

  function lookWhenSlow(): void {
    if (slowMs === Number.POSITIVE_INFINITY || slowTimer !== undefined) return
    const look = () => {
      slowTimer = undefined
      startGroups()
    }
    slowTimer = setTimeout(look, Math.max(1, slowMs - ageOfOldest()))
  }

  function isTime(): boolean {
    const waiting = itemsIn(line)
    if (underWay > 0) return underWay < atOnce && (waiting >= enough || ageOfOldest() >= slowMs)
    return swell === undefined || !isBusy || waiting >= swell.enough
  }

  async function grow(ms: number): Promise<void> {
    isGrowing = true
    const until = performance.now() + ms
    for (let seen = -1; underWay === 0 && line.length !== seen && performance.now() < until; ) {
      seen = line.length
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    isGrowing = false
    isBusy = false // whoever came has waited; the next group tells again
    startGroups()
  }

  async function runGroup(group: readonly Entry<Item, Result>[]): Promise<void> {
    underWay += 1
    const start = performance.now()
    starts.set(group, start)
    try {
      const result = await run(group.flatMap(({ items }) => items))
      for (const entry of group) entry.resolve(result)
    } catch (error) {
      for (const entry of group) entry.reject(error)
    }
    underWay -= 1
    starts.delete(group)
    if (swell) isBusy = itemsIn(group) >= swell.after && performance.now() - start >= swell.slow
    startGroups()
  }

  return (items) =>
    new Promise((resolve, reject) => {
      line.push(enter(items, limits, resolve, reject))
      if (isDue || underWay >= atOnce) return
      isDue = true
      setImmediate(startGroups)
    })
}

function enter<Item, Result>(
  items: readonly Item[],
  { patience }: GroupCommitLimits<Item>,
  resolve: (result: Result) => void,
  reject: (error: unknown) => void,
): Entry<Item, Result> {
  const entry = { items, isOver: false, resolve, reject }
  if (patience === undefined) return entry
  const timer = setTimeout(() => {
    entry.isOver = true
    reject(patience.error())
  }, patience.ms)
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

function itemsIn<Item, Result>(line: readonly Entry<Item, Result>[]): number {
  return line.reduce((sum, { items }) => sum + items.length, 0)
}

/** From the front of the line, as many as fit; always at least one, however large it is. */
function takeGroup<Item, Result>(
  line: Entry<Item, Result>[],
  limits: GroupCommitLimits<Item>,
): readonly Entry<Item, Result>[] {
  const group: Entry<Item, Result>[] = []
  let passed = 0
  let items = 0
  let bytes = 0
  for (const entry of line) {
    if (!entry.isOver) {
      items += entry.items.length
      bytes += entry.items.reduce((sum, item) => sum + limits.sizeOf(item), 0)
      if (group.length > 0 && (items > limits.items || bytes > limits.bytes)) break
      group.push(entry)
    }
    passed += 1
  }
  line.splice(0, passed)
  return group
}
