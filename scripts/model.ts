import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { checksOf, costsOf, type FigureTable, figuresIn } from './bench-figures.js'
import {
  ACTIVITIES,
  type Forecast,
  forecast,
  HARDWARE,
  maximumPeople,
  ORDINARY,
  TIERS,
  type Tier,
} from './load-model.js'

const TABLE = new URL('../bench/figures.json', import.meta.url)

const usage = `npm run model -- [--people 100000] [--assume contacts=100,peak=8,databaseCores=32] [--figures <file>] [--json]

--people   number of accounts; default: the three sizes of docs/scaling.md
--assume   replaces printed assumptions about users and hardware
--figures  output of "npm run bench -- --json" on your machine, instead of bench/figures.json
--keep     writes those figures to bench/figures.json
`

const SIZES = [1_000, 100_000, 10_000_000]
const SCALING_ADVICE: Readonly<Record<Tier, string>> = {
  web: 'web processes',
  worker: 'worker processes, on other machines if this one has no free cores',
  postgres: 'cores for the database; a replica behind DATABASE_READ_URL takes most of what requests cost',
  redis: 'nothing yet: one core of Redis handles more than the rest of a pod can send',
}

process.exitCode = await main()

async function main(): Promise<number> {
  const settings = parseArguments()
  if (settings === undefined) {
    process.stderr.write(usage)
    return 2
  }
  const { people, habits, hardware } = settings
  const table = settings.figures === undefined ? await readTable(TABLE) : await tableOf(settings.figures)
  if (settings.keep) await writeFile(TABLE, `${JSON.stringify(table, undefined, 2)}\n`)
  const costs = costsOf(table)
  const forecasts = people.map((each) => forecast(each, habits, hardware, costs))
  const maxima = TIERS.map((tier) => ({ tier, people: maximumPeople(tier, habits, hardware, costs) }))
  if (settings.json) {
    console.log(JSON.stringify({ table, habits, hardware, costs, forecasts, maxima, checks: checksOf(table) }))
    return 0
  }
  console.log(`Costs: ${table.machine}, ${table.date}; µs of processor time for each, by process`)
  print(ACTIVITIES.map((activity) => [activity, ...TIERS.map((tier) => `${tier} ${short(costs[activity][tier])}`)]))
  console.log('\nAssumptions')
  print(Object.entries({ ...habits, ...hardware }).map(([name, value]) => [name, `${value}`]))
  console.log('\nIn the busiest second')
  print(tableOfForecasts(forecasts))
  console.log(
    `\nOne of each reaches the planned load (${hardware.maxBusyShare}) with this number of accounts; then add`,
  )
  print(
    maxima
      .toSorted((one, other) => one.people - other.people)
      .map(({ tier, people: maximum }) => [tier, short(maximum), SCALING_ADVICE[tier]]),
  )
  console.log('\nThe same calculation compared with benches that use all cores')
  print(
    checksOf(table).map(({ name, measured, expected }) => [
      name,
      `measured ${short(measured)}`,
      `expected ${short(expected)}`,
      (measured / expected).toFixed(2),
    ]),
  )
  return 0
}

function parseArguments() {
  const options = {
    people: { type: 'string' },
    assume: { type: 'string', default: '' },
    figures: { type: 'string' },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  } as const
  try {
    const { values } = parseArgs({ options })
    const assumptions = values.assume.split(',').filter((pair) => pair !== '')
    const pairs = assumptions.map((pair) => [pair.split('=')[0] ?? '', Number(pair.split('=')[1])] as const)
    const known = { ...ORDINARY, ...HARDWARE }
    const people = values.people === undefined ? SIZES : [Number(values.people)]
    const areValid = pairs.every(([name, value]) => Object.hasOwn(known, name) && value >= 0)
    if (!areValid || !people.every((each) => Number.isInteger(each) && each >= 1)) return undefined
    const assumed = Object.fromEntries(pairs)
    const applyAssumed = <Kind extends object>(kind: Kind): Kind =>
      Object.assign({}, kind, Object.fromEntries(Object.entries(assumed).filter(([name]) => Object.hasOwn(kind, name))))
    const { figures, keep, json } = values
    return { people, habits: applyAssumed(ORDINARY), hardware: applyAssumed(HARDWARE), figures, keep, json }
  } catch {
    return undefined
  }
}

async function readTable(file: URL): Promise<FigureTable> {
  return JSON.parse(await readFile(file, 'utf8'))
}

/** The figures of a run of the benches on this machine. */
async function tableOf(file: string): Promise<FigureTable> {
  const [{ model } = { model: 'an unknown processor' }] = cpus()
  const cores = availableParallelism()
  const machine = `${cores} cores of ${model.trim()}`
  return {
    machine,
    cores,
    date: new Date().toISOString().slice(0, 10),
    figures: figuresIn(await readFile(file, 'utf8')),
  }
}

function tableOfForecasts(forecasts: readonly Forecast[]): readonly (readonly string[])[] {
  const row = (name: string, of: (each: Forecast) => string) => [name, ...forecasts.map(of)]
  return [
    row('accounts', ({ people }) => short(people)),
    ...ACTIVITIES.map((activity) => row(`${activity}, per second`, ({ perSecond }) => short(perSecond[activity]))),
    ...TIERS.map((tier) => row(`${tier}: cores`, (each) => short(tierOf(each, tier)?.cores ?? 0))),
    row('web processes', (each) => short(tierOf(each, 'web')?.processes ?? 1)),
    row('worker processes', (each) => short(tierOf(each, 'worker')?.processes ?? 1)),
    row('first bottleneck', ({ first }) => first),
    row('read replicas', ({ replicas }) => short(replicas)),
    row('PostgreSQL connections', ({ connections }) => short(connections)),
    row('rows, GB per year', ({ rowGigabytesPerYear }) => short(rowGigabytesPerYear)),
    row('photos, GB per year', ({ photoGigabytesPerYear }) => short(photoGigabytesPerYear)),
    row('pictures served, Mbit/s', ({ pictureMegabits }) => short(pictureMegabits)),
  ]
}

function tierOf({ tiers }: Forecast, wanted: Tier) {
  return tiers.find(({ tier }) => tier === wanted)
}

/** Formats an estimate with three significant digits. */
function short(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-GB', { maximumFractionDigits: 4 }).replaceAll(',', ' ')
}

function print(rows: readonly (readonly string[])[]): void {
  const widths: number[] = []
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length)
  for (const row of rows)
    console.log(
      `  ${row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd()}`,
    )
}
