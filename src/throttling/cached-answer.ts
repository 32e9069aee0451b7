import { singleFlight } from './single-flight.js'

/** Caches the result of an expensive operation for `ageMs`. Failures are not cached. */
export function cachedAnswer<Answer>(
  operation: () => Promise<Answer>,
  ageMs: number,
  now = () => performance.now(),
): () => Promise<Answer> {
  const run = singleFlight(operation)
  let cached: { readonly answer: Answer; readonly until: number } | undefined
  return async () => {
    if (cached !== undefined && cached.until > now()) return cached.answer
    const answer = await run()
    cached = { answer, until: now() + ageMs }
    return answer
  }
}
