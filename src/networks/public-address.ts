import ipaddr from 'ipaddr.js'
import { parseIpAddress } from './ip-address.js'

/** IPv4 ranges that are not the public unicast internet. */
const specialIPv4 = [
  '0.0.0.0/8', // this host
  '10.0.0.0/8', // private
  '100.64.0.0/10', // between a provider and its customers
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local; clouds keep secrets there
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // multicast relays
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
].map((range) => ipaddr.IPv4.parseCIDR(range))

/** The only range of IPv6 allocated for unicast: loopback, unique-local, link-local and NAT64 lie outside of it. */
const globalIPv6 = ipaddr.IPv6.parseCIDR('2000::/3')

const specialIPv6 = [
  '2001::/23', // protocol assignments, Teredo and ORCHID among them
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: embeds any IPv4 address
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
].map((range) => ipaddr.IPv6.parseCIDR(range))

/** True only for a literal address of a host on the public internet. */
export function isPublicAddress(text: string): boolean {
  // A zone (fe80::1%eth0) names a local network, whatever the address before it.
  const address = text.includes('%') ? undefined : parseIpAddress(text)
  if (address === undefined) return false
  return address instanceof ipaddr.IPv4
    ? !specialIPv4.some((range) => address.match(range))
    : address.match(globalIPv6) && !specialIPv6.some((range) => address.match(range))
}
