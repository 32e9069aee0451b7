import { median, type Result, spreadOf } from '../bench.js'
import type { BenchStores } from '../machine/bench-stores.js'
import { processorTimesOf } from '../machine/processor-time.js'

/** The costs of the same deliveries by the pod and by a bare HTTP client. */
export interface Round {
  readonly subject: DeliveryCost
  readonly bare: DeliveryCost
  readonly isComplete: boolean
}

/** Time of a number of deliveries, and their microseconds of processor time by process. */
export interface DeliveryCost {
  readonly deliveries: number
  readonly seconds: number
  readonly cpu: Readonly<Record<string, number>>
}

/** Runs deliveries and measures their cost. */
export async function measureDeliveries(
  deliveries: number,
  { pids }: BenchStores,
  work: () => Promise<unknown>,
): Promise<DeliveryCost> {
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

export function resultOf(name: string, rounds: readonly Round[], floor: number | undefined): Result {
  const rates = rounds.map(({ subject }) => subject.deliveries / subject.seconds)
  const limits = rounds.map(({ bare }) => bare.deliveries / bare.seconds)
  const names = Object.keys(rounds[0]?.subject.cpu ?? {})
  const cpu = names.map((process) => [process, median(rounds.map(({ subject }) => cpuOfEach(subject, process)))])
  return {
    bench: 'outbound',
    case: name,
    value: median(rates),
    unit: 'deliveries/s',
    limit: median(limits),
    ratio: median(rates.map((rate, round) => rate / (limits[round] ?? Number.NaN))),
    ...(floor !== undefined && { floor }),
    rounds: rounds.length,
    spread: spreadOf(rates),
    cpu_us: {
      ...Object.fromEntries(cpu),
      bare: median(rounds.map(({ bare }) => cpuOfEach(bare, 'worker'))),
    },
    ok: rounds.every(({ isComplete }) => isComplete),
  }
}

function cpuOfEach({ cpu, deliveries }: DeliveryCost, process: string): number {
  return (cpu[process] ?? Number.NaN) / deliveries
}
