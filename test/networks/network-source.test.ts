import { expect, it } from 'vitest'
import { networkOfAddress, siteOfNetwork, siteOfSource } from '../../src/networks/network-source.js'

it.each([
  ['203.0.113.1', '203.0.113.1', undefined],
  ['::ffff:203.0.113.1', '203.0.113.1', undefined],
  ['::ffff:cb00:7101', '203.0.113.1', undefined],
  ['/run/pod.sock', '/run/pod.sock', undefined],
  ['2001:db8:1:2::3', '2001:db8:1:2', '2001:db8:1/48'],
  ['2001:0DB8:0001:0002:0:0:0:3', '2001:db8:1:2', '2001:db8:1/48'],
  ['fe80::1%eth0', 'fe80:0:0:0', 'fe80:0:0/48'],
])('the address %s has the source %s and the site %s', (ip, source, site) => {
  expect([networkOfAddress(ip), siteOfNetwork(ip), siteOfSource(networkOfAddress(ip))]).toEqual([source, site, site])
})
