import { isGoodEnough, type Result } from '../bench.js'

export const HEAD = columns('case', 'value', '', 'limit', 'ratio', 'floor', 'spread', 'µs', '')

export function lineOf(result: Result): string {
  const { value, unit, limit, ratio, floor, spread } = rounded(result)
  return columns(result.case, value, unit, limit, ratio, floor, `±${spread}`, furtherOf(result), verdictOn(result))
}

/** The same as a row of a table in Markdown. */
export function rowOf(result: Result): string {
  const { value, unit, limit, ratio, floor, spread } = rounded(result)
  const cells = [result.bench, result.case, `${value} ${unit}`, limit, ratio, floor, `±${spread}`, furtherOf(result)]
  return `| ${[...cells, verdictOn(result)].map((cell) => String(cell ?? '')).join(' | ')} |`
}

export const MARKDOWN_HEAD = `| bench | case | value | limit | ratio | floor | spread | µs for one, and more | |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |`

export function rounded(result: Result): Result {
  const { cpu_us, latency_ms, more } = result
  const { limit, ratio, statements } = result
  return {
    ...result,
    value: shorten(result.value),
    ...(limit !== undefined && { limit: shorten(limit) }),
    ...(ratio !== undefined && { ratio: shorten(ratio) }),
    spread: shorten(result.spread),
    cpu_us: mapValues(cpu_us, shorten),
    ...(statements !== undefined && { statements: shorten(statements) }),
    ...(latency_ms && {
      latency_ms: mapValues(latency_ms, ({ p50, p99 }) => ({ p50: shorten(p50), p99: shorten(p99) })),
    }),
    ...(more && { more: mapValues(more, shorten) }),
  }
}

function verdictOn(result: Result): string {
  if (!result.ok) return 'WRONG'
  return isGoodEnough(result) ? '' : 'below its floor'
}

function furtherOf(result: Result): string {
  const { cpu_us, statements, latency_ms = {}, more = {} } = rounded(result)
  return [
    ...Object.entries(cpu_us).map(([name, microseconds]) => `${name} ${microseconds}`),
    ...(statements === undefined ? [] : [`statements ${statements}`]),
    ...Object.entries(latency_ms).map(([name, { p50, p99 }]) => `${name} ${p50}/${p99} ms`),
    ...Object.entries(more).map(([name, figure]) => `${name} ${figure}`),
  ].join(' ')
}

function mapValues<From, To>(values: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))
}

/** Three digits say all that a measurement knows. */
function shorten(value: number): number {
  return Number(value.toPrecision(3))
}

function columns(name: string, ...cells: readonly (string | number | undefined)[]): string {
  return name.padEnd(40) + cells.map((cell) => String(cell ?? '').padStart(11)).join(' ')
}
