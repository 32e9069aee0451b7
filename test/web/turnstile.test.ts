import { expect, it } from 'vitest'
import { openTurnstile } from '../../src/web/turnstile.js'

it('lets one user in a few times at once, all of them together as often as there is room, and others when somebody leaves', () => {
  const enter = openTurnstile({ all: 3, each: 2 })
  const leave = enter(1)
  enter(1)

  expect(() => enter(1)).toThrow(expect.objectContaining({ status: 429, headers: { 'retry-after': '1' } }))
  enter(2)
  expect(() => enter(3)).toThrow(expect.objectContaining({ status: 503 }))
  leave()
  const leaveToo = enter(3)
  leaveToo()
  expect(() => enter(1)).not.toThrow()
})
