import { HTTP_LIMITS } from '../../limits.js'
import { type RequestFault, tooBusy } from '../server/request-faults.js'
import { tooMany } from './rate-limit.js'
import { countRateLimited, type RateLimitName } from './rejection-metrics.js'

interface Room {
  readonly all: number
  readonly each: number
}

interface TurnstileLimits extends Room {
  readonly limit: RateLimitName
  /** Who may wait in front of it; nobody, unless it is said. */
  readonly line?: Room & { readonly withinMs: number }
}

/** Lets so many in at a time, and of one user only a few. */
export interface Turnstile<Key = number> {
  /** Does something inside. Others wait for their turn until they are gone; who waits too long, or finds no place in the line, is told to come again. */
  pass<Result>(userId: Key, work: () => Promise<Result>, gone?: AbortSignal): Promise<Result>
  /** The same for what can as well be left out: who is not let in at once goes on without it. */
  passIfRoom(userId: Key, work: () => Promise<void>): Promise<void>
}

interface Waiting<Key> {
  readonly userId: Key
  readonly letIn: () => void
}

const NO_LINE = { all: 0, each: 0, withinMs: 0 }

export function openTurnstile<Key = number>({ limit, all, each, line = NO_LINE }: TurnstileLimits): Turnstile<Key> {
  const inside = new Map<Key, number>()
  const waiting = new Set<Waiting<Key>>()
  let total = 0

  const countOf = (userId: Key): number => inside.get(userId) ?? 0
  const hasRoomFor = (userId: Key): boolean => total < all && countOf(userId) < each

  function change(userId: Key, by: 1 | -1): void {
    const count = countOf(userId) + by
    if (count === 0) inside.delete(userId)
    else inside.set(userId, count)
    total += by
  }

  function refusalOf(userId: Key): RequestFault {
    if (countOf(userId) < each) return tooBusy(HTTP_LIMITS.retryAfterSeconds)
    countRateLimited(limit)
    return tooMany(1)
  }

  function hasPlaceFor(userId: Key): boolean {
    const own = [...waiting].filter((one) => one.userId === userId)
    return waiting.size < line.all && own.length < line.each
  }

  /** Resolves once they are inside. */
  function turnOf(userId: Key, gone: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const one = { userId, letIn }
      const timer = setTimeout(giveUp, line.withinMs)
      gone?.addEventListener('abort', giveUp)
      waiting.add(one)
      if (gone?.aborted) giveUp()

      function leave(): void {
        waiting.delete(one)
        clearTimeout(timer)
        gone?.removeEventListener('abort', giveUp)
      }
      function letIn(): void {
        leave()
        change(userId, 1)
        resolve()
      }
      function giveUp(): void {
        leave()
        reject(refusalOf(userId))
      }
    })
  }

  /** Whoever has the least inside goes first: a long line of one user must not keep all others out. */
  function letNextIn(): void {
    const [next] = [...waiting]
      .filter(({ userId }) => hasRoomFor(userId))
      .toSorted((one, other) => countOf(one.userId) - countOf(other.userId))
    next?.letIn()
  }

  async function pass<Result>(userId: Key, work: () => Promise<Result>, gone?: AbortSignal): Promise<Result> {
    if (hasRoomFor(userId)) change(userId, 1)
    else if (hasPlaceFor(userId)) await turnOf(userId, gone)
    else throw refusalOf(userId)
    try {
      return await work()
    } finally {
      change(userId, -1)
      letNextIn()
    }
  }

  return {
    pass,
    async passIfRoom(userId, work) {
      if (hasRoomFor(userId)) await pass(userId, work)
    },
  }
}
