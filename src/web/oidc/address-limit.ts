import type { FastifyRequest } from 'fastify'
import { OIDC_LIMITS } from '../../limits.js'
import type { Pod } from '../../pod.js'
import { openRateLimit } from '../rate-limit.js'

/** For routes that may be asked only so often from one network address, as the settings say; each call counts anew. */
export function limitAddresses(
  pod: Pod,
  what: 'clients' | 'signIns' | 'tokens',
): { onRequest(request: FastifyRequest): Promise<void> } {
  const limit = openRateLimit({
    times: pod.config.addressLimits[what],
    perSeconds: OIDC_LIMITS[`${what}PerSeconds`],
    sources: OIDC_LIMITS.sources,
    now: () => pod.now(),
  })
  return { onRequest: async ({ ip }) => limit(ip) }
}
