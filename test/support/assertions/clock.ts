/** A clock that a test advances. */
export interface Clock {
  now(): Date
  /** Advances the clock, and returns its new time. */
  later(minutes?: number): string
}

export function openClock(): Clock {
  let time = Date.now()
  return {
    now: () => new Date(time),
    later(minutes = 1) {
      time += minutes * 60_000
      return new Date(time).toISOString()
    },
  }
}
