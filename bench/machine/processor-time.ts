import { readdirSync, readFileSync } from 'node:fs'

/** How often in a second of processor time something can be done: other work on the machine does not count against it. */
export type Rate = number

export const MICROSECONDS_PER_PART = 300_000

/** Does `once` for a while and gives its rate. `messages` is how many it does at a time. */
export function rateOf(messages: number, once: () => void): Rate {
  const start = process.cpuUsage()
  let done = 0
  let microseconds = 0
  while (microseconds < MICROSECONDS_PER_PART) {
    once()
    done += messages
    const { user, system } = process.cpuUsage(start)
    microseconds = user + system
  }
  return (done / microseconds) * 1_000_000
}

/** What is done again and again, and how many messages that is each time. */
export interface Turn {
  readonly messages: number
  once(): unknown
}

const MICROSECONDS_PER_TURN = 10_000

/** The rates of two workloads that alternate in short turns, so that other load of the machine affects both. */
export async function ratesInTurns(one: Turn, other: Turn): Promise<readonly [Rate, Rate]> {
  const totals = [one, other].map((turn) => ({ turn, done: 0, microseconds: 0 }))
  while (totals.some(({ microseconds }) => microseconds < MICROSECONDS_PER_PART)) {
    for (const total of totals) {
      const start = process.cpuUsage()
      let microseconds = 0
      while (microseconds < MICROSECONDS_PER_TURN) {
        await total.turn.once()
        total.done += total.turn.messages
        const { user, system } = process.cpuUsage(start)
        microseconds = user + system
      }
      total.microseconds += microseconds
    }
  }
  const [value, limit] = totals.map(({ done, microseconds }) => (done / microseconds) * 1_000_000)
  return [value ?? Number.NaN, limit ?? Number.NaN]
}

/** Linux counts in hundredths of a second whose turn it is just then; what works for less at a time may be seen never, or always. */
const MICROSECONDS_PER_TICK = 10_000

/**
 * Microseconds of processor time that a process and all below it have taken; of this one only its own, since what it has started
 * is measured separately. NaN if the system does not report it.
 */
function processorTimeOf(pid: number): number {
  try {
    const measured = pid === process.pid ? [pid] : processTree(pid)
    return measured.reduce((sum, each) => sum + ownTimeOf(each) + timeOfEndedChildren(each), 0)
  } catch {
    return Number.NaN
  }
}

/** A process, its children, theirs, and so on. */
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

/** The processor time of each process for these messages, between two samples. */
export function timePerMessage(
  messages: number,
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const spent = (name: string) => ((after[name] ?? 0) - (before[name] ?? 0)) / messages
  return Object.fromEntries(Object.keys(after).map((name) => [name, spent(name)]))
}

/** Megabytes of memory that a process has now. */
export function memoryOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
  } catch {
    return Number.NaN
  }
}

/** The same without counting twice what processes share; nothing where the process has just ended. */
export function ownMemoryOf(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1_024
  } catch {
    return 0
  }
}

/** Undefined: it has ended. */
export function parentOf(pid: number): number | undefined {
  const parent = fieldsOf(pid)[1]
  return parent === undefined ? undefined : Number(parent)
}

/** From the scheduler, which counts nanoseconds per thread; otherwise from clock ticks. */
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

/** In user mode and, in the field behind it, in system mode. */
function ticksOf(pid: number, field: number): number {
  const [user = 0, system = 0] = fieldsOf(pid)
    .slice(field, field + 2)
    .map(Number)
  return (user + system) * MICROSECONDS_PER_TICK
}

/** From the state on; the name before it may hold anything. */
function fieldsOf(pid: number): readonly string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
