import { ACTIVITIES, type Activity, type Costs, TIERS, type Tier } from './load-model.js'

/** A line of `npm run bench -- --json`, as far as it matters here. */
export interface Figure {
  readonly bench: string
  readonly case: string
  readonly value: number
  readonly unit: string
  readonly cpu_us: Readonly<Record<string, number>>
}

/** What the benches have shown on one machine. */
export interface FigureTable {
  readonly machine: string
  readonly cores: number
  readonly date: string
  readonly figures: readonly Figure[]
}

interface Source {
  readonly bench: string
  readonly case: string
  /** How its processes are called here; processes without a name here are not part of the pod. */
  readonly as: Readonly<Partial<Record<string, Tier>>>
}

const PROCESSES = { web: 'web', worker: 'worker', postgres: 'postgres', redis: 'redis' } as const

/** Where the cost of each activity is measured; where there are several, it is all of them together. */
export const SOURCES: Readonly<Record<Activity, readonly Source[]>> = {
  'public message in': [{ bench: 'inbound', case: 'redis, rsa4096', as: PROCESSES }],
  // In addition to the usual costs, a key of one person is used.
  'private message in': [
    { bench: 'inbound', case: 'redis, rsa4096', as: PROCESSES },
    { bench: 'protocol', case: 'private, status_message, rsa4096', as: { protocol: 'worker' } },
  ],
  'delivery out': [{ bench: 'outbound', case: 'public, redis', as: PROCESSES }],
  request: [{ bench: 'api', case: 'stream activity', as: PROCESSES }],
  write: [{ bench: 'api', case: 'writing a post', as: PROCESSES }],
}

/** Throws where the table has no line for what is needed. */
export function costsOf(table: FigureTable): Costs {
  const costs = ACTIVITIES.map((activity) => {
    const tiers = TIERS.map((tier) => [
      tier,
      SOURCES[activity].reduce((sum, source) => sum + spentIn(table, source, tier), 0),
    ])
    return [activity, Object.fromEntries(tiers)]
  })
  return Object.fromEntries(costs)
}

function spentIn(table: FigureTable, source: Source, tier: Tier): number {
  const figure = figureOf(table, source)
  return Object.entries(figure.cpu_us)
    .filter(([name]) => source.as[name] === tier)
    .reduce((sum, [, microseconds]) => sum + microseconds, 0)
}

function figureOf({ figures }: FigureTable, source: Source): Figure {
  const found = figures.find((figure) => figure.bench === source.bench && figure.case === source.case)
  if (found === undefined) throw new Error(`There is no line "${source.case}" of the bench ${source.bench}.`)
  return found
}

/** A case that fills the whole machine, and what would be expected of it. */
export interface Check {
  readonly name: string
  readonly measured: number
  /** All cores do nothing else, the load generator included. */
  readonly expected: number
}

/** What the same arithmetic says of what the benches have measured at full speed. */
export function checksOf({ figures, cores }: FigureTable): readonly Check[] {
  return figures
    .filter(({ unit, cpu_us }) => (unit === 'msg/s' || unit === 'requests/s') && 'postgres' in cpu_us)
    .map(({ bench, case: name, value, cpu_us }) => {
      const spent = Object.entries(cpu_us).filter(([process]) => !process.startsWith('bare'))
      const microseconds = spent.reduce((sum, [, each]) => sum + each, 0)
      return { name: `${bench}, ${name}`, measured: value, expected: (cores * 1e6) / microseconds }
    })
}

/** The lines that are needed here, of a whole run of the benches. */
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
