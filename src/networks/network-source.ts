import ipaddr from 'ipaddr.js'
import { parseIpAddress } from './ip-address.js'

/** The network that limits count as one sender: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOfAddress(ip: string): string {
  const address = parseIpAddress(ip)
  if (address === undefined) return ip
  return address instanceof ipaddr.IPv6 ? firstGroups(address, 4) : address.toString()
}

/** The /48 of an IPv6 address: the largest network that one customer usually gets. Undefined for IPv4. */
export function siteOfNetwork(ip: string): string | undefined {
  const address = parseIpAddress(ip)
  return address instanceof ipaddr.IPv6 ? `${firstGroups(address, 3)}/48` : undefined
}

/** The /48 of a result of `networkOfAddress`. */
export function siteOfSource(source: string): string | undefined {
  const groups = source.split(':')
  return groups.length === 4 ? `${groups.slice(0, 3).join(':')}/48` : undefined
}

function firstGroups({ parts }: ipaddr.IPv6, count: number): string {
  return parts
    .slice(0, count)
    .map((group) => group.toString(16))
    .join(':')
}

/** The network that pages show instead of an address: the /24 of an IPv4 address, the /48 of an IPv6 address. */
export function formatNetwork(ip: string): string {
  const address = parseIpAddress(ip)
  if (address === undefined) return ''
  return address instanceof ipaddr.IPv6
    ? `${firstGroups(address, 3)}::/48`
    : `${address.octets.slice(0, 3).join('.')}.0/24`
}
