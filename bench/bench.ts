/** What one case of a bench has shown. A ratio says how near it comes to what limits it, measured in the same run. */
export interface Result {
  readonly bench: string
  readonly case: string
  readonly value: number
  readonly unit: string
  /** What nothing could be better than. */
  readonly limit?: number
  readonly ratio?: number
  /** The ratio below which `--check` fails. */
  readonly floor?: number
  readonly rounds: number
  /** Widest difference between rounds, as a part of the value. */
  readonly spread: number
  /** Microseconds of processor time for one message, by process. */
  readonly cpu_us: Readonly<Record<string, number>>
  /** Whether everything that was done was also done right. */
  readonly ok: boolean
}

export interface BenchOptions {
  readonly rounds: number
}

/** Does its work and says what came out, as soon as it is known. */
export type Bench = (options: BenchOptions) => AsyncIterable<Result>

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

export function spreadOf(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values)
}

/** Whether a result is good enough for `--check`. Only ratios and correctness count: no number is right for every machine. */
export function isGoodEnough({ ok, ratio, floor }: Result): boolean {
  return ok && (floor === undefined || (ratio !== undefined && ratio >= floor))
}
