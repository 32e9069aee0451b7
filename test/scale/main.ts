import { parseArgs } from 'node:util'
import { scaleCluster } from './cluster.js'
import { NotAvailable, type Outcome, type Part } from './part.js'
import { scalePgbouncer } from './pgbouncer.js'
import { scaleProcesses } from './processes.js'
import { scaleReplica } from './replica.js'
import { scaleSentinel } from './sentinel.js'

/** Scaled deployments of a pod, run with real processes on this machine. */
const parts: ReadonlyMap<string, Part> = new Map([
  ['cluster', scaleCluster],
  ['sentinel', scaleSentinel],
  ['replica', scaleReplica],
  ['pgbouncer', scalePgbouncer],
  ['processes', scaleProcesses],
])

const usage = `npm run scale -- <${[...parts.keys()].join(' | ')} | all> [--messages 600] [--rounds 3]

--messages  how many are sent in one burst
--rounds    how often processes measures each number of processes
`

/** Time limit of a run. It takes two minutes on a fast machine. */
const TIME_LIMIT_MS = 10 * 60_000

process.setMaxListeners(0) // each child process adds a listener that ends it with this one
// Child processes end with this process, which ends by the signal.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
setTimeout(() => {
  console.error('The run has exceeded its time limit.')
  process.exit(1)
}, TIME_LIMIT_MS).unref()
process.exit(await main())

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { messages: { type: 'string', default: '600' }, rounds: { type: 'string', default: '3' } },
    allowPositionals: true,
  })
  const names = positionals.includes('all') ? [...parts.keys()] : positionals
  const options = { messages: Number(values.messages), rounds: Number(values.rounds) }
  const areNumbers = Object.values(options).every((number) => Number.isInteger(number) && number >= 1)
  if (names.length === 0 || names.some((name) => !parts.has(name)) || !areNumbers) {
    console.error(usage)
    return 2
  }
  let isOk = true
  for (const name of names) {
    console.log(`\n${name}`)
    try {
      const outcome = await parts.get(name)?.(options)
      if (outcome) printOutcome(outcome)
      isOk &&= outcome?.violations.length === 0
    } catch (error) {
      if (!(error instanceof NotAvailable)) throw error
      console.log(`  not run: ${error.message}`)
    }
  }
  return isOk ? 0 : 1
}

function printOutcome({ results, violations }: Outcome): void {
  const width = Math.max(...results.map(([name]) => name.length))
  for (const [name, value] of results) console.log(`  ${name.padEnd(width)}  ${value}`)
  for (const violation of violations) console.log(`  WRONG: ${violation}`)
  if (violations.length === 0) console.log('  no violations')
}
