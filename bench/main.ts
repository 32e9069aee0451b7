import { parseArgs } from 'node:util'
import { type BenchOptions, isBelowFloor, mergeRerun, passesCheck, type Result } from './bench.js'
import { benchNames, loadBench, usualBenches } from './benches.js'
import { openProgress } from './report/progress.js'
import { writeReport } from './report/report.js'
import { HEAD, lineOf, roundResult } from './report/table.js'

/** Options for a run of all usual benches, which takes about twenty minutes. */
const DEFAULTS_OF_ALL = { rounds: '3', size: '40000' }
const DEFAULTS_OF_NAMED = { rounds: '5', size: '1000000' }
/** Reruns of benches with a result below its floor. */
const MAX_RERUNS = 2

const usage = `npm run bench -- [name …] [option …]

Benches: ${benchNames.join(', ')}
Without a name: all except hostile and take-over, with --rounds ${DEFAULTS_OF_ALL.rounds} --size ${DEFAULTS_OF_ALL.size}

Options:
  --rounds    measurements of each case; the result is their median
  --size      number of posts in the generated pod of api
  --messages  number of messages of lived, or of comments of deliveries
  --case      only this case, of hostile, lived, outbound and deliveries; repeatable
              lived: full speed, rates, pods, steps; outbound: kinds, hanging, dispatch; deliveries: healthy, dead, comments
  --queue     only this queue back end, of the same benches; repeatable
  --strength  share of each attack that hostile sends, for example 0.1
  --keep      folder for CPU profiles of the worker (lived) and for statements with their times (lived, deliveries)
  --json      one line of JSON per result
  --check     exit with 1 if a result is wrong, or if a ratio is below its floor in three runs
  --write     update the table and charts of docs/performance.md
`

/** Values in place of arguments that cannot be parsed. They are no valid numbers, so that the usage is printed. */
const INVALID_ARGUMENTS = {
  help: false,
  rounds: '',
  size: '',
  json: false,
  check: false,
  write: false,
  case: undefined,
  queue: undefined,
  strength: '',
  messages: undefined,
  keep: undefined,
}

await main()

async function main(): Promise<void> {
  const { values, positionals } = parseArguments()
  if (values.help) {
    process.stdout.write(usage)
    return
  }
  const defaults = positionals.length === 0 ? DEFAULTS_OF_ALL : DEFAULTS_OF_NAMED
  const names = positionals.length === 0 ? usualBenches : positionals
  const [rounds, size] = [Number(values.rounds ?? defaults.rounds), Number(values.size ?? defaults.size)]
  const strength = Number(values.strength)
  const messages = values.messages === undefined ? undefined : Number(values.messages)
  const integers = [rounds, size, messages ?? 1]
  const areNumbersValid = integers.every((number) => Number.isInteger(number) && number >= 1) && strength > 0
  if (!names.every((name) => benchNames.includes(name)) || !areNumbersValid) return reportMisuse()

  const { case: cases, queue: queues, keep } = values
  const selection = {
    ...(cases && { cases }),
    ...(queues && { queues }),
    ...(messages && { messages }),
    ...(keep && { keep }),
  }
  const run = { rounds, size, strength, json: values.json, ...selection }
  const firstResults = await measure(names, run)
  const results = values.check ? await remeasureBelowFloor(firstResults, run) : firstResults
  if (values.write) await writeReport(results)
  if (values.check) reportVerdict(results)
}

function reportVerdict(results: readonly Result[]): void {
  const failing = results.filter((result) => !passesCheck(result))
  const lines = failing.map((result) => `${result.bench}: ${lineOf(result).trimEnd()}\n`)
  process.stderr.write(failing.length === 0 ? 'ok\n' : lines.join(''))
  if (failing.length > 0) process.exitCode = 1
}

/** Measures again, because other work on the machine can slow a bench down once. Incorrect results are final. */
async function remeasureBelowFloor(firstResults: readonly Result[], run: RunOptions): Promise<readonly Result[]> {
  let results = firstResults
  for (let rerun = 0; rerun < MAX_RERUNS; rerun += 1) {
    results = mergeRerun(results, await measure(benchNamesOf(results.filter(isBelowFloor)), run))
  }
  return results
}

interface RunOptions extends BenchOptions {
  readonly json: boolean
}

async function measure(names: readonly string[], { json, ...options }: RunOptions): Promise<readonly Result[]> {
  if (names.length === 0) return []
  const results: Result[] = []
  const progress = openProgress(names, process.stderr)
  if (!json) console.log(HEAD)
  for (const name of names) {
    progress.show(name)
    const bench = await loadBench(name)
    for await (const result of bench(options)) {
      progress.clear()
      console.log(json ? JSON.stringify(roundResult(result)) : lineOf(result))
      results.push(result)
    }
  }
  progress.end()
  return results
}

function benchNamesOf(results: readonly Result[]): readonly string[] {
  return [...new Set(results.map(({ bench }) => bench))]
}

function parseArguments() {
  const options = {
    help: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    size: { type: 'string' },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    case: { type: 'string', multiple: true },
    queue: { type: 'string', multiple: true },
    strength: { type: 'string', default: '1' },
    messages: { type: 'string' },
    keep: { type: 'string' },
  } as const
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch {
    return { values: { ...INVALID_ARGUMENTS }, positionals: [] }
  }
}

function reportMisuse(): void {
  process.stderr.write(usage)
  process.exitCode = 2
}
