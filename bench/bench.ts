/** The result of one case of a bench. The ratio compares the value with a limit that is measured in the same run. */
export interface Result {
  readonly bench: string
  readonly case: string
  readonly value: number
  readonly unit: string
  /** The value of the unavoidable work alone, on the same machine. */
  readonly limit?: number
  readonly ratio?: number
  /** The ratio below which `--check` fails. */
  readonly floor?: number
  readonly rounds: number
  /** Largest difference between two rounds, as a fraction of the value. */
  readonly spread: number
  /** Microseconds of processor time per message, by process. */
  readonly cpu_us: Readonly<Record<string, number>>
  /** Database statements per message. */
  readonly statements?: number
  /** Latency of a message, by the step that it has reached. */
  readonly latency_ms?: Readonly<Record<string, Latency>>
  /** Further figures of the case. */
  readonly more?: Readonly<Record<string, number>>
  /** Whether all work was done correctly. */
  readonly ok: boolean
}

export interface Latency {
  readonly p50: number
  readonly p99: number
}

export interface BenchOptions {
  readonly rounds: number
  /** Number of posts in a generated pod. */
  readonly size: number
  /** The number of messages that `lived` sends (default: all of the corpus), and of comments in `deliveries`. */
  readonly messages?: number
  /** Folder for CPU profiles and statements of `lived` and `deliveries`. Not set: none are kept. */
  readonly keep?: string
  /** The only cases that run, for `hostile`, `lived`, `outbound` and `deliveries`. */
  readonly cases?: readonly string[]
  /** The only queue back ends that are measured, for the same benches. */
  readonly queues?: readonly string[]
  /** Share of each attack that `hostile` sends. */
  readonly strength?: number
}

/** A bench runs while its results are iterated, and yields each result as soon as it is known. */
export type Bench = (options: BenchOptions) => AsyncIterable<Result>

/** Reports a part that is not measured, and the reason. The exit code does not change. */
export function reportSkipped(reason: string, part: string): void {
  process.stderr.write(`${reason}, so ${part} is left out.\n`)
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** Median processor time of each process over all rounds. */
export function medianCpu(
  rounds: readonly { readonly cpu: Readonly<Record<string, number>> }[],
): Readonly<Record<string, number>> {
  const processes = Object.keys(rounds[0]?.cpu ?? {})
  const medianOf = (process: string) => median(rounds.map(({ cpu }) => cpu[process] ?? Number.NaN))
  return Object.fromEntries(processes.map((process) => [process, medianOf(process)]))
}

export function latencyOf(milliseconds: readonly number[]): Latency {
  const sorted = [...milliseconds].sort((left, right) => left - right)
  const percentile = (fraction: number) => sorted[Math.floor(sorted.length * fraction)] ?? Number.NaN
  return { p50: percentile(0.5), p99: percentile(0.99) }
}

export function spreadOf(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values)
}

/** Whether a result passes `--check`. Only ratios and correctness count, because absolute values depend on the machine. */
export function passesCheck({ ok, ratio, floor }: Result): boolean {
  return ok && (floor === undefined || (ratio !== undefined && ratio >= floor))
}

/** Whether a correct result has a ratio below its floor. */
export function isBelowFloor(result: Result): boolean {
  return result.ok && !passesCheck(result)
}

/** Replaces results below their floor with those of another run. An incorrect result of the other run replaces a correct one. */
export function mergeRerun(results: readonly Result[], rerun: readonly Result[]): readonly Result[] {
  return results.map((result) => {
    const remeasured = rerun.find((other) => other.bench === result.bench && other.case === result.case)
    return remeasured !== undefined && (isBelowFloor(result) || !remeasured.ok) ? remeasured : result
  })
}
