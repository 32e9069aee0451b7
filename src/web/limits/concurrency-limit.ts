import { HTTP_LIMITS } from '../server/limits.js'
import { type RequestFault, tooBusy } from '../server/request-faults.js'
import { tooMany } from './rate-limit.js'
import { countRateLimited, type RateLimitName } from './rejection-metrics.js'

interface Capacity {
  readonly total: number
  readonly perKey: number
}

interface ConcurrencyLimitOptions extends Capacity {
  readonly limit: RateLimitName
  /** Operations that may wait for a free place. Not set: none may wait. */
  readonly queue?: Capacity & { readonly withinMs: number }
}

/** Limits the operations that run at a time: in total, and per user or network address. */
export interface ConcurrencyLimit<Key = number> {
  /**
   * Runs the operation, at once or after a wait in the queue. Throws a 429 or 503 if the queue is full, the wait takes too long,
   * or `aborted` fires.
   */
  run<Result>(key: Key, operation: () => Promise<Result>, aborted?: AbortSignal): Promise<Result>
  /** Runs the operation if there is a free place now, else skips it. */
  runIfFree(key: Key, operation: () => Promise<void>): Promise<void>
}

interface QueuedOperation<Key> {
  readonly key: Key
  readonly start: () => void
}

const NO_QUEUE = { total: 0, perKey: 0, withinMs: 0 }

export function openConcurrencyLimit<Key = number>({
  limit,
  total,
  perKey,
  queue = NO_QUEUE,
}: ConcurrencyLimitOptions): ConcurrencyLimit<Key> {
  const runningOfKey = new Map<Key, number>()
  const queuedOperations = new Set<QueuedOperation<Key>>()
  let running = 0

  const countOf = (key: Key): number => runningOfKey.get(key) ?? 0
  const isFreeFor = (key: Key): boolean => running < total && countOf(key) < perKey

  function changeRunning(key: Key, by: 1 | -1): void {
    const count = countOf(key) + by
    if (count === 0) runningOfKey.delete(key)
    else runningOfKey.set(key, count)
    running += by
  }

  function refusalOf(key: Key): RequestFault {
    if (countOf(key) < perKey) return tooBusy(HTTP_LIMITS.retryAfterSeconds)
    countRateLimited(limit)
    return tooMany(1)
  }

  function mayQueue(key: Key): boolean {
    const sameKeyOperations = [...queuedOperations].filter((operation) => operation.key === key)
    return queuedOperations.size < queue.total && sameKeyOperations.length < queue.perKey
  }

  /** Resolves once the operation may run; it is counted as running by then. */
  function waitInQueue(key: Key, aborted: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const operation = { key, start }
      const timer = setTimeout(giveUp, queue.withinMs)
      aborted?.addEventListener('abort', giveUp)
      queuedOperations.add(operation)
      if (aborted?.aborted) giveUp()

      function leaveQueue(): void {
        queuedOperations.delete(operation)
        clearTimeout(timer)
        aborted?.removeEventListener('abort', giveUp)
      }
      function start(): void {
        leaveQueue()
        changeRunning(key, 1)
        resolve()
      }
      function giveUp(): void {
        leaveQueue()
        reject(refusalOf(key))
      }
    })
  }

  /** Prefers the key with the fewest running operations: a user with many queued ones must not delay all others. */
  function startNext(): void {
    const [next] = [...queuedOperations]
      .filter(({ key }) => isFreeFor(key))
      .toSorted((one, other) => countOf(one.key) - countOf(other.key))
    next?.start()
  }

  async function run<Result>(key: Key, operation: () => Promise<Result>, aborted?: AbortSignal): Promise<Result> {
    if (isFreeFor(key)) changeRunning(key, 1)
    else if (mayQueue(key)) await waitInQueue(key, aborted)
    else throw refusalOf(key)
    try {
      return await operation()
    } finally {
      changeRunning(key, -1)
      startNext()
    }
  }

  return {
    run,
    async runIfFree(key, operation) {
      if (isFreeFor(key)) await run(key, operation)
    },
  }
}
