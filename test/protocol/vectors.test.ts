import { expect, it } from 'vitest'
import { checksOf } from './check-vectors.js'
import { readVectors } from './vectors.js'

const checks = checksOf(readVectors(new URL('../vectors/federation.json', import.meta.url)))

it('the bundled vectors are all here', () => {
  expect(checks.length).toBe(450)
})

it.each(checks.map((check) => [check.name.slice(0, 120), check] as const))('%s', (_name, check) => {
  check.run()
})
