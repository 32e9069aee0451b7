import { singleFlight } from './single-flight.js'

/** Caches the result of an expensive operation for `ageMs`. Failures are not cached. */
export function cacheResult<Result>(
  operation: () => Promise<Result>,
  ageMs: number,
  now = () => performance.now(),
): () => Promise<Result> {
  const run = singleFlight(operation)
  let cached: { readonly result: Result; readonly until: number } | undefined
  return async () => {
    if (cached !== undefined && cached.until > now()) return cached.result
    const result = await run()
    cached = { result, until: now() + ageMs }
    return result
  }
}

/**
 * Caches like `cacheResult`, but only the first caller waits: afterwards an outdated result is returned while a new one is computed. A
 * result that is older than twice `ageMs`, and one whose renewal has failed, is not returned.
 */
export function refreshResult<Result>(
  operation: () => Promise<Result>,
  ageMs: number,
  now = () => performance.now(),
): () => Promise<Result> {
  let cached: { readonly result: Result; readonly at: number } | undefined
  const renew = singleFlight(async () => {
    try {
      const result = await operation()
      cached = { result, at: now() }
      return result
    } catch (error) {
      cached = undefined
      throw error
    }
  })
  return async () => {
    if (cached === undefined || now() - cached.at > 2 * ageMs) return renew()
    if (now() - cached.at >= ageMs) renew().catch(() => undefined) // the next caller waits, and gets the error
    return cached.result
  }
}
