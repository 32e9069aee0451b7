import { HTTP_LIMITS } from '../limits.js'
import { RequestFault } from './faults.js'
import { tooMany } from './rate-limit.js'

interface TurnstileLimits {
  readonly all: number
  readonly each: number
}

/** Lets so many in at a time, and of one user only a few. Whoever is let in has to leave; others are told to come again. */
export function openTurnstile({ all, each }: TurnstileLimits): (userId: number) => () => void {
  const inside = new Map<number, number>()
  let total = 0

  function change(userId: number, by: 1 | -1): void {
    const count = (inside.get(userId) ?? 0) + by
    if (count === 0) inside.delete(userId)
    else inside.set(userId, count)
    total += by
  }

  return (userId) => {
    if ((inside.get(userId) ?? 0) >= each) throw tooMany(1)
    if (total >= all) {
      throw new RequestFault(503, 'The pod has too much to do at the moment. Please try again soon.', {
        headers: { 'retry-after': String(HTTP_LIMITS.retryAfterSeconds) },
      })
    }
    change(userId, 1)
    return () => change(userId, -1)
  }
}
