/**
 * A fixed number of slots. Further callers wait until a slot is free or their signal aborts: in their order within a group, while the
 * groups take turns.
 */
export class Semaphore {
  readonly #slots: number
  readonly #waiting = new Map<unknown, Set<() => void>>()
  #used = 0

  constructor(slots: number) {
    this.#slots = slots
  }

  get isIdle(): boolean {
    return this.#used === 0
  }

  /** Callers wait for a slot. */
  get isContended(): boolean {
    return this.#waiting.size > 0
  }

  /** Runs an operation in a slot. */
  async run<Result>(operation: () => Promise<Result>): Promise<Result> {
    await this.acquire()
    try {
      return await operation()
    } finally {
      this.release()
    }
  }

  async acquire(signal?: AbortSignal, group?: object): Promise<void> {
    signal?.throwIfAborted()
    if (this.#used < this.#slots) {
      this.#used += 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const callers = this.#waiting.get(group) ?? new Set()
      this.#waiting.set(group, callers)
      const abort = () => {
        callers.delete(proceed)
        if (callers.size === 0) this.#waiting.delete(group)
        reject(signal?.reason)
      }
      const proceed = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      callers.add(proceed)
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#used -= 1
      return
    }
    const [group, callers] = next
    this.#waiting.delete(group)
    const [proceed = () => {}] = callers // a group in the map has callers
    callers.delete(proceed)
    if (callers.size > 0) this.#waiting.set(group, callers) // after the other groups
    proceed() // the next caller takes over the slot, so the number of used slots stays the same
  }
}
