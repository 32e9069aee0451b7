/** How groups of rows are spaced at a low rate. */
export interface Spacing {
  /** Milliseconds from one group to the next one. A row after a longer pause waits for nothing. */
  readonly ms: number
  /** Work that starts a group at once, and after which none is awaited: then groups are large without waiting. */
  readonly startWork: number
}

/** Resolves when the next group may start; all that wait then are in it. `work` is the size of the row. */
type AwaitGroup = (work: number) => Promise<void>

/**
 * Delays work that may be late, so that more of it shares a transaction. At 18 messages a second each row would otherwise have one of its
 * own. Nothing waits once the process is ending.
 */
export function openGroupSpacing({ ms, startWork }: Spacing, startNothingNew: AbortSignal): AwaitGroup {
  let waiting: (() => void)[] = []
  let waitingWork = 0
  let nextStart = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined

  function startGroup(): void {
    clearTimeout(timer)
    timer = undefined
    nextStart = waitingWork < startWork ? performance.now() + ms : Number.NEGATIVE_INFINITY
    for (const start of waiting) start()
    waiting = []
    waitingWork = 0
  }

  startNothingNew.addEventListener('abort', startGroup, { once: true })
  return (work) =>
    new Promise((resolve) => {
      waiting.push(resolve)
      waitingWork += work
      const left = nextStart - performance.now()
      if (startNothingNew.aborted || waitingWork >= startWork || left <= 0) startGroup()
      else timer ??= setTimeout(startGroup, left)
    })
}
