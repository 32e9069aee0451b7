import { expect, it } from 'vitest'
import { type BoundedMap, openBoundedMap } from '../src/bounded-map.js'

function namesIn(map: BoundedMap<string, unknown>): string[] {
  return ['a', 'b', 'c', 'd'].filter((name) => map.get(name) !== undefined)
}

it('forgets what was set longest ago for what is new', () => {
  const map = openBoundedMap<string, number>({ entries: 2 })
  map.set('a', 1)
  map.set('b', 2)
  map.set('a', 3)
  map.set('c', 4)

  expect(namesIn(map)).toEqual(['a', 'c'])
  expect(map.get('a')).toBe(3)
})

it('forgets as many as a large one needs, and has their room again', () => {
  const map = openBoundedMap<string, string>({ entries: 9, bytes: 5, sizeOf: ({ length }) => length })
  map.set('a', 'xx')
  map.set('b', 'xx')
  map.set('c', 'xxxx')
  expect(namesIn(map)).toEqual(['c'])

  map.set('c', 'x')
  map.delete('c')
  map.set('a', 'xxx')
  map.set('b', 'xx')
  expect(namesIn(map)).toEqual(['a', 'b'])
})

it('does not keep what is larger than all its room', () => {
  const map = openBoundedMap<string, string>({ entries: 9, bytes: 5, sizeOf: ({ length }) => length })
  map.set('a', 'x'.repeat(6))

  expect(namesIn(map)).toEqual([])
})
