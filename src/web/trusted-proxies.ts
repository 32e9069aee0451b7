import { BlockList, isIPv4, isIPv6 } from 'node:net'
import type { Config } from '../config/config.js'

const NAMED_NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** Tells whether TRUST_PROXY names the other end of a connection. A connection over a Unix socket always comes from a proxy. */
export function openTrustedProxies(trustProxy: Config['trustProxy']): (address: string | undefined) => boolean {
  if (typeof trustProxy === 'boolean') return (address) => trustProxy || address === undefined
  const trusted = new BlockList()
  for (const item of trustProxy.split(',').map((text) => text.trim())) {
    for (const network of NAMED_NETWORKS[item] ?? [item]) addNetwork(trusted, network)
  }
  return (address) => {
    if (address === undefined) return true
    const plain = address.replace(/^::ffff:(?=[0-9.]+$)/i, '')
    return trusted.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6')
  }
}

/** `range` is a length of a prefix or, for IPv4, a mask such as 255.255.0.0. */
function addNetwork(trusted: BlockList, network: string): void {
  const [address = '', range] = network.split('/')
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  if (range === undefined) trusted.addAddress(address, family)
  else trusted.addSubnet(address, isIPv4(range) ? lengthOfMask(range) : Number(range), family)
}

function lengthOfMask(mask: string): number {
  const bits = mask.split('.').map((part) => Number(part).toString(2).padStart(8, '0'))
  return bits.join('').replace(/0+$/, '').length
}
