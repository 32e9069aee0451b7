import { HTTP_LIMITS } from '../limits.js'
import { type RequestFault, tooBusy } from './faults.js'
import { tooMany } from './rate-limit.js'

interface TurnstileLimits {
  readonly all: number
  readonly each: number
}

/** Lets so many in at a time, and of one user only a few. */
export interface Turnstile {
  /** Does something inside; who is not let in is told to come again. */
  pass<Result>(userId: number, work: () => Promise<Result>): Promise<Result>
  /** The same for what can as well be left out: who is not let in goes on without it. */
  passIfRoom(userId: number, work: () => Promise<void>): Promise<void>
}

export function openTurnstile({ all, each }: TurnstileLimits): Turnstile {
  const inside = new Map<number, number>()
  let total = 0

  function change(userId: number, by: 1 | -1): void {
    const count = (inside.get(userId) ?? 0) + by
    if (count === 0) inside.delete(userId)
    else inside.set(userId, count)
    total += by
  }

  function refusalOf(userId: number): RequestFault | undefined {
    if ((inside.get(userId) ?? 0) >= each) return tooMany(1)
    return total < all ? undefined : tooBusy(HTTP_LIMITS.retryAfterSeconds)
  }

  async function pass<Result>(userId: number, work: () => Promise<Result>): Promise<Result> {
    const refusal = refusalOf(userId)
    if (refusal !== undefined) throw refusal
    change(userId, 1)
    try {
      return await work()
    } finally {
      change(userId, -1)
    }
  }

  return {
    pass,
    async passIfRoom(userId, work) {
      if (refusalOf(userId) === undefined) await pass(userId, work)
    },
  }
}
