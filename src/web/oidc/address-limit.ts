import type { FastifyReply, FastifyRequest } from 'fastify'
import { OIDC_LIMITS } from '../../limits.js'
import type { Pod } from '../../pod.js'
import { openRateLimit } from '../rate-limit.js'

interface Limited {
  onRequest(request: FastifyRequest): Promise<void>
  onResponse(request: FastifyRequest, reply: FastifyReply): Promise<void>
}

/**
 * For routes that may be asked only so often from one network address, as the settings say; each call of this counts anew.
 * Requests whose answers do not count are taken back.
 */
export function limitAddresses(
  pod: Pod,
  what: 'clients' | 'signIns' | 'tokens',
  counts: (status: number) => boolean = () => true,
): Limited {
  const limit = openRateLimit({
    times: pod.config.addressLimits[what],
    perSeconds: OIDC_LIMITS[`${what}PerSeconds`],
    sources: OIDC_LIMITS.sources,
    now: () => pod.now(),
  })
  const taken = new WeakMap<FastifyRequest, () => void>()
  return {
    async onRequest(request) {
      taken.set(request, limit(request.ip))
    },
    async onResponse(request, { statusCode }) {
      if (!counts(statusCode)) taken.get(request)?.()
    },
  }
}
