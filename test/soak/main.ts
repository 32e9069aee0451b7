import { parseArgs } from 'node:util'
import { soakFlood } from './flood.js'
import { soakInbound } from './inbound.js'
import { soakMixed } from './mixed.js'
import { soakOutbound } from './outbound.js'

/** What all of them understand. */
export interface SoakOptions {
  readonly seed: number
  /** Not set: on each there is. */
  readonly store: string | undefined
  /** Not set: as much as its own measure says. */
  readonly size: number | undefined
  /** Of those that go on for a time. */
  readonly minutes: number | undefined
}

/** Hours of a hostile life in minutes: too long for every run of the tests, and worth it before a release. */
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
const chosen = soaks.get(positionals[0] ?? '')
if (chosen === undefined) {
  console.error(
    `npm run soak -- <${[...soaks.keys()].join(' | ')}> [--seed 1] [--store Redis] [--size 20000] [--minutes 8]`,
  )
  process.exit(2)
}
// What was started dies with this process, which dies as it should.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const isWell = await chosen({
  seed: Number(values.seed ?? Date.now() % 1_000_000),
  store: values.store,
  size: numberIn(values.size),
  minutes: numberIn(values.minutes),
})
process.exit(isWell ? 0 : 1)

function numberIn(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}
