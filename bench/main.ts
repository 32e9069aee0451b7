import { parseArgs } from 'node:util'
import { isGoodEnough, type Result } from './bench.js'
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
--check  fails when a ratio is below its floor, or something was done wrong
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

  const results: Result[] = []
  const progress = openProgress(names, process.stderr)
  if (!values.json) console.log(HEAD)
  for (const name of names) {
    progress.show(name)
    for await (const result of benches.get(name)?.({ rounds, size }) ?? []) {
      progress.clear()
      console.log(values.json ? JSON.stringify(rounded(result)) : lineOf(result))
      results.push(result)
    }
  }
  progress.end()
  if (values.write) await writeReport(results)
  if (values.check && !results.every(isGoodEnough)) process.exitCode = 1
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
