import { passesCheck, type Result } from '../bench.js'

export const HEAD = formatColumns('case', 'value', '', 'limit', 'ratio', 'floor', 'spread', 'µs', '')

export function lineOf(result: Result): string {
  const { value, unit, limit, ratio, floor, spread } = roundResult(result)
  return formatColumns(
    result.case,
    value,
    unit,
    limit,
    ratio,
    floor,
    `±${spread}`,
    detailsOf(result),
    verdictOf(result),
  )
}

/** The result as a row of a Markdown table. */
export function rowOf(result: Result): string {
  const { value, unit, limit, ratio, floor, spread } = roundResult(result)
  const cells = [result.bench, result.case, `${value} ${unit}`, limit, ratio, floor, `±${spread}`, detailsOf(result)]
  return `| ${[...cells, verdictOf(result)].map((cell) => String(cell ?? '')).join(' | ')} |`
}

export const MARKDOWN_HEAD = `| bench | case | value | limit | ratio | floor | spread | µs for one, and more | |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |`

export function roundResult(result: Result): Result {
  const { cpu_us, latency_ms, more } = result
  const { limit, ratio, statements } = result
  return {
    ...result,
    value: roundValue(result.value),
    ...(limit !== undefined && { limit: roundValue(limit) }),
    ...(ratio !== undefined && { ratio: roundValue(ratio) }),
    spread: roundValue(result.spread),
    cpu_us: mapValues(cpu_us, roundValue),
    ...(statements !== undefined && { statements: roundValue(statements) }),
    ...(latency_ms && {
      latency_ms: mapValues(latency_ms, ({ p50, p99 }) => ({ p50: roundValue(p50), p99: roundValue(p99) })),
    }),
    ...(more && { more: mapValues(more, roundValue) }),
  }
}

function verdictOf(result: Result): string {
  if (!result.ok) return 'WRONG'
  return passesCheck(result) ? '' : 'below its floor'
}

function detailsOf(result: Result): string {
  const { cpu_us, statements, latency_ms = {}, more = {} } = roundResult(result)
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

/** Rounds to three significant digits, which is the precision of a measurement. */
function roundValue(value: number): number {
  return Number(value.toPrecision(3))
}

function formatColumns(name: string, ...cells: readonly (string | number | undefined)[]): string {
  return name.padEnd(40) + cells.map((cell) => String(cell ?? '').padStart(11)).join(' ')
}
