import { parseArgs } from 'node:util'
import { benchAccept } from './accept.js'
import { benchApi } from './api.js'
import { type Bench, isGoodEnough, type Result } from './bench.js'
import { benchDiscovery } from './discovery.js'
import { benchInbound } from './inbound.js'
import { benchLimits } from './limits.js'
import { benchListeners } from './listeners.js'
import { benchOutbound } from './outbound.js'
import { benchPersist } from './persist.js'
import { benchProtocol } from './protocol.js'

const benches: ReadonlyMap<string, Bench> = new Map([
  ['limits', benchLimits],
  ['protocol', benchProtocol],
  ['outbound', benchOutbound],
  ['discovery', benchDiscovery],
  ['accept', benchAccept],
  ['persist', benchPersist],
  ['inbound', benchInbound],
  ['api', benchApi],
  ['listeners', benchListeners],
])

const usage = `npm run bench -- <name> [--rounds 5] [--size 1000000] [--json] [--check]

Names: ${[...benches.keys()].join(', ')}
--size   how many posts the generated pod of api has
--json   one line of JSON for each result
--check  fails when a ratio is below its floor, or something was done wrong
`

await main()

async function main(): Promise<void> {
  const { values, positionals } = readWords()
  const chosen = positionals.map((name) => benches.get(name))
  const [rounds, size] = [Number(values.rounds), Number(values.size)]
  const areNumbers = [rounds, size].every((number) => Number.isInteger(number) && number >= 1)
  if (chosen.length === 0 || chosen.includes(undefined) || !areNumbers) return misused()

  if (!values.json) console.log(columns('case', 'value', '', 'limit', 'ratio', 'floor', 'spread', 'µs', ''))
  let good = true
  for (const bench of chosen) {
    if (bench === undefined) continue
    for await (const result of bench({ rounds, size })) {
      console.log(values.json ? JSON.stringify(rounded(result)) : lineOf(result))
      good &&= isGoodEnough(result)
    }
  }
  if (values.check && !good) process.exitCode = 1
}

function readWords() {
  const options = {
    rounds: { type: 'string', default: '5' },
    size: { type: 'string', default: '1000000' },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  } as const
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch {
    return { values: { rounds: '', size: '', json: false, check: false }, positionals: [] }
  }
}

function misused(): void {
  process.stderr.write(usage)
  process.exitCode = 2
}

function lineOf(result: Result): string {
  const { value, unit, limit, ratio, floor, spread, cpu_us, statements, latency_ms, more: figures } = rounded(result)
  const processes = Object.entries(cpu_us).map(([name, microseconds]) => `${name} ${microseconds}`)
  const more = [
    ...(statements === undefined ? [] : [`statements ${statements}`]),
    ...Object.entries(latency_ms ?? {}).map(([name, { p50, p99 }]) => `${name} ${p50}/${p99} ms`),
    ...Object.entries(figures ?? {}).map(([name, figure]) => `${name} ${figure}`),
  ]
  const verdict = isGoodEnough(result) ? '' : result.ok ? 'below its floor' : 'WRONG'
  return columns(
    result.case,
    value,
    unit,
    limit,
    ratio,
    floor,
    `±${spread}`,
    [...processes, ...more].join(' '),
    verdict,
  )
}

function rounded(result: Result): Result {
  const parts = Object.entries(result.cpu_us).map(([name, microseconds]) => [name, shorten(microseconds)])
  const latencies = Object.entries(result.latency_ms ?? {}).map(([name, { p50, p99 }]) => [
    name,
    { p50: shorten(p50), p99: shorten(p99) },
  ])
  const figures = Object.entries(result.more ?? {}).map(([name, figure]) => [name, shorten(figure)])
  return {
    ...result,
    value: shorten(result.value),
    ...(result.limit !== undefined && { limit: shorten(result.limit) }),
    ...(result.ratio !== undefined && { ratio: shorten(result.ratio) }),
    spread: shorten(result.spread),
    cpu_us: Object.fromEntries(parts),
    ...(result.statements !== undefined && { statements: shorten(result.statements) }),
    ...(result.latency_ms && { latency_ms: Object.fromEntries(latencies) }),
    ...(result.more && { more: Object.fromEntries(figures) }),
  }
}

/** Three digits say all that a measurement knows. */
function shorten(value: number): number {
  return Number(value.toPrecision(3))
}

function columns(name: string, ...cells: readonly (string | number | undefined)[]): string {
  return name.padEnd(40) + cells.map((cell) => String(cell ?? '').padStart(11)).join(' ')
}
