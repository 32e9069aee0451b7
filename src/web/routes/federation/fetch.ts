import type { FastifyPluginAsync } from 'fastify'
import { findMoveEnvelope } from '../../../domain/people/moved-people.js'
import { openEnvelopeCache, TooManySignatures } from '../../../federation/outbound/envelope-cache.js'
import { serveEntity } from '../../../federation/outbound/serve-entity.js'
import { HTTP_LIMITS } from '../../server/limits.js'
import { RequestFault } from '../../server/request-faults.js'
import { SERVE_LIMITS } from './limits.js'

const ENVELOPE = 'application/magic-envelope+xml; charset=utf-8'

/** Serves public entities that other pods refer to but do not have (FEDERATION.md, "Fetching"). */
export const fetchRoutes: FastifyPluginAsync = async (app) => {
  const envelopes = openEnvelopeCache({
    envelopes: SERVE_LIMITS.envelopes,
    bytes: SERVE_LIMITS.envelopeBytes,
    ageMs: SERVE_LIMITS.envelopeAgeMs,
    concurrentSignatures: SERVE_LIMITS.signaturesUnderWay,
  })

  app.get<{ Params: { type: string; guid: string } }>(
    '/fetch/:type/:guid',
    { config: { public: true, quiet: true }, schema: { hide: true } },
    async (request, reply) => {
      const { type, guid } = request.params
      if (type === 'account_migration') {
        const envelope = await findMoveEnvelope(request.services, guid)
        if (envelope === undefined)
          throw new RequestFault(404, 'No account with this guid has moved from or to this pod.')
        return reply.type(ENVELOPE).send(envelope)
      }
      const servedEntity = await serveEntity(request.services, envelopes, type, guid).catch(throwUnavailable)
      if (servedEntity === undefined) throw new RequestFault(404, 'This entity does not exist or is not public.')
      if (servedEntity.kind === 'redirect') return reply.redirect(servedEntity.url, 302)
      return reply.type(ENVELOPE).send(servedEntity.envelope)
    },
  )
}

function throwUnavailable(error: unknown): never {
  if (!(error instanceof TooManySignatures)) throw error
  throw new RequestFault(503, 'The pod is signing too many messages at the moment. Please try again soon.', {
    headers: { 'retry-after': String(HTTP_LIMITS.retryAfterSeconds) },
  })
}
