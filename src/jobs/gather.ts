export interface GatherLimits<Item> {
  /** How many groups may be under way; what comes meanwhile makes the next group larger. */
  readonly atOnce: number
  /** So many are worth a group beside those that are under way; fewer wait until one of them ends. Not set: any are. */
  readonly enough?: number
  /** Of a group; a caller who brings more than these has a group of their own. */
  readonly items: number
  readonly bytes: number
  sizeOf(item: Item): number
  /** How long a caller waits, from the call to the answer; not set: for as long as it takes. */
  readonly patience?: { readonly ms: number; error(): Error }
}

interface Entry<Item, Result> {
  readonly items: readonly Item[]
  /** Its caller has given up; whatever comes of it now, nobody hears it. */
  isOver: boolean
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Group commit: runs what many callers bring in few groups, and tells each caller how its group went. There is no timer that
 * waits for more: a lone caller goes at once.
 */
export function gather<Item, Result>(
  limits: GatherLimits<Item>,
  run: (items: readonly Item[]) => Promise<Result>,
): (items: readonly Item[]) => Promise<Result> {
  const line: Entry<Item, Result>[] = []
  const { atOnce, enough = 1 } = limits
  let underWay = 0
  let isDue = false

  function startGroups(): void {
    isDue = false
    while (underWay === 0 || (underWay < atOnce && itemsIn(line) >= enough)) {
      const group = takeGroup(line, limits)
      if (group.length === 0) return
      void runGroup(group)
    }
  }

  async function runGroup(group: readonly Entry<Item, Result>[]): Promise<void> {
    underWay += 1
    try {
      const result = await run(group.flatMap(({ items }) => items))
      for (const entry of group) entry.resolve(result)
    } catch (error) {
      for (const entry of group) entry.reject(error)
    }
    underWay -= 1
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
  { patience }: GatherLimits<Item>,
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
  limits: GatherLimits<Item>,
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
