import { openBoundedMap } from '../../bounded-map.js'
import { LOOKUP_LIMITS } from '../../limits.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isOurTrouble } from '../remote-pod/remote-pod-error.js'

export interface Flights<Result> {
  /**
   * Joins the look-up of this name that is under way, or begins one. One that failed within the last minute has failed for
   * everybody who comes meanwhile, but for those who come `again` because it did.
   */
  join(name: string, lookUp: () => Promise<Result>, when: When): Promise<Result>
}

interface When {
  readonly now: () => Date
  readonly again?: boolean | undefined
}

interface Failure {
  readonly error: ProtocolError
  readonly until: number
}

/** What many want at the same time is asked for once. Across processes the deduplicated jobs see to the same. */
export function openFlights<Result>(): Flights<Result> {
  const underWay = new Map<string, Promise<Result>>()
  const failures = openBoundedMap<string, Failure>({ entries: LOOKUP_LIMITS.failuresRemembered })

  function remember(name: string, error: unknown, now: Date): void {
    if (!(error instanceof ProtocolError) || isOurTrouble(error)) return // which says nothing about the name
    failures.set(name, { error, until: now.getTime() + LOOKUP_LIMITS.failureRememberedMs })
  }

  async function fly(name: string, lookUp: () => Promise<Result>, { now }: When): Promise<Result> {
    try {
      const result = await lookUp()
      failures.delete(name)
      return result
    } catch (error) {
      remember(name, error, now())
      throw error
    } finally {
      underWay.delete(name)
    }
  }

  return {
    join(name, lookUp, when) {
      const shared = underWay.get(name)
      if (shared !== undefined) return shared
      const failure = failures.get(name)
      const isRecent = failure !== undefined && failure.until > when.now().getTime()
      if (isRecent && when.again !== true) return Promise.reject(failure.error)
      const flight = fly(name, lookUp, when)
      underWay.set(name, flight)
      return flight
    },
  }
}
