/** Shares the result of an operation among the callers that need it while it runs. */
export interface SingleFlight<Key, Result> {
  /** Operations that run at the moment. */
  readonly size: number
  has(key: Key): boolean
  /** Runs the operation, or joins the one that runs for this key. */
  run(key: Key, operation: () => Promise<Result>): Promise<Result>
}

export function openSingleFlight<Key, Result>(): SingleFlight<Key, Result> {
  const running = new Map<Key, Promise<Result>>()
  return {
    get size() {
      return running.size
    },
    has: (key) => running.has(key),
    run(key, operation) {
      const runningCall = running.get(key)
      if (runningCall !== undefined) return runningCall
      const newCall = operation().finally(() => running.delete(key))
      running.set(key, newCall)
      return newCall
    },
  }
}

/** Shares one running operation among its callers. */
export function singleFlight<Result>(operation: () => Promise<Result>): () => Promise<Result> {
  const flight = openSingleFlight<undefined, Result>()
  return () => flight.run(undefined, operation)
}
