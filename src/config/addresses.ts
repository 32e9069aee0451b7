import { type RedisAddress, readRedisAddress } from '../jobs/queues/redis-address.js'
import { isUrl } from '../protocol/is-url.js'

/** Where a server listens: an address and a port, or a socket path. */
export type Listen = { readonly host: string; readonly port: number } | { readonly path: string }

/** Where the operator's server listens. */
export type AdminListen = Listen | 'default' | 'off'

/** Adds a fault if the address does not begin with one of the schemes, like `https:`. */
export function checkAddressScheme(
  name: string,
  text: string | undefined,
  schemes: readonly string[],
  faults: string[],
): void {
  if (text === undefined) return
  if (isUrl(text) && schemes.includes(new URL(text).protocol)) return
  faults.push(`${name} must be an address that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}.`)
}

export function readPodUrl(text: string, faults: string[]): URL | undefined {
  const url = isUrl(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    faults.push('POD_URL must be a complete address like https://pod.example.')
    return undefined
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '') {
    faults.push('POD_URL must be nothing but scheme, host and port, like https://pod.example: no path, query or user.')
    return undefined
  }
  return url
}

/** The default URL. An invalid PORT is reported once, as PORT; port 0 is unknown before the pod listens. */
export function localUrl(port: number): string {
  const url = `http://localhost:${port || 3000}`
  return isUrl(url) ? url : 'http://localhost:3000'
}

/** Whether the URL is reachable from this machine only. */
export function isThisMachine(url: URL | string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.[0-9.]+$/.test(hostname)
}

export function readRedis(text: string | undefined, faults: string[]): RedisAddress | undefined {
  const address = text === undefined ? undefined : readRedisAddress(text)
  if (text !== undefined && address === undefined) {
    faults.push(
      'REDIS_URL must be an address that begins with redis://, rediss:// or unix://, or look like redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master.',
    )
  }
  return address
}

/** Unset means the default ports; an empty text turns the operator's server off. */
export function readAdminListen(text: string | undefined, faults: string[]): AdminListen {
  if (text === undefined) return 'default'
  if (text.trim() === '') return 'off'
  if (text.includes('/')) return { path: text }
  const [, host, port] = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):)?([0-9]{1,5})$/.exec(text) ?? []
  if (port === undefined || Number(port) > 65_535) {
    faults.push(
      'ADMIN_LISTEN must be host:port, a port, a socket path, or empty for none; an IPv6 host is in brackets.',
    )
    return 'off'
  }
  return { host: host?.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1', port: Number(port) }
}
