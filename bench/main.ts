import { parseArgs } from 'node:util'
import { type BenchOptions, isDoubtful, isGoodEnough, type Result, withAnother } from './bench.js'
import { benchNames, loadBench, usualBenches } from './benches.js'
import { openProgress } from './report/progress.js'
import { writeReport } from './report/report.js'
import { HEAD, lineOf, rounded } from './report/table.js'

/** When none is named, all of them end in about twenty minutes. */
const WHEN_ALL = { rounds: '3', size: '40000' }
const WHEN_NAMED = { rounds: '5', size: '1000000' }
/** Further measurements of a result below its floor. */
const MORE_TIMES = 2

const usage = `npm run bench -- [name …] [option …]

Benches: ${benchNames.join(', ')}
Without a name: all except hostile and take-over, with --rounds ${WHEN_ALL.rounds} --size ${WHEN_ALL.size}

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

/** The values of arguments that cannot be parsed. They are not valid numbers, so that the usage is printed. */
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
  const { values, positionals } = readWords()
  if (values.help) {
    process.stdout.write(usage)
    return
  }
  const usual = positionals.length === 0 ? WHEN_ALL : WHEN_NAMED
  const names = positionals.length === 0 ? usualBenches : positionals
  const [rounds, size] = [Number(values.rounds ?? usual.rounds), Number(values.size ?? usual.size)]
  const strength = Number(values.strength)
  const messages = values.messages === undefined ? undefined : Number(values.messages)
  const whole = [rounds, size, messages ?? 1]
  const areNumbers = whole.every((number) => Number.isInteger(number) && number >= 1) && strength > 0
  if (!names.every((name) => benchNames.includes(name)) || !areNumbers) return misused()

  const { case: cases, queue: queues, keep } = values
  const chosen = {
    ...(cases && { cases }),
    ...(queues && { queues }),
    ...(messages && { messages }),
    ...(keep && { keep }),
  }
  const run = { rounds, size, strength, json: values.json, ...chosen }
  const measured = await measure(names, run)
  const results = values.check ? await measureDoubtful(measured, run) : measured
  if (values.write) await writeReport(results)
  if (values.check) sayVerdict(results)
}

function sayVerdict(results: readonly Result[]): void {
  const bad = results.filter((result) => !isGoodEnough(result))
  const lines = bad.map((result) => `${result.bench}: ${lineOf(result).trimEnd()}\n`)
  process.stderr.write(bad.length === 0 ? 'ok\n' : lines.join(''))
  if (bad.length > 0) process.exitCode = 1
}

/** A machine may have had other work for a minute. What is slow is so each time; what was done wrong stays wrong. */
async function measureDoubtful(measured: readonly Result[], run: Run): Promise<readonly Result[]> {
  let results = measured
  for (let time = 0; time < MORE_TIMES; time += 1) {
    results = withAnother(results, await measure(namesOf(results.filter(isDoubtful)), run))
  }
  return results
}

interface Run extends BenchOptions {
  readonly json: boolean
}

async function measure(names: readonly string[], { json, ...options }: Run): Promise<readonly Result[]> {
  if (names.length === 0) return []
  const results: Result[] = []
  const progress = openProgress(names, process.stderr)
  if (!json) console.log(HEAD)
  for (const name of names) {
    progress.show(name)
    const bench = await loadBench(name)
    for await (const result of bench(options)) {
      progress.clear()
      console.log(json ? JSON.stringify(rounded(result)) : lineOf(result))
      results.push(result)
    }
  }
  progress.end()
  return results
}

function namesOf(results: readonly Result[]): readonly string[] {
  return [...new Set(results.map(({ bench }) => bench))]
}

function readWords() {
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

function misused(): void {
  process.stderr.write(usage)
  process.exitCode = 2
}
