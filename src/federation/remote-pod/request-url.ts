import { type AllowPrivate, isPrivateHostAllowed } from '../../networks/private-hosts.js'
import { RemotePodError } from './remote-pod-error.js'

/**
 * Ports from 1024 on whose protocols could misread an HTTP request as a command: those that browsers block, and Redis. Below 1024
 * only 443 is allowed.
 */
const BLOCKED_PORTS: ReadonlySet<number> = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  10_080,
])

/** Parses the URL of a request. Throws `not_allowed` for a scheme, port or form that is forbidden for any address. */
export function parseRequestUrl(text: string | URL, allow: AllowPrivate, base?: URL): URL {
  const url = parse(text, base)
  const reason = reasonAgainst(url, allow)
  if (reason !== undefined)
    throw new RemotePodError('not_allowed', `${url.host || url.protocol} is not requested: ${reason}.`)
  return url
}

function parse(text: string | URL, base: URL | undefined): URL {
  try {
    return new URL(text, base)
  } catch {
    throw new RemotePodError('not_allowed', 'The URL of the request is invalid.')
  }
}

function reasonAgainst(url: URL, allow: AllowPrivate): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'only https is allowed'
  if (url.protocol === 'http:' && !isPrivateHostAllowed(allow, url))
    return 'plain http is only allowed for hosts in ALLOW_PRIVATE_ADDRESSES'
  if (url.username !== '' || url.password !== '') return 'the URL contains a user'
  if (url.hash !== '') return 'the URL contains a fragment'
  // A second spelling of a host would have limits of its own.
  if (url.hostname.endsWith('.')) return 'the host name ends in a dot'
  if (!isPortAllowed(url, allow)) return `port ${url.port} is not allowed (443 or 1024 and above only)`
  return undefined
}

function isPortAllowed(url: URL, allow: AllowPrivate): boolean {
  if (typeof allow !== 'string' && isPrivateHostAllowed(allow, url)) return true // the setting names hosts with their ports
  const port = Number(url.port)
  return url.port === '' || port === 443 || (port >= 1024 && !BLOCKED_PORTS.has(port))
}
