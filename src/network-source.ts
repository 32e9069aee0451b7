import { isIPv6 } from 'node:net'

/** The network that limits count as one sender: an IPv4 address, or the /64 of an IPv6 address. */
export function sourceOf(ip: string): string {
  return prefixOf(ip, 4)
}

/** The /48 of an IPv6 address: the largest network that one customer usually gets. Undefined for IPv4. */
export function siteOf(ip: string): string | undefined {
  return isIPv6(ip) && mappedIPv4(ip) === undefined ? `${prefixOf(ip, 3)}/48` : undefined
}

function prefixOf(ip: string, groupsKept: number): string {
  if (!isIPv6(ip)) return ip
  const mapped = mappedIPv4(ip)
  if (mapped !== undefined) return mapped
  const [head = '', tail] = (ip.split('%')[0] ?? '').split('::')
  const groups = head.split(':').filter((group) => group !== '')
  const after = tail?.split(':').filter((group) => group !== '') ?? []
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length)
  return [...groups, ...Array<string>(zeros).fill('0'), ...after]
    .slice(0, groupsKept)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

function mappedIPv4(ip: string): string | undefined {
  return /^::ffff:([0-9.]+)$/i.exec(ip)?.[1]
}
