import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.js'
import type { Services } from '../../services/services.js'
import { OIDC_LIMITS } from '../oidc/limits.js'
import { PAGE_LIMITS } from '../pages/limits.js'
import { openRateLimit } from './rate-limit.js'
import type { RateLimitName } from './rejection-metrics.js'

interface AddressLimitHooks {
  onRequest(request: FastifyRequest): Promise<void>
  onResponse(request: FastifyRequest, reply: FastifyReply): Promise<void>
}

type LimitName = keyof Config['addressLimits']

/** Seconds of each counting period. */
const PERIODS: Readonly<Record<LimitName, number>> = {
  signIns: OIDC_LIMITS.signInsPerSeconds,
  clients: OIDC_LIMITS.clientsPerSeconds,
  tokens: OIDC_LIMITS.tokensPerSeconds,
  authorizations: OIDC_LIMITS.authorizationsPerSeconds,
  pages: PAGE_LIMITS.perSeconds,
}

const LIMIT_NAMES: Readonly<Record<LimitName, RateLimitName>> = {
  signIns: 'sign_ins',
  clients: 'client_registrations',
  tokens: 'token_requests',
  authorizations: 'authorizations',
  pages: 'pages',
}

/** A sign-in that succeeds redirects with this status; only others are counted. */
export function isFailedSignIn(status: number): boolean {
  return status !== 303
}

/**
 * Limits how often one network address may request a group of routes, by the settings. Each call returns a separate counter.
 * A request whose status does not count is subtracted again.
 */
export function limitAddresses(
  services: Services,
  name: LimitName,
  isCounted: (status: number) => boolean = () => true,
): AddressLimitHooks {
  const limit = openRateLimit({
    limit: LIMIT_NAMES[name],
    times: services.config.addressLimits[name],
    perSeconds: PERIODS[name],
    sources: OIDC_LIMITS.sources,
    now: () => services.now(),
  })
  const undoOf = new WeakMap<FastifyRequest, () => void>()
  return {
    async onRequest(request) {
      undoOf.set(request, limit(request.ip))
    },
    async onResponse(request, { statusCode }) {
      if (!isCounted(statusCode)) undoOf.get(request)?.()
    },
  }
}
