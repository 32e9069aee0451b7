import { LRUCache } from 'lru-cache'
import { openSingleFlight } from '../../concurrency/single-flight.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isLocalOverload } from '../remote-pod/remote-pod-error.js'
import { DISCOVERY_LIMITS } from './limits.js'

export interface SharedLookups<Result> {
  /**
   * Starts a lookup, or joins the one that runs for this name. A failure of the last minute is returned to later callers, except
   * with `ignoresRecentFailures`.
   */
  run(key: string, lookUp: () => Promise<Result>, options: LookupOptions): Promise<Result>
}

interface LookupOptions {
  readonly now: () => Date
  readonly ignoresRecentFailures?: boolean | undefined
}

interface Failure {
  readonly error: ProtocolError
  readonly until: number
}

/** Lookups of other pods that callers in one process share. Deduplicated jobs do the same across processes. */
export function openSharedLookups<Result>(): SharedLookups<Result> {
  const lookups = openSingleFlight<string, Result>()
  const failures = new LRUCache<string, Failure>({ max: DISCOVERY_LIMITS.failuresRemembered })

  async function runLookup(name: string, lookUp: () => Promise<Result>, { now }: LookupOptions): Promise<Result> {
    try {
      const result = await lookUp()
      failures.delete(name)
      return result
    } catch (error) {
      // A failure inside this process says nothing about the other pod.
      if (error instanceof ProtocolError && !isLocalOverload(error)) {
        failures.set(name, { error, until: now().getTime() + DISCOVERY_LIMITS.failureRememberedMs })
      }
      throw error
    }
  }

  return {
    run(name, lookUp, options) {
      const failure = failures.get(name)
      const isRecent = failure !== undefined && failure.until > options.now().getTime()
      if (isRecent && options.ignoresRecentFailures !== true && !lookups.has(name)) return Promise.reject(failure.error)
      return lookups.run(name, () => runLookup(name, lookUp, options))
    },
  }
}
