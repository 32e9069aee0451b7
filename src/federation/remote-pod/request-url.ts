import { type AllowPrivate, isPrivateHostAllowed } from '../../networks/private-hosts.js'
import { RemotePodError } from './remote-pod-error.js'

/**
 * Ports from 1024 on behind which something else than the web listens that could take our request for its own: those that
 * browsers refuse, and Redis. Below 1024 only 443 is open.
 */
const badPorts: ReadonlySet<number> = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  10_080,
])

/** Reads what we are about to ask; what must never be asked, whatever its address turns out to be, is refused. */
export function parseRequestUrl(text: string | URL, allow: AllowPrivate, base?: URL): URL {
  const url = parse(text, base)
  const reason = reasonAgainst(url, allow)
  if (reason !== undefined)
    throw new RemotePodError('not_allowed', `${url.host || url.protocol} is not asked: ${reason}.`)
  return url
}

function parse(text: string | URL, base: URL | undefined): URL {
  try {
    return new URL(text, base)
  } catch {
    throw new RemotePodError('not_allowed', 'What is to be asked is not an address of the web.')
  }
}

function reasonAgainst(url: URL, allow: AllowPrivate): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'pods speak https'
  if (url.protocol === 'http:' && !isPrivateHostAllowed(allow, url))
    return 'plain http is only for what ALLOW_PRIVATE_ADDRESSES names'
  if (url.username !== '' || url.password !== '') return 'its address carries a user'
  if (url.hash !== '') return 'its address carries a fragment'
  // Another spelling of the same host would have limits of its own.
  if (url.hostname.endsWith('.')) return 'its name ends in a dot'
  if (!isPortOpen(url, allow)) return `port ${url.port} is not for pods`
  return undefined
}

function isPortOpen(url: URL, allow: AllowPrivate): boolean {
  if (typeof allow !== 'string' && isPrivateHostAllowed(allow, url)) return true // named with its port
  const port = Number(url.port)
  return url.port === '' || port === 443 || (port >= 1024 && !badPorts.has(port))
}
