import ipaddr from 'ipaddr.js'
import { type IpAddress, parseIpAddress } from './ip-address.js'

type Network = readonly [address: IpAddress, prefixLength: number]

const NAMED_NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** Reads the setting TRUST_PROXY; an error is added to the faults, as a sentence. */
export function readTrustProxy(text: string, faults: string[]): boolean | string {
  if (text === 'true') return true
  if (text === 'false' || text === 'none') return false
  if (!text.split(',').every((item) => parseNetworks(item.trim()) !== undefined)) {
    faults.push(
      'TRUST_PROXY must be true, false, loopback, linklocal, uniquelocal or a list of addresses and networks like 10.0.0.0/8.',
    )
  }
  return text
}

/** Returns whether an address is a proxy by TRUST_PROXY. A connection over a Unix socket always comes from a proxy. */
export function parseTrustedProxies(trustProxy: boolean | string): (address: string | undefined) => boolean {
  if (typeof trustProxy === 'boolean') return (address) => trustProxy || address === undefined
  const trustedNetworks = trustProxy.split(',').flatMap((item) => parseNetworks(item.trim()) ?? [])
  return (text) => {
    if (text === undefined) return true
    const address = parseIpAddress(text)
    return address !== undefined && trustedNetworks.some((network) => isWithin(address, network))
  }
}

/** Reads a setting that lists networks; an error is added to the faults, as a sentence. Empty: every network. */
export function readNetworkList(name: string, text: string, faults: string[]): string {
  if (text !== '' && !text.split(',').every((item) => parseNetworks(item.trim()) !== undefined)) {
    faults.push(`${name} must be a list of addresses and networks like 10.0.0.0/8, or empty.`)
  }
  return text
}

/** Returns whether an address is in one of the networks; an empty list has every address. */
export function parseNetworkList(list: string): (address: string) => boolean {
  if (list === '') return () => true
  const networks = list.split(',').flatMap((item) => parseNetworks(item.trim()) ?? [])
  return (text) => {
    const address = parseIpAddress(text)
    return address !== undefined && networks.some((network) => isWithin(address, network))
  }
}

/** The networks of one item of the setting; undefined: it is none. */
function parseNetworks(item: string): readonly Network[] | undefined {
  const networks = (NAMED_NETWORKS[item] ?? [item]).map(parseNetwork)
  return networks.every((network) => network !== undefined) ? networks : undefined
}

/** The range is a prefix length or, for IPv4, a mask such as 255.255.0.0. */
function parseNetwork(text: string): Network | undefined {
  const [host = '', range, ...rest] = text.split('/')
  const address = parseIpAddress(host)
  if (address === undefined || rest.length > 0) return undefined
  const bits = address instanceof ipaddr.IPv4 ? 32 : 128
  if (range === undefined) return [address, bits]
  const bitsOfText = host.includes(':') ? 128 : 32 // more than `bits` for a mapped address: ::ffff:10.0.0.0/104
  const length = (prefixLengthOf(range, address) ?? Number.NaN) - bitsOfText + bits
  return length > 0 && length <= bits ? [address, length] : undefined
}

function prefixLengthOf(range: string, address: IpAddress): number | undefined {
  if (/^[1-9][0-9]{0,2}$/.test(range)) return Number(range)
  const mask = address instanceof ipaddr.IPv4 ? parseIpAddress(range) : undefined
  return mask?.prefixLengthFromSubnetMask() ?? undefined
}

function isWithin(address: IpAddress, [network, prefixLength]: Network): boolean {
  if (address instanceof ipaddr.IPv4) return network instanceof ipaddr.IPv4 && address.match(network, prefixLength)
  return network instanceof ipaddr.IPv6 && address.match(network, prefixLength)
}

/** A network as it is written: its first address and the length of its prefix. */
export interface WrittenNetwork {
  readonly text: string
  readonly prefixLength: number
  readonly isIpv6: boolean
}

/** Reads an address, which is a network of one, or a network; undefined: it is none. */
export function readNetwork(text: string): WrittenNetwork | undefined {
  const network = parseNetwork(text)
  if (network === undefined) return undefined
  const [address, prefixLength] = network
  const isIpv6 = address instanceof ipaddr.IPv6
  const first = (isIpv6 ? ipaddr.IPv6 : ipaddr.IPv4).networkAddressFromCIDR(`${address.toString()}/${prefixLength}`)
  return { text: `${first.toString()}/${prefixLength}`, prefixLength, isIpv6 }
}

/** Whether a network has addresses in common with a list of networks. */
export function overlapsNetworks(network: string, list: string): boolean {
  const parsedNetwork = parseNetwork(network)
  if (parsedNetwork === undefined) return false
  const others = list.split(',').flatMap((item) => parseNetworks(item.trim()) ?? [])
  return others.some((other) => isWithin(other[0], parsedNetwork) || isWithin(parsedNetwork[0], other))
}
