import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/** The address in its usual spelling, also of one mapped into IPv6; null: the text is none. */
export function parsePlainAddress(text: string): string | null {
  return parseIpAddress(text)?.toString() ?? null
}

/**
 * Reads an IP address in its standard spelling. An IPv4 address mapped into IPv6 is returned as IPv4. Undefined: the text is not an
 * address; ipaddr.js alone would also read `127.1` and `0x7f.1`.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(text)
}
