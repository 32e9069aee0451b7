import { lookup, Resolver } from 'node:dns/promises'
import { REMOTE_LIMITS } from '../../limits.js'

interface ResolveOptions {
  /** Ask the system, which knows the hosts file and the names of a local network. */
  readonly bySystem: boolean
  readonly signal: AbortSignal
}

/** All addresses of a name, in the order of preference; rejects if it has none. */
export type ResolveName = (name: string, options: ResolveOptions) => Promise<readonly string[]>

/**
 * Asks the name servers over sockets of our own. The system's resolver would hold one of the four threads that files and
 * compression need as well, and name servers that never answer would stop them all.
 */
export function nameResolver(servers?: readonly string[]): ResolveName {
  return async (name, { bySystem, signal }) => {
    if (bySystem) return (await lookup(name, { all: true })).map(({ address }) => address)
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1'] // never asked for (RFC 6761)

    // One for each name: it reads the system's settings when it is made, and these change with the network.
    const resolver = new Resolver({ timeout: REMOTE_LIMITS.dnsTryMs, tries: 2 })
    if (servers !== undefined) resolver.setServers(servers)
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const families = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
      const addresses = families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []))
      // Addresses of one family are enough; the other may have none, or no answer.
      if (addresses.length === 0) throw families.find((family) => family.status === 'rejected')?.reason
      return addresses
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }
}
