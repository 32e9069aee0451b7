import { describe, expect, it } from 'vitest'
import { passesCheck, type Result } from '../../bench/bench.js'
import { benchNames, usualBenches } from '../../bench/benches.js'
import { resultOf } from '../../bench/hostile/hostile.js'
import type { OrdinaryTraffic } from '../../bench/hostile/ordinary-traffic.js'
import { type OrdinaryTimes, slowdownOf, UNNOTICED_MS } from '../../bench/hostile/slowdown.js'

function times(change: Partial<Record<keyof OrdinaryTimes, number>> = {}): OrdinaryTimes {
  const of = (kind: keyof OrdinaryTimes) => [change[kind] ?? UNNOTICED_MS]
  return { api: of('api'), accepted: of('accepted'), stored: of('stored'), delivered: of('delivered') }
}

function traffic(change: Partial<OrdinaryTraffic> = {}): OrdinaryTraffic {
  return { ...times(), newcomers: [], refused: 0, lost: { stored: 0, delivered: 0, newcomers: 0 }, ...change }
}

function resultWith(during: Partial<OrdinaryTraffic>): Result {
  return resultOf('hcard', 'redis', [{ baseline: traffic(), during: traffic(during), responses: { 202: 3, 429: 2 } }])
}

describe('the slowdown by an attack', () => {
  it.each(['api', 'accepted', 'stored', 'delivered'] as const)('counts the 99th percentile of %s', (kind) => {
    expect(slowdownOf(times({ [kind]: 200 }), times({ [kind]: 800 }))).toBe(4)
  })

  it('is that of the slowest kind', () => {
    expect(slowdownOf(times(), times({ api: 2 * UNNOTICED_MS, delivered: 5 * UNNOTICED_MS }))).toBe(5)
  })

  it('does not count a delay that no user notices', () => {
    expect(slowdownOf(times({ api: 1 }), times({ api: UNNOTICED_MS }))).toBe(1)
  })
})

describe('the bench hostile', () => {
  it.each<[string, Partial<OrdinaryTraffic>, boolean]>([
    ['accepts three times the value without the attack', { api: [3 * UNNOTICED_MS] }, true],
    ['fails when one kind takes longer', { stored: [3.1 * UNNOTICED_MS] }, false],
    ['fails when an ordinary request is refused', { refused: 1 }, false],
    ['fails when a stored message is missing', { lost: { stored: 1, delivered: 0, newcomers: 0 } }, false],
    ['fails when a delivery is missing', { lost: { stored: 0, delivered: 1, newcomers: 0 } }, false],
    ['fails when the post of a newcomer is missing', { lost: { stored: 0, delivered: 0, newcomers: 1 } }, false],
  ])('%s', (_name, during, isGood) => {
    expect(passesCheck(resultWith(during))).toBe(isGood)
  })

  it('fails when ordinary traffic was refused before the attack', () => {
    const rounds = [{ baseline: traffic({ refused: 1 }), during: traffic(), responses: {} }]
    expect(passesCheck(resultOf('hcard', 'redis', rounds))).toBe(false)
  })

  it('reports how many requests of the attacker were accepted', () => {
    expect(resultWith({}).more).toMatchObject({ attack_accepted: 3, attack_answers: 5 })
  })

  it('runs only when it is named', () => {
    expect(benchNames).toContain('hostile')
    expect(usualBenches).not.toContain('hostile')
    expect(benchNames.filter((name) => !usualBenches.includes(name))).toEqual(['take-over', 'hostile'])
  })
})
