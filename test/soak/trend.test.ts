import { expect, it } from 'vitest'
import type { PodSample } from './process-measurements.js'
import { analyseTrends } from './trend.js'

const NAMES = ['web resident, MB', 'web kept, MB', 'web descriptors', 'PostgreSQL connections', 'jobs in line']

/** Samples of eight minutes, one every five seconds, every third one at rest. */
function makeSamples(valueAt: (seconds: number) => number): readonly PodSample[] {
  return Array.from({ length: 97 }, (_, index) => ({
    phase: index % 3 === 0 ? 'rest' : 'burst',
    seconds: index * 5,
    figures: Object.fromEntries(NAMES.map((name) => [name, valueAt(index * 5)])),
  }))
}

function namesWithGrowth(valueAt: (seconds: number) => number, expectedGrowth = 'too much'): readonly string[] {
  return analyseTrends(makeSamples(valueAt))
    .filter(({ growth }) => growth === expectedGrowth)
    .map(({ name }) => name)
}

const limitedNames = NAMES.slice(0, 4)

it('the trend ignores temporary peaks and the growth during the warm-up', () => {
  expect(namesWithGrowth((seconds) => 100 + 2 * Math.sin(seconds))).toEqual([])
  expect(namesWithGrowth((seconds) => Math.min(seconds, 100))).toEqual([])
})

it('the trend reports a steady growth and its rate', () => {
  expect(namesWithGrowth((seconds) => 100 + seconds / 10)).toEqual(limitedNames)
  const [memory] = analyseTrends(makeSamples((seconds) => 100 + seconds / 10))
  expect(memory?.perMinute).toBeCloseTo(6)
  expect([memory?.before, memory?.after]).toEqual([117.25, 142])
})

it('the trend allows only resident memory to grow by a few megabytes', () => {
  expect(namesWithGrowth((seconds) => 100 + seconds / 30)).toEqual(limitedNames.slice(1))
})

it('the trend reports missing measurements as a violation', () => {
  expect(namesWithGrowth(() => Number.NaN, 'not known')).toEqual(limitedNames)
  expect(namesWithGrowth((seconds) => (seconds < 300 ? 100 : Number.NaN), 'not known')).toEqual(limitedNames)
  expect(namesWithGrowth(() => 100, 'none')).toEqual(limitedNames)
})
