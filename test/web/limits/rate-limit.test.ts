import { describe, expect, it } from 'vitest'
import { openKeyedRateLimit, openRateLimit } from '../../../src/web/limits/rate-limit.js'

const now = () => new Date()

/** The address ::1 in one of the 65 536 networks of 2001:db8:1::/48. */
const addressOf = (network: number) => `2001:db8:1:${network.toString(16)}::1`

describe('a rate limit of network addresses', () => {
  it('keeps the count of an address after each network of one IPv6 /48 has made a request', () => {
    const limit = openRateLimit({ limit: 'pages', times: 20, perSeconds: 300, sources: 20_000, now })
    for (let time = 0; time < 20; time += 1) limit('203.0.113.1')
    for (let network = 0; network < 65_536; network += 1) {
      try {
        limit(addressOf(network))
      } catch {
        // the limit of the /48
      }
    }

    expect(() => limit('203.0.113.1')).toThrow('Too many requests')
  })

  it('counts a /64 as one source, and lets the other networks of its /48 pass', () => {
    const limit = openRateLimit({ limit: 'pages', times: 3, perSeconds: 300, sources: 20_000, now })
    for (let host = 1; host <= 3; host += 1) limit(`2001:db8:1:1::${host}`)

    expect(() => limit('2001:db8:1:1::4')).toThrow('Too many requests')
    for (let time = 0; time < 100; time += 1) expect(() => limit('2001:db8:1:1::4')).toThrow('Too many requests')
    expect(() => limit('2001:db8:1:2::1')).not.toThrow()
  })

  it('rejects the networks of a /48 that together exceed sixteen times the limit of one', () => {
    const limit = openRateLimit({ limit: 'pages', times: 2, perSeconds: 300, sources: 20_000, now })
    for (let request = 0; request < 32; request += 1) limit(addressOf(request))

    expect(() => limit(addressOf(32))).toThrow('Too many requests')
    expect(() => limit('2001:db8:2::1')).not.toThrow()
  })

  it('counts nothing where there is no limit', () => {
    const limit = openRateLimit({ limit: 'pages', times: 0, perSeconds: 300, sources: 20_000, now })
    for (let request = 0; request < 1_000; request += 1) expect(() => limit(addressOf(request))).not.toThrow()
  })
})

it('a request that is not counted displaces no other source', () => {
  const limit = openKeyedRateLimit<string>({ limit: 'pages', times: 1, perSeconds: 300, sources: 100, now })
  limit('first')
  for (let source = 0; source < 1_000; source += 1) limit(`source ${source}`)()

  expect(() => limit('first')).toThrow('Too many requests')
})
