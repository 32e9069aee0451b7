import type { BarChart } from './bar-chart.js'

/** The charted cells of a row in the result table of docs/performance.md. */
interface MeasuredCase {
  readonly bench: string
  readonly name: string
  readonly ratio: number | undefined
  readonly floor: number | undefined
  readonly cpu_us: Readonly<Record<string, number>>
  readonly latency_ms: Readonly<Record<string, { readonly p50: number; readonly p99: number }>>
}

/** Charts of the tables in docs/performance.md, by file name in docs/performance. */
export function chartsOfPage(page: string): Readonly<Record<string, BarChart>> {
  const cases = casesIn(page)
  const chart = (title: string, unit: string, bars: BarChart['bars']): BarChart => ({ title, unit, bars })
  return {
    comparison: chart('How many times as fast as diaspora*, with the queue in PostgreSQL', 'times', comparisonIn(page)),
    ratios: chart(
      'Ratio of each case to its limit; the line is its floor',
      'ratio to the limit',
      cases.flatMap(({ bench, name, ratio, floor }) =>
        ratio === undefined || bench === 'peer' // its ratio is many times 1
          ? []
          : [{ label: `${bench}: ${name}`, parts: { ratio }, mark: floor }],
      ),
    ),
    latency: chart(
      'Latency until the response and until the row is stored',
      'ms, 50th and 99th percentile',
      cases.flatMap(({ name, latency_ms }) =>
        Object.entries(latency_ms).map(([part, { p50, p99 }]) => ({
          label: `${name}, ${part}`,
          parts: { '50th percentile': p50, '99th percentile': p99 - p50 },
        })),
      ),
    ),
    cost: chart(
      'Processor time per message, by process',
      'µs',
      cases
        .filter(({ bench, ratio }) => bench === 'inbound' && ratio !== undefined)
        .map(({ name, cpu_us }) => ({ label: name, parts: cpu_us })),
    ),
  }
}

function casesIn(page: string): readonly MeasuredCase[] {
  return rowsBelow(page, '| bench | case |').map(([bench = '', name = '', , , ratio, floor, , further = '']) => ({
    ...{ bench, name, ratio: numberOrNone(ratio), floor: numberOrNone(floor) },
    // Processor times come first, then statements or latencies.
    cpu_us: numbersIn(further.replace(/\s*(\bstatements .*|\b\w+ [0-9.]+\/.*)$/, '')),
    latency_ms: latenciesIn(further),
  }))
}

/** Bars from the comparison with diaspora*. The last cell of a row contains the ratios with the queue in PostgreSQL and in Redis. */
function comparisonIn(page: string): BarChart['bars'] {
  return rowsBelow(page, '| 3 500 messages from one pod |').flatMap(([name = '', , , ratios = '']) => {
    const [postgresql, redis] = ratios.split('/').map(numberOrNone)
    if (postgresql === undefined) return []
    const [label = ''] = name.split(',')
    const withRedis = redis === undefined ? [] : [{ label: 'the same with Redis', parts: { times: redis } }]
    return [{ label, parts: { times: postgresql } }, ...withRedis]
  })
}

/** The cells of the rows below this table head. */
function rowsBelow(page: string, head: string): readonly (readonly string[])[] {
  const lines = page.split('\n')
  const first = lines.findIndex((line) => line.startsWith(head)) + 2
  if (first < 2) throw new Error(`docs/performance.md has no table that begins with "${head}".`)
  const length = lines.slice(first).findIndex((line) => !line.startsWith('|'))
  return lines.slice(first, first + length).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

function numberOrNone(cell: string | undefined): number | undefined {
  return cell === undefined || cell.trim() === '' ? undefined : Number(cell)
}

function numbersIn(text: string): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Array.from(text.matchAll(/([a-z_ ]+?) ([0-9.]+)/g), ([, name = '', value]) => [name.trim(), Number(value)]),
  )
}

function latenciesIn(text: string): MeasuredCase['latency_ms'] {
  return Object.fromEntries(
    Array.from(text.matchAll(/([a-z_]+) ([0-9.]+)\/([0-9.]+) ms/g), ([, name = '', p50, p99]) => [
      name,
      { p50: Number(p50), p99: Number(p99) },
    ]),
  )
}
