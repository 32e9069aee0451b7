import type { PodClock } from '../../persistence/operations/processes.js'

const RESPONSES = 50

/** Compares the clock of this machine with the header `Date` of the last responses of other pods. */
export interface RemoteClock {
  note(date: string | string[] | undefined): void
  /** Undefined: no pod has answered with a time. */
  read(): PodClock | undefined
}

export function openRemoteClock(now: () => number = Date.now): RemoteClock {
  const offsets: number[] = []
  let next = 0
  return {
    note(date) {
      const time = typeof date === 'string' ? Date.parse(date) : Number.NaN
      if (Number.isNaN(time)) return
      // The header has whole seconds, cut off.
      offsets[next] = (time + 500 - now()) / 1_000
      next = (next + 1) % RESPONSES
    },
    read() {
      if (offsets.length === 0) return undefined
      const sortedOffsets = [...offsets].sort((one, other) => one - other)
      return { offset: sortedOffsets[Math.floor(sortedOffsets.length / 2)] ?? 0, answers: sortedOffsets.length }
    },
  }
}
