import type { PodClock } from '../../persistence/operations/processes.js'

const ANSWERS = 50

/** Compares the clock of this machine with the header `Date` of the last answers of other pods. */
export interface AnswerClock {
  note(date: string | string[] | undefined): void
  /** Undefined: no pod has answered with a time. */
  read(): PodClock | undefined
}

export function openAnswerClock(now: () => number = Date.now): AnswerClock {
  const offsets: number[] = []
  let next = 0
  return {
    note(date) {
      const time = typeof date === 'string' ? Date.parse(date) : Number.NaN
      if (Number.isNaN(time)) return
      // The header has whole seconds, cut off.
      offsets[next] = (time + 500 - now()) / 1_000
      next = (next + 1) % ANSWERS
    },
    read() {
      if (offsets.length === 0) return undefined
      const sorted = [...offsets].sort((one, other) => one - other)
      return { offset: sorted[Math.floor(sorted.length / 2)] ?? 0, answers: sorted.length }
    },
  }
}
