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
  /** For one message. */
  readonly statements?: number
  /** How long one message takes to somewhere, by where. */
  readonly latency_ms?: Readonly<Record<string, Latency>>
  /** Additional information. */
  readonly more?: Readonly<Record<string, number>>
  /** Whether everything that was done was also done right. */
  readonly ok: boolean
}

export interface Latency {
  readonly p50: number
  readonly p99: number
}

export interface BenchOptions {
  readonly rounds: number
  /** How many posts a generated pod has. */
  readonly size: number
  /** The number of messages that `lived` sends (default: all of the corpus), and of comments in `deliveries`. */
  readonly messages?: number
  /** Of `lived` and `deliveries`: the folder for CPU profiles and statements; not set: none are kept. */
  readonly keep?: string
  /** Of `hostile`, `lived`, `outbound` and `deliveries`: only these cases. */
  readonly cases?: readonly string[]
  /** Of the same: only these back ends of the queue. */
  readonly queues?: readonly string[]
  /** Of `hostile`: the part of each attack that is sent. */
  readonly strength?: number
}

/** Runs when its results are requested, and yields each result as soon as it is known. */
export type Bench = (options: BenchOptions) => AsyncIterable<Result>

/** Says what is not measured, and why; nothing depends on that. */
export function leaveOut(why: string, part: string): void {
  process.stderr.write(`${why}, so ${part} is left out.\n`)
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** By process, over all rounds. */
export function medianCpu(
  rounds: readonly { readonly cpu: Readonly<Record<string, number>> }[],
): Readonly<Record<string, number>> {
  const processes = Object.keys(rounds[0]?.cpu ?? {})
  const ofProcess = (process: string) => median(rounds.map(({ cpu }) => cpu[process] ?? Number.NaN))
  return Object.fromEntries(processes.map((process) => [process, ofProcess(process)]))
}

export function latencyOf(milliseconds: readonly number[]): Latency {
  const sorted = [...milliseconds].sort((left, right) => left - right)
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}

export function spreadOf(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values)
}

/** Whether a result is good enough for `--check`. Only ratios and correctness count: no number is right for every machine. */
export function isGoodEnough({ ok, ratio, floor }: Result): boolean {
  return ok && (floor === undefined || (ratio !== undefined && ratio >= floor))
}

/** Below its floor, but nothing was done wrong. */
export function isDoubtful(result: Result): boolean {
  return result.ok && !isGoodEnough(result)
}

/** Doubtful results get the values of this run. A failure of this run counts as a failure. */
export function withAnother(results: readonly Result[], another: readonly Result[]): readonly Result[] {
  return results.map((result) => {
    const again = another.find((other) => other.bench === result.bench && other.case === result.case)
    return again !== undefined && (isDoubtful(result) || !again.ok) ? again : result
  })
}
