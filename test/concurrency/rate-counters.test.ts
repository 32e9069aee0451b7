import { expect, it } from 'vitest'
import { limitOfSite, openTokenBuckets, openWindowCounter } from '../../src/concurrency/rate-counters.js'

/** The source of one of the 65 536 networks of 2001:db8:1::/48. */
const sourceOfNetwork = (network: number) => `2001:db8:1:${network.toString(16)}`

it('a token bucket refills evenly within a minute', () => {
  const take = openTokenBuckets({ perMinute: 60, sources: 100 })
  for (let time = 0; time < 60; time += 1) expect(take('203.0.113.1', 0)).toBe(true)

  expect(take('203.0.113.1', 0)).toBe(false)
  expect(take('203.0.113.2', 0)).toBe(true)
  expect(take('203.0.113.1', 1_000)).toBe(true)
  expect(take('203.0.113.1', 1_000)).toBe(false)
})

it('the networks of one IPv6 /48 share a bucket, and displace no other source', () => {
  const sources = 200
  const take = openTokenBuckets({ perMinute: 2, sources })
  expect([take('203.0.113.1', 0), take('203.0.113.1', 0)]).toEqual([true, true])
  let taken = 0
  for (let network = 0; network < 65_536; network += 1) if (take(sourceOfNetwork(network), 0)) taken += 1

  expect(taken).toBe(limitOfSite(2, sources))
  expect(take('203.0.113.1', 0)).toBe(false)
  expect(take('2001:db8:2:1', 0)).toBe(true)
})

it('the source that was counted longest ago is forgotten for a new one', () => {
  const count = openWindowCounter<string>({ perMs: 1_000, sources: 2, now: () => 0 })
  count('a')
  count('b')
  count('a')
  count('c')

  expect(count('a').count).toBe(3)
  expect(count('b').count).toBe(1)
})

it('a window ends after its time', () => {
  let now = 1
  const count = openWindowCounter<string>({ perMs: 1_000, sources: 2, now: () => now })
  count('a')
  now = 501
  expect(count('a')).toMatchObject({ count: 2, endsInMs: 500 })
  now = 1_001
  expect(count('a')).toMatchObject({ count: 1, endsInMs: 1_000 })
})
