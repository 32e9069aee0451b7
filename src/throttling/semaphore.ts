/** A fixed number of slots. Further callers wait in their order, until a slot is free or their signal aborts. */
export class Semaphore {
  readonly #slots: number
  readonly #waiting = new Set<() => void>()
  #used = 0

  constructor(slots: number) {
    this.#slots = slots
  }

  get isIdle(): boolean {
    return this.#used === 0
  }

  async acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#used < this.#slots) {
      this.#used += 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(proceed)
        reject(signal.reason)
      }
      const proceed = () => {
        signal.removeEventListener('abort', abort)
        resolve()
      }
      this.#waiting.add(proceed)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  release(): void {
    const [proceed] = this.#waiting
    if (proceed === undefined) {
      this.#used -= 1
      return
    }
    this.#waiting.delete(proceed)
    proceed() // the next caller takes over the slot, so the number of used slots stays the same
  }
}
