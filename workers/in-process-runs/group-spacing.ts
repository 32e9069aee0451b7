/** How groups of rows are spaced at a low rate. */
export interface Spacing {
  /** Milliseconds from one group to the next one. A row after a longer pause starts at once. */
  readonly intervalMs: number
  /** A group of this size starts at once, and so does the group after it: under this load groups are large without waiting. */
  readonly fullGroupWork: number
}

/** Resolves when the next group may start; all rows that wait at that time are in it. `work` is the size of the row. */
type AwaitGroup = (work: number) => Promise<void>

/**
 * Delays work that may be late, so that more of it shares a transaction. At 18 messages a second each row would otherwise have one of its
 * own. Nothing waits once the process ends.
 */
export function openGroupSpacing({ intervalMs, fullGroupWork }: Spacing, stopping: AbortSignal): AwaitGroup {
  let waitingStarts: (() => void)[] = []
  let waitingWork = 0
  let nextStart = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined

  function startGroup(): void {
    clearTimeout(timer)
    timer = undefined
    nextStart = waitingWork < fullGroupWork ? performance.now() + intervalMs : Number.NEGATIVE_INFINITY
    for (const start of waitingStarts) start()
    waitingStarts = []
    waitingWork = 0
  }

  stopping.addEventListener('abort', startGroup, { once: true })
  return (work) =>
    new Promise((resolve) => {
      waitingStarts.push(resolve)
      waitingWork += work
      const remainingMs = nextStart - performance.now()
      if (stopping.aborted || waitingWork >= fullGroupWork || remainingMs <= 0) startGroup()
      else timer ??= setTimeout(startGroup, remainingMs)
    })
}
