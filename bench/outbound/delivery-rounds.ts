import { median, type Result, spreadOf } from '../bench.js'
import type { BenchStores } from '../machine/bench-stores.js'
import { processorTimesOf } from '../machine/processor-time.js'

/** The same done in two ways, one after the other. */
export interface Round {
  readonly subject: Spent
  readonly bare: Spent
  readonly isComplete: boolean
}

/** Seconds, and microseconds of processor time by process. */
export interface Spent {
  readonly deliveries: number
  readonly seconds: number
  readonly cpu: Readonly<Record<string, number>>
}

/** What so many deliveries take. */
export async function spentOn(deliveries: number, { pids }: BenchStores, work: () => Promise<unknown>): Promise<Spent> {
  const own = process.cpuUsage()
  const before = processorTimesOf(pids)
  const start = performance.now()
  await work()
  const seconds = (performance.now() - start) / 1_000
  const after = processorTimesOf(pids)
  const { user, system } = process.cpuUsage(own)
  const others = Object.keys(pids).map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)])
  return { deliveries, seconds, cpu: { worker: user + system, ...Object.fromEntries(others) } }
}

export function resultOf(name: string, measured: readonly Round[], floor: number | undefined): Result {
  const rates = measured.map(({ subject }) => subject.deliveries / subject.seconds)
  const limits = measured.map(({ bare }) => bare.deliveries / bare.seconds)
  const names = Object.keys(measured[0]?.subject.cpu ?? {})
  const cpu = names.map((process) => [process, median(measured.map(({ subject }) => cpuOfEach(subject, process)))])
  return {
    bench: 'outbound',
    case: name,
    value: median(rates),
    unit: 'deliveries/s',
    limit: median(limits),
    ratio: median(rates.map((rate, round) => rate / (limits[round] ?? Number.NaN))),
    ...(floor !== undefined && { floor }),
    rounds: measured.length,
    spread: spreadOf(rates),
    cpu_us: {
      ...Object.fromEntries(cpu),
      bare: median(measured.map(({ bare }) => cpuOfEach(bare, 'worker'))),
    },
    ok: measured.every(({ isComplete }) => isComplete),
  }
}

function cpuOfEach({ cpu, deliveries }: Spent, process: string): number {
  return (cpu[process] ?? Number.NaN) / deliveries
}
