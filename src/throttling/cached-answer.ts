import { singleFlight } from './single-flight.js'

/** Caches the result of an expensive operation for `ageMs`. Failures are not cached. */
export function cachedAnswer<Answer>(
  operation: () => Promise<Answer>,
  ageMs: number,
  now = () => performance.now(),
): () => Promise<Answer> {
  const run = singleFlight(operation)
  let kept: { readonly answer: Answer; readonly until: number } | undefined
  return async () => {
    if (kept !== undefined && kept.until > now()) return kept.answer
    const answer = await run()
    kept = { answer, until: now() + ageMs }
    return answer
  }
}
