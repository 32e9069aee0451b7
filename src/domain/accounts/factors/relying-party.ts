import { isIP } from 'node:net'
import type { Services } from '../../../services/services.js'

/** The names by which browsers bind a passkey to this pod. */
export interface RelyingParty {
  /** The host name of POD_URL, unchanged; `www.` is kept. */
  readonly id: string
  readonly name: string
  readonly origin: string
}

/** Undefined: browsers offer no passkeys here, because the pod has no host name, or no https. */
export function findRelyingParty({ config }: Pick<Services, 'config'>): RelyingParty | undefined {
  const { hostname, protocol, origin } = new URL(config.url)
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0
  if (isAddress || (protocol !== 'https:' && hostname !== 'localhost')) return undefined
  return { id: hostname, name: config.podName, origin }
}
