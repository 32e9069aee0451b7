import { parseArgs } from 'node:util'
import { soakFlood } from './flood.js'
import { soakInbound } from './inbound.js'
import { soakMixed } from './mixed.js'
import { soakOutbound } from './outbound.js'

/** Options of all soak runs. */
export interface SoakOptions {
  readonly seed: number
  /** Default: each available store. */
  readonly store: string | undefined
  /** Default: the size of the run. */
  readonly size: number | undefined
  /** Duration of the runs with a time limit. */
  readonly minutes: number | undefined
}

/** Long runs under load and faults, for the time before a release. They are too long for the test suite. */
const soaks: ReadonlyMap<string, (options: SoakOptions) => Promise<boolean>> = new Map([
  ['inbound', soakInbound],
  ['outbound', soakOutbound],
  ['mixed', soakMixed],
  ['flood', soakFlood],
])

const { values, positionals } = parseArgs({
  options: {
    seed: { type: 'string' },
    store: { type: 'string' },
    size: { type: 'string' },
    minutes: { type: 'string' },
  },
  allowPositionals: true,
})
const soak = soaks.get(positionals[0] ?? '')
if (soak === undefined) {
  console.error(
    `npm run soak -- <${[...soaks.keys()].join(' | ')}> [--seed 1] [--store Redis] [--size 20000] [--minutes 8]`,
  )
  process.exit(2)
}
// Child processes end with this process, which ends by the signal.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const isOk = await soak({
  seed: Number(values.seed ?? Date.now() % 1_000_000),
  store: values.store,
  size: parseNumber(values.size),
  minutes: parseNumber(values.minutes),
})
process.exit(isOk ? 0 : 1)

function parseNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}
