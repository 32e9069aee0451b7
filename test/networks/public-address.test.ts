import { describe, expect, it } from 'vitest'
import { isPublicAddress } from '../../src/networks/public-address.js'

describe('isPublicAddress', () => {
  it.each([
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['169.254.0.0', '169.254.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.31.196.0', '192.31.196.255'],
    ['192.52.193.0', '192.52.193.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['192.175.48.0', '192.175.48.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '255.255.255.255'],
  ])('refuses the range from %s to %s, mapped into IPv6 as well, and nothing beside it', (first, last) => {
    for (const address of [first, last]) {
      expect(isPublicAddress(address), address).toBe(false)
      expect(isPublicAddress(`::ffff:${address}`), address).toBe(false)
    }
    for (const neighbour of [shift(first, -1), shift(last, 1)]) {
      if (neighbour !== undefined) expect(isPublicAddress(neighbour), neighbour).toBe(true)
    }
  })

  it.each([
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::1.1.1.1',
    '64:ff9b:1::1.1.1.1',
    '100::1',
    '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001::',
    '2001:0:7f00:1::',
    '2001:10::1',
    '2001:20::1',
    '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db8::',
    '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    '2002::',
    '2002:7f00:1::1',
    '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2620:4f:8000::1',
    '2620:4f:8000:ffff:ffff:ffff:ffff:ffff',
    '3fff::',
    '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff',
    '4000::',
    '5f00::1',
    'fc00::1',
    'fd12:3456:789a::1',
    'fe80::1',
    'fe80::1%eth0',
    '2606:4700::1111%eth0',
    'fec0::1',
    'ff02::1',
    'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  ])('refuses %s', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  it.each([
    '1.1.1.1',
    '223.255.255.255',
    '::ffff:1.1.1.1',
    '2001:200::1',
    '2001:db7:ffff::1',
    '2001:db9::1',
    '2003::1',
    '2606:4700::1111',
    '2620:4f:7fff::1',
    '2620:4f:8001::1',
    '3fff:1000::1',
    '3ffe::1',
  ])('lets %s pass', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.each([
    '',
    'pod.example',
    '1.1.1',
    '0x01.1.1.1',
    '016843009',
    '01.1.1.1',
    '1.1.1.1 ',
    '[2606:4700::1111]',
    '1.1.1.1:80',
  ])('refuses %j, which is not an address in its one spelling', (text) => {
    expect(isPublicAddress(text)).toBe(false)
  })
})

function shift(address: string, by: 1 | -1): string | undefined {
  const value = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0) + by
  if (value < 0 || value > 0xffff_ffff) return undefined
  return [24, 16, 8, 0].map((bits) => Math.floor(value / 2 ** bits) % 256).join('.')
}
