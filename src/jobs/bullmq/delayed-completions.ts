/** Milliseconds. Jobs that follow each other every 50 ms still share a statement. */
const HELD_MS = 100

/**
 * Holds the ends of jobs for a moment while jobs come one by one, so that one statement ends a job and fetches the next one. Otherwise each
 * job of an idle queue takes two statements. If the process dies before the statement, the job runs again, as after a lost commit.
 */
export class DelayedCompletions {
  #lastFetchAt = Number.NEGATIVE_INFINITY
  #isSteady = false
  #isStopped = false
  readonly #held = new Map<() => void, NodeJS.Timeout>()

  /** A job was fetched. Only jobs that follow each other quickly are held, so that a single one ends at once. */
  recordFetch(): void {
    const now = Date.now()
    this.#isSteady = now - this.#lastFetchAt < HELD_MS
    this.#lastFetchAt = now
  }

  /** Resolves when the next job is fetched, or after a moment. */
  async delayCompletion(): Promise<void> {
    if (!this.#isSteady || this.#isStopped) return
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(this.#held.get(end))
        this.#held.delete(end)
        resolve()
      }
      this.#held.set(end, setTimeout(end, HELD_MS))
    })
  }

  release(): void {
    for (const end of this.#held.keys()) end()
  }

  startDelaying(): void {
    this.#isStopped = false
  }

  /** Ends all held jobs, and holds no more. */
  stopDelaying(): void {
    this.#isStopped = true
    this.release()
  }
}
