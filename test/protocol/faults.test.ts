import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { HANDLING_OF_FAULT } from '../../src/protocol/errors.js'

it('the faults in FEDERATION.md are those of the code, with the effect of each', () => {
  const page = readFileSync(new URL('../../FEDERATION.md', import.meta.url), 'utf8')
  const rows = page.matchAll(/^\| ([A-Z]\w+) \| (drop|retry|wait) \|/gm)

  expect(Object.fromEntries([...rows].map(([, fault, outcome]) => [fault, outcome]))).toEqual(HANDLING_OF_FAULT)
})
