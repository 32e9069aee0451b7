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
