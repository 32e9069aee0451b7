import type { GroupGrowth } from './group-growth.js'

export interface GroupCommitLimits<Item> {
  /** Groups that may run at a time; items added in the meantime make the next group larger. */
  readonly maxConcurrent: number
  /** Items that start a group alongside running ones; fewer wait until one of those ends. Not set: any number. */
  readonly minItems?: number
  /** Alongside a group that runs longer than this, any number of items starts the next one. Not set: never. */
  readonly slowMs?: number
  /** Limits of a group; a call with more has a group of its own. */
  readonly maxItems: number
  /** Bytes, or another measure. Not set: no limit. */
  readonly maxSize?: number
  /** The size of an item. Not set: sizes are not counted. */
  sizeOf?(item: Item): number
  /** The time limit of a call, from its start to its result. Not set: none. */
  readonly timeLimit?: { readonly ms: number; error(): Error }
}

interface Entry<Item, Result> {
  readonly items: readonly Item[]
  /** The time limit of the group has passed; its result is discarded. */
  isExpired: boolean
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Group commit: runs the items of many calls in few groups; each call gets the result of its group. A single call starts at once:
 * only calls under load wait for others. With a `growth`, groups are also fewer and larger while their target is under load.
 */
export function groupCommit<Item, Result>(
  limits: GroupCommitLimits<Item>,
  run: (items: readonly Item[]) => Promise<Result>,
  growth?: GroupGrowth,
): (items: readonly Item[]) => Promise<Result> {
  const pending: Entry<Item, Result>[] = []
  const { maxConcurrent, minItems = 1, slowMs = Number.POSITIVE_INFINITY } = limits
  /** Start times of the running groups, the oldest first. */
  const starts = new Map<object, number>()
  let slowTimer: NodeJS.Timeout | undefined
  let running = 0
  let isScheduled = false

  function startGroups(): void {
    isScheduled = false
    while (pending.length > 0 && mayStart()) {
      const group = takeGroup(pending, limits)
      if (group.length === 0) return
      void runGroup(group)
    }
    if (pending.length > 0 && running > 0 && running < maxConcurrent) startWhenSlow()
    if (pending.length > 0 && running === 0)
      growth?.wait(() => (running === 0 ? pending.length : undefined), startGroups)
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
    const waitingItems = itemsIn(pending)
    if (running > 0) return running < maxConcurrent && (waitingItems >= minItems || ageOfOldest() >= slowMs)
    return growth?.mayStart(waitingItems) ?? true
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
    growth?.recordGroup(itemsIn(group), performance.now() - start)
    startGroups()
  }

  return (items) =>
    new Promise((resolve, reject) => {
      pending.push(entryOf(items, limits, resolve, reject))
      if (isScheduled || running >= maxConcurrent) return
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
  const { sizeOf = () => 0, maxItems, maxSize = Number.POSITIVE_INFINITY } = limits
  let passedEntries = 0
  let items = 0
  let size = 0
  for (const entry of pending) {
    if (!entry.isExpired) {
      items += entry.items.length
      size += entry.items.reduce((sum, item) => sum + sizeOf(item), 0)
      if (group.length > 0 && (items > maxItems || size > maxSize)) break
      group.push(entry)
    }
    passedEntries += 1
  }
  pending.splice(0, passedEntries)
  return group
}
