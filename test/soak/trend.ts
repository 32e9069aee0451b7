import type { VitalSigns } from './process-measurements.js'

/** One line of the final table. */
export interface Finding {
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

/** Resident memory grows in steps; memory after garbage collection varies only by a few caches. */
const RESIDENT = { part: 0.08, megabytes: 10 }
const KEPT = { megabytes: 2, megabytesPerMinute: 1 }
/** A pool may open a few more connections; a leak grows with every message. */
const FEW = 3

/**
 * The first quarter is for warming up. From then on, at rest: the median of the last quarter may be no more than that of the
 * second quarter, plus 8 % and 10 MB for resident memory; 2 MB, plus 1 MB for each minute between the two, for memory after
 * garbage collection; 3 for descriptors and connections.
 */
export function prognosisOf(signs: readonly VitalSigns[]): readonly Finding[] {
  const end = signs.at(-1)?.seconds ?? 0
  const minutes = end / 2 / 60 // from the middle of the second quarter to that of the last
  const names = [...new Set(signs.flatMap(({ figures }) => Object.keys(figures)))]
  const calm = signs.filter(({ phase, seconds }) => phase === 'rest' && seconds >= end / 4)
  return names.map((name) => {
    const valuesOf = (some: readonly VitalSigns[]) =>
      some.map(({ figures }) => figures[name] ?? Number.NaN).filter((value) => !Number.isNaN(value))
    const before = median(valuesOf(calm.filter(({ seconds }) => seconds < end / 2)))
    const after = median(valuesOf(calm.filter(({ seconds }) => seconds >= (end * 3) / 4)))
    return {
      name,
      before,
      after,
      perMinute: slopeOf(calm.map(({ seconds, figures }) => ({ x: seconds / 60, y: figures[name] ?? Number.NaN }))),
      max: Math.max(...valuesOf(signs)),
      growth: growthOf(name, before, after, minutes),
    }
  })
}

function growthOf(name: string, before: number, after: number, minutes: number): Finding['growth'] {
  const max = maxAfter(name, before, minutes)
  if (max === undefined) return 'not judged'
  if (Number.isNaN(after - before)) return 'not known'
  return after <= max ? 'none' : 'too much'
}

/** Undefined: no limit. */
function maxAfter(name: string, before: number, minutes: number): number | undefined {
  if (/(descriptors|connections)$/.test(name)) return before + FEW
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

export function tableOf(findings: readonly Finding[]): string {
  const head = ['', 'before', 'after', 'a minute', 'max', '']
  const lines = findings.map(({ name, before, after, perMinute, max, growth }) => [
    name,
    ...[before, after, perMinute, max].map((value) => value.toFixed(1)),
    growth === 'too much' ? 'HAS GROWN' : '',
    growth === 'not known' ? 'NOT KNOWN' : '',
  ])
  return [head, ...lines]
    .map(([name = '', ...cells]) => `  ${name.padEnd(24)}${cells.map((cell) => cell.padStart(11)).join('')}`.trimEnd())
    .join('\n')
}
