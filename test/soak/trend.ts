import type { PodSample } from './process-measurements.js'

/** The trend of one value: a line of the final table. */
export interface Trend {
  readonly name: string
  /** Medians at rest, of the second and the last quarter of the run. */
  readonly before: number
  readonly after: number
  /** Slope by least squares, over all measurements at rest after the warm-up. */
  readonly perMinute: number
  /** Maximum under load. */
  readonly max: number
  readonly growth: 'none' | 'too much' | 'not known' | 'not judged'
}

/** Tolerated growth. Resident memory grows in steps; memory after garbage collection varies only by some caches. */
const RESIDENT = { part: 0.08, megabytes: 10 }
const KEPT = { megabytes: 2, megabytesPerMinute: 1 }
/** Tolerated new connections or descriptors of a pool. A leak grows with every message. */
const MAX_NEW_HANDLES = 3

/**
 * Compares the medians at rest of the second and the last quarter; the first quarter is the warm-up. Tolerated growth: 8 % and 10 MB
 * for resident memory; 2 MB, plus 1 MB per minute, for memory after garbage collection; 3 for descriptors and connections.
 */
export function analyseTrends(samples: readonly PodSample[]): readonly Trend[] {
  const end = samples.at(-1)?.seconds ?? 0
  const minutes = end / 2 / 60 // from the middle of the second quarter to that of the last
  const names = [...new Set(samples.flatMap(({ figures }) => Object.keys(figures)))]
  const atRest = samples.filter(({ phase, seconds }) => phase === 'rest' && seconds >= end / 4)
  return names.map((name) => {
    const valuesOf = (some: readonly PodSample[]) =>
      some.map(({ figures }) => figures[name] ?? Number.NaN).filter((value) => !Number.isNaN(value))
    const before = median(valuesOf(atRest.filter(({ seconds }) => seconds < end / 2)))
    const after = median(valuesOf(atRest.filter(({ seconds }) => seconds >= (end * 3) / 4)))
    return {
      name,
      before,
      after,
      perMinute: slopeOf(atRest.map(({ seconds, figures }) => ({ x: seconds / 60, y: figures[name] ?? Number.NaN }))),
      max: Math.max(...valuesOf(samples)),
      growth: growthOf(name, before, after, minutes),
    }
  })
}

function growthOf(name: string, before: number, after: number, minutes: number): Trend['growth'] {
  const max = maxAfter(name, before, minutes)
  if (max === undefined) return 'not judged'
  if (Number.isNaN(after - before)) return 'not known'
  return after <= max ? 'none' : 'too much'
}

/** Undefined: no limit. */
function maxAfter(name: string, before: number, minutes: number): number | undefined {
  if (/(descriptors|connections)$/.test(name)) return before + MAX_NEW_HANDLES
  if (name.endsWith(' kept, MB')) return before + KEPT.megabytes + KEPT.megabytesPerMinute * minutes
  return name.endsWith(', MB') ? before * (1 + RESIDENT.part) + RESIDENT.megabytes : undefined
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const [low = Number.NaN, high = Number.NaN] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return (low + high) / 2
}

function slopeOf(all: readonly { readonly x: number; readonly y: number }[]): number {
  const points = all.filter(({ y }) => !Number.isNaN(y))
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x0, y0] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))]
  const both = points.reduce((sum, { x, y }) => sum + (x - x0) * (y - y0), 0)
  return both / points.reduce((sum, { x }) => sum + (x - x0) ** 2, 0)
}

export function tableOf(trends: readonly Trend[]): string {
  const head = ['', 'before', 'after', 'a minute', 'max', '']
  const lines = trends.map(({ name, before, after, perMinute, max, growth }) => [
    name,
    ...[before, after, perMinute, max].map((value) => value.toFixed(1)),
    growth === 'too much' ? 'HAS GROWN' : '',
    growth === 'not known' ? 'NOT KNOWN' : '',
  ])
  return [head, ...lines]
    .map(([name = '', ...cells]) => `  ${name.padEnd(24)}${cells.map((cell) => cell.padStart(11)).join('')}`.trimEnd())
    .join('\n')
}
