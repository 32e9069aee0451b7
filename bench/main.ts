import { parseArgs } from 'node:util'
import { type BenchOptions, isDoubtful, isGoodEnough, type Result, withSecond } from './bench.js'
import { benches } from './benches.js'
import { openProgress } from './progress.js'
import { writeReport } from './report.js'
import { HEAD, lineOf, rounded } from './table.js'

/** When none is named, all of them end within a quarter of an hour. */
const WHEN_ALL = { rounds: '3', size: '40000' }
const WHEN_NAMED = { rounds: '5', size: '1000000' }

const usage = `npm run bench -- [name …] [--rounds 5] [--size 1000000] [--json] [--check] [--write]

Names: ${[...benches.keys()].join(', ')}; without one, all of them with --rounds ${WHEN_ALL.rounds} --size ${WHEN_ALL.size}
--size   how many posts the generated pod of api has
--json   one line of JSON for each result
--check  fails when a ratio is below its floor, and is so again when its bench runs once more, or something was done wrong
--write  puts table and charts into docs/performance.md and docs/performance
`

await main()

async function main(): Promise<void> {
  const { values, positionals } = readWords()
  const usual = positionals.length === 0 ? WHEN_ALL : WHEN_NAMED
  const names = positionals.length === 0 ? [...benches.keys()] : positionals
  const [rounds, size] = [Number(values.rounds ?? usual.rounds), Number(values.size ?? usual.size)]
  const areNumbers = [rounds, size].every((number) => Number.isInteger(number) && number >= 1)
  if (!names.every((name) => benches.has(name)) || !areNumbers) return misused()

  const run = { rounds, size, json: values.json }
  const measured = await measure(names, run)
  // A machine may have had other work for a minute. What is slow is so again; what was done wrong stays wrong.
  const again = values.check ? await measure(namesOf(measured.filter(isDoubtful)), run) : []
  const results = withSecond(measured, again)
  if (values.write) await writeReport(results)
  if (values.check && !results.every(isGoodEnough)) process.exitCode = 1
}

async function measure(
  names: readonly string[],
  { json, ...options }: BenchOptions & { readonly json: boolean },
): Promise<readonly Result[]> {
  if (names.length === 0) return []
  const results: Result[] = []
  const progress = openProgress(names, process.stderr)
  if (!json) console.log(HEAD)
  for (const name of names) {
    progress.show(name)
    for await (const result of benches.get(name)?.(options) ?? []) {
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
    rounds: { type: 'string' },
    size: { type: 'string' },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  } as const
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch {
    return { values: { rounds: '', size: '', json: false, check: false, write: false }, positionals: [] }
  }
}

function misused(): void {
  process.stderr.write(usage)
  process.exitCode = 2
}
