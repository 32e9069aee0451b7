import { readdirSync, readFileSync } from 'node:fs'

/** Operations per second of processor time, which other work on the machine does not change. */
export type Rate = number

/** Processor time of one measurement. */
export const MICROSECONDS_PER_MEASUREMENT = 300_000

/** Repeats an operation and returns its rate. `messages` is the number of messages of one call. */
export function rateOf(messages: number, run: () => void): Rate {
  const start = process.cpuUsage()
  let done = 0
  let microseconds = 0
  while (microseconds < MICROSECONDS_PER_MEASUREMENT) {
    run()
    done += messages
    const { user, system } = process.cpuUsage(start)
    microseconds = user + system
  }
  return (done / microseconds) * 1_000_000
}

/** A repeated operation and the number of messages of one call. */
export interface Workload {
  readonly messages: number
  run(): unknown
}

const MICROSECONDS_PER_SLICE = 10_000

/** The rates of two workloads that alternate in short slices, so that other work on the machine affects both. */
export async function measureAlternatingRates(one: Workload, other: Workload): Promise<readonly [Rate, Rate]> {
  const totals = [one, other].map((workload) => ({ workload, done: 0, microseconds: 0 }))
  while (totals.some(({ microseconds }) => microseconds < MICROSECONDS_PER_MEASUREMENT)) {
    for (const total of totals) {
      const start = process.cpuUsage()
      let microseconds = 0
      while (microseconds < MICROSECONDS_PER_SLICE) {
        await total.workload.run()
        total.done += total.workload.messages
        const { user, system } = process.cpuUsage(start)
        microseconds = user + system
      }
      total.microseconds += microseconds
    }
  }
  const [value, limit] = totals.map(({ done, microseconds }) => (done / microseconds) * 1_000_000)
  return [value ?? Number.NaN, limit ?? Number.NaN]
}

/** Linux samples the running process every hundredth of a second, so that short work may be counted never or too often. */
const MICROSECONDS_PER_TICK = 10_000

/**
 * Microseconds of processor time of a process and its descendants. Of the current process only its own time, because its children
 * are measured separately. NaN if the system does not report it.
 */
function processorTimeOf(pid: number): number {
  try {
    const measured = pid === process.pid ? [pid] : processTree(pid)
    return measured.reduce((sum, each) => sum + ownTimeOf(each) + timeOfEndedChildren(each), 0)
  } catch {
    return Number.NaN
  }
}

/** The ids of a process and all its descendants. */
export function processTree(pid: number): readonly number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const parents = new Map(all.map((name) => [Number(name), parentOf(Number(name))]))
  const tree = [pid]
  for (const member of tree) for (const [each, parent] of parents) if (parent === member) tree.push(each)
  return tree
}

export function processorTimesOf(pids: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, processorTimeOf(pid)]))
}

/** The processor time of each process per message, between two samples. */
export function timePerMessage(
  messages: number,
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const spent = (name: string) => ((after[name] ?? 0) - (before[name] ?? 0)) / messages
  return Object.fromEntries(Object.keys(after).map((name) => [name, spent(name)]))
}

/** Resident memory of a process in megabytes. */
export function memoryOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
  } catch {
    return Number.NaN
  }
}

/** Proportional set size in megabytes: shared memory is divided by the number of its processes. 0 after the end of the process. */
export function ownMemoryOf(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1_024
  } catch {
    return 0
  }
}

/** The id of the parent process. Undefined: the process has ended. */
export function parentOf(pid: number): number | undefined {
  const parent = fieldsOf(pid)[1]
  return parent === undefined ? undefined : Number(parent)
}

/** Processor time from the scheduler, in nanoseconds per thread; where it is missing, from clock ticks. */
function ownTimeOf(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    const nanoseconds = threads.map((thread) => {
      const [running] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
      return Number(running)
    })
    return nanoseconds.reduce((sum, each) => sum + each, 0) / 1_000
  } catch {
    return ticksOf(pid, 11)
  }
}

function timeOfEndedChildren(pid: number): number {
  return ticksOf(pid, 13)
}

/** Time in user mode and, in the next field, in system mode. */
function ticksOf(pid: number, field: number): number {
  const [user = 0, system = 0] = fieldsOf(pid)
    .slice(field, field + 2)
    .map(Number)
  return (user + system) * MICROSECONDS_PER_TICK
}

/** Fields of /proc/PID/stat from the state on. The process name before it may contain any character. */
function fieldsOf(pid: number): readonly string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
