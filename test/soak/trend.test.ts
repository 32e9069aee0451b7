import { expect, it } from 'vitest'
import type { VitalSigns } from './process-measurements.js'
import { prognosisOf } from './trend.js'

const NAMES = ['web resident, MB', 'web kept, MB', 'web descriptors', 'PostgreSQL connections', 'jobs in line']

/** Eight minutes, a measurement every five seconds, every third one at rest. */
function signsOf(valueAt: (seconds: number) => number): readonly VitalSigns[] {
  return Array.from({ length: 97 }, (_, index) => ({
    phase: index % 3 === 0 ? 'rest' : 'burst',
    seconds: index * 5,
    figures: Object.fromEntries(NAMES.map((name) => [name, valueAt(index * 5)])),
  }))
}

function grown(valueAt: (seconds: number) => number, how = 'too much'): readonly string[] {
  return prognosisOf(signsOf(valueAt))
    .filter(({ growth }) => growth === how)
    .map(({ name }) => name)
}

const judged = NAMES.slice(0, 4)

it('the trend ignores temporary peaks and the growth during the warm-up', () => {
  expect(grown((seconds) => 100 + 2 * Math.sin(seconds))).toEqual([])
  expect(grown((seconds) => Math.min(seconds, 100))).toEqual([])
})

it('the trend reports a steady growth and its rate', () => {
  expect(grown((seconds) => 100 + seconds / 10)).toEqual(judged)
  const [memory] = prognosisOf(signsOf((seconds) => 100 + seconds / 10))
  expect(memory?.perMinute).toBeCloseTo(6)
  expect([memory?.before, memory?.after]).toEqual([117.25, 142])
})

it('the trend allows only resident memory to grow by a few megabytes', () => {
  expect(grown((seconds) => 100 + seconds / 30)).toEqual(judged.slice(1))
})

it('the trend reports missing measurements as a violation', () => {
  expect(grown(() => Number.NaN, 'not known')).toEqual(judged)
  expect(grown((seconds) => (seconds < 300 ? 100 : Number.NaN), 'not known')).toEqual(judged)
  expect(grown(() => 100, 'none')).toEqual(judged)
})
