import { parseArgs } from 'node:util'
import { type BenchOptions, isDoubtful, isGoodEnough, type Result, withAnother } from './bench.js'
import { benches, usualBenches } from './benches.js'
import { openProgress } from './progress.js'
import { writeReport } from './report.js'
import { HEAD, lineOf, rounded } from './table.js'

/** When none is named, all of them end in about twenty minutes. */
const WHEN_ALL = { rounds: '3', size: '40000' }
const WHEN_NAMED = { rounds: '5', size: '1000000' }
/** That what is below its floor is measured. */
const MORE_TIMES = 2

const usage = `npm run bench -- [name …] [--rounds 5] [--size 1000000] [--json] [--check] [--write] [--case NAME] [--queue NAME] [--strength 1] [--messages 3500] [--keep FOLDER]

Names: ${[...benches.keys()].join(', ')}; without one, ${usualBenches.join(', ')} with --rounds ${WHEN_ALL.rounds} --size ${WHEN_ALL.size}
--size   how many posts the generated pod of api has
--json   one line of JSON for each result
--check  fails when a ratio is below its floor, and stays so when its bench runs twice more, or something was done wrong
--strength  of hostile: the part of each attack that is sent
--case  of hostile, lived, outbound and deliveries: only this case (may be given several times); of lived: full speed, rates, pods, steps; of outbound: kinds, hanging, dispatch; of deliveries: healthy, dead, comments
--queue  of the same: only this back end (may be given several times)
--messages  of lived and deliveries: the number of messages or comments
--keep   of lived and deliveries: the folder for CPU profiles of the worker (lived) and the statements with their times
--write  puts table and charts into docs/performance.md and docs/performance
`

/** The values of arguments that cannot be parsed. They are no valid numbers, so that the usage is printed. */
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
  if (!names.every((name) => benches.has(name)) || !areNumbers) return misused()

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
  for (const [name, bench] of names.map((name) => [name, benches.get(name)?.(options) ?? []] as const)) {
    progress.show(name)
    for await (const result of bench) {
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
