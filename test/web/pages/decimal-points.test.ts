import { describe, expect, it } from 'vitest'
import { withDecimalPoints } from '../../../src/web/api/decimal-points.js'

describe('coordinates in an answer', () => {
  it.each([
    [1, '1.0'],
    [-180, '-180.0'],
    [48.25, '48.25'],
    [0.000001, '0.000001'],
    [1e-7, '0.0000001'],
    [-1.25e-9, '-0.00000000125'],
    [1e21, '1000000000000000000000.0'],
    [-1.5e22, '-15000000000000000000000.0'],
  ])('%j is written as %s', (degrees, written) => {
    const json = JSON.stringify({ location: { lat: degrees, lng: degrees } })

    expect(withDecimalPoints(json)).toBe(`{"location":{"lat":${written},"lng":${written}}}`)
  })

  it.each([5e-324, 1.7976931348623157e308, 1.234567890123456e-10])('%d is the same number after it', (degrees) => {
    const written = withDecimalPoints(JSON.stringify({ lat: degrees }))

    expect(written).not.toContain('e')
    expect(JSON.parse(written)).toEqual({ lat: degrees })
  })

  it('leave user texts unchanged', () => {
    const json = JSON.stringify({ body: '"lat":1e-7,"lng":1}', title: { lat: '1' } })

    expect(withDecimalPoints(json)).toBe(json)
  })
})
