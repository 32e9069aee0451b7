import type { SharedListener } from './postgres-connections.js'

/** The state of the queue that a fetching statement returns in addition to the started jobs. */
export interface FetchedQueueState {
  /** No other job waits, and the queue is neither paused nor limited. */
  readonly isEmpty: boolean
  /** When the next delayed job is due, in milliseconds since 1970; null: there is none. */
  readonly nextDelayedAt: number | null
}

/**
 * Whether a queue is known to have no waiting job: a statement has found none, and no notification of a new one has arrived since. So
 * an idle worker needs no further statement, where the library looks for another job, for the next delayed one, and for both again
 * before it waits. A job that is committed after the snapshot of the statement is notified later than the statement was sent.
 */
export class EmptyQueueState {
  readonly #listener: SharedListener
  readonly #queue: string
  #known: { readonly version: number; readonly until: number } | undefined
  #endWait: (() => void) | undefined

  constructor(listener: SharedListener, queue: string) {
    this.#listener = listener
    this.#queue = queue
  }

  /** Called before a statement is sent; the returned function takes its result. */
  beginFetch(): (rest: FetchedQueueState) => void {
    const version = this.#listener.versionOf(this.#queue)
    return ({ isEmpty, nextDelayedAt }) => {
      const isValid = isEmpty && version !== undefined && version === this.#listener.versionOf(this.#queue)
      this.#known = isValid ? { version, until: nextDelayedAt ?? Number.POSITIVE_INFINITY } : undefined
    }
  }

  /** Until when the queue is empty, unless a job is added; undefined: it may have a waiting job now. */
  emptyUntil(): number | undefined {
    if (this.#known === undefined) return undefined
    const { version, until } = this.#known
    return version === this.#listener.versionOf(this.#queue) && until > Date.now() ? until : undefined
  }

  /** Waits for a notification of a job for at most this time. The state of the queue is unknown afterwards. True: a notification came. */
  async wait(milliseconds: number): Promise<boolean> {
    const isNotified = await new Promise<boolean>((resolve) => {
      const end = (result: boolean) => {
        clearTimeout(timer)
        this.#listener.off('notified', notice)
        this.#listener.off('listenerinvalidated', cancel)
        this.#endWait = undefined
        resolve(result)
      }
      const notice = (queue: string) => void (queue === this.#queue && end(true))
      const cancel = () => end(false)
      const timer = setTimeout(cancel, milliseconds)
      this.#listener.on('notified', notice).on('listenerinvalidated', cancel)
      this.#endWait = cancel
    })
    this.#known = undefined
    return isNotified
  }

  endWait(): void {
    this.#endWait?.()
  }
}
