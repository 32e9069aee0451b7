import { expect, it } from 'vitest'
import { inParts } from '../../workers/threads/in-parts.js'

const LIMITS = { min: 32, max: 64 }
const THREADS = 2

it.each([
  [0, []],
  [1, [1]],
  [63, [63]],
  [64, [32, 32]],
  [65, [33, 32]],
  [80, [40, 40]],
  [129, [43, 43, 43]],
  [256, [64, 64, 64, 64]],
])('%i are made into parts of %j, in order', (count, sizes) => {
  const items = Array.from({ length: count }, (_, item) => item)
  const parts = inParts(items, LIMITS, THREADS)
  expect(parts.map(({ length }) => length)).toEqual(sizes)
  expect(parts.flat()).toEqual(items)
})

it('large inputs are split into as many parts as needed, independent of the number of threads', () => {
  const parts = inParts(Array.from({ length: 128 }), LIMITS, 1)
  expect(parts.map(({ length }) => length)).toEqual([64, 64])
})
