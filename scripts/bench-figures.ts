import { ACTIVITIES, type Activity, type Costs, TIERS, type Tier } from './load-model.js'

/** The used fields of a line of `npm run bench -- --json`. */
export interface Figure {
  readonly bench: string
  readonly case: string
  readonly value: number
  readonly unit: string
  readonly cpu_us: Readonly<Record<string, number>>
}

/** Results of the benches on one machine. */
export interface FigureTable {
  readonly machine: string
  readonly cores: number
  readonly date: string
  readonly figures: readonly Figure[]
}

interface Source {
  readonly bench: string
  readonly case: string
  /** Tiers by process name of the bench. Other processes are not part of the pod. */
  readonly as: Readonly<Partial<Record<string, Tier>>>
}

const PROCESSES = { web: 'web', worker: 'worker', postgres: 'postgres', redis: 'redis' } as const

/** The bench cases whose costs add up to the cost of each activity. */
export const SOURCES: Readonly<Record<Activity, readonly Source[]>> = {
  'public message in': [{ bench: 'inbound', case: 'redis, rsa4096', as: PROCESSES }],
  // A private message has the cost of a public one, plus the decryption with the key of a person.
  'private message in': [
    { bench: 'inbound', case: 'redis, rsa4096', as: PROCESSES },
    { bench: 'protocol', case: 'private, status_message, rsa4096', as: { protocol: 'worker' } },
  ],
  'delivery out': [{ bench: 'outbound', case: 'public, redis', as: PROCESSES }],
  request: [{ bench: 'api', case: 'stream activity', as: PROCESSES }],
  write: [{ bench: 'api', case: 'writing a post', as: PROCESSES }],
}

/** Costs of all activities. Throws if the table lacks a line. */
export function costsOf(table: FigureTable): Costs {
  const costs = ACTIVITIES.map((activity) => {
    const tiers = TIERS.map((tier) => [
      tier,
      SOURCES[activity].reduce((sum, source) => sum + costIn(table, source, tier), 0),
    ])
    return [activity, Object.fromEntries(tiers)]
  })
  return Object.fromEntries(costs)
}

function costIn(table: FigureTable, source: Source, tier: Tier): number {
  const figure = figureOf(table, source)
  return Object.entries(figure.cpu_us)
    .filter(([name]) => source.as[name] === tier)
    .reduce((sum, [, microseconds]) => sum + microseconds, 0)
}

function figureOf({ figures }: FigureTable, source: Source): Figure {
  const found = figures.find((figure) => figure.bench === source.bench && figure.case === source.case)
  if (found === undefined) throw new Error(`The line "${source.case}" of the bench ${source.bench} is missing.`)
  return found
}

/** A case that uses all cores, with the expected value. */
export interface Check {
  readonly name: string
  readonly measured: number
  /** Value if all cores, including that of the load generator, do only this work. */
  readonly expected: number
}

/** Compares the arithmetic of the model with the results of benches at full speed. */
export function checksOf({ figures, cores }: FigureTable): readonly Check[] {
  return figures
    .filter(({ unit, cpu_us }) => (unit === 'msg/s' || unit === 'requests/s') && 'postgres' in cpu_us)
    .map(({ bench, case: name, value, cpu_us }) => {
      const spent = Object.entries(cpu_us).filter(([process]) => !process.startsWith('bare'))
      const microseconds = spent.reduce((sum, [, each]) => sum + each, 0)
      return { name: `${bench}, ${name}`, measured: value, expected: (cores * 1e6) / microseconds }
    })
}

/** The used lines of a complete run of the benches. */
export function figuresIn(lines: string): readonly Figure[] {
  const wanted = Object.values(SOURCES).flat()
  return lines
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line): Figure => JSON.parse(line))
    .filter(
      (figure) =>
        figure.bench === 'processes' || wanted.some((each) => each.bench === figure.bench && each.case === figure.case),
    )
    .map(({ bench, case: name, value, unit, cpu_us }) => ({ bench, case: name, value, unit, cpu_us }))
}
