import type { RecordWithTtl } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { ExpiringCache } from './expiring-cache.js'
import { REMOTE_LIMITS } from './limits.js'

interface ResolveOptions {
  /** Use the resolver of the system, which reads the hosts file and the names of a local network. */
  readonly shouldUseSystem: boolean
  readonly signal: AbortSignal
}

/** Resolves all addresses of a name, in order of preference; rejects if it has none. */
export type ResolveName = (name: string, options: ResolveOptions) => Promise<readonly string[]>

/**
 * Queries the name servers with own sockets. The resolver of the system would block one of the four libuv threads that files and
 * compression need too, and a few name servers without an answer would block all four. Addresses are kept for the time of their record.
 */
export function nameResolver(servers?: readonly string[]): ResolveName {
  const addressCache = new ExpiringCache<readonly string[]>(REMOTE_LIMITS.dnsNames)
  return async (name, { shouldUseSystem, signal }) => {
    if (shouldUseSystem) return (await lookup(name, { all: true })).map(({ address }) => address)
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1'] // never sent to a name server (RFC 6761)
    const cachedAddresses = addressCache.get(name)
    if (cachedAddresses !== undefined) return cachedAddresses

    const records = await query(name, servers, signal)
    const addresses = records.map(({ address }) => address)
    const seconds = Math.min(...records.map(({ ttl }) => ttl))
    addressCache.set(name, addresses, Math.min(seconds * 1_000, REMOTE_LIMITS.dnsKeptMs))
    return addresses
  }
}

async function query(
  name: string,
  servers: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<readonly RecordWithTtl[]> {
  // One resolver for each name: it reads the settings of the system only when it is created, and they may change.
  const resolver = new Resolver({ timeout: REMOTE_LIMITS.dnsTryMs, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const withTtl = { ttl: true } as const
    const families = await Promise.allSettled([resolver.resolve4(name, withTtl), resolver.resolve6(name, withTtl)])
    const records = families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []))
    // One address family is enough; the query for the other one may fail.
    if (records.length === 0) throw families.find((family) => family.status === 'rejected')?.reason
    return records
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
