import type { FastifyInstance } from 'fastify'
import { hasNetworkAccess } from '../../domain/moderation/sign-ups/closed-networks.js'
import { RequestFault } from '../server/request-faults.js'

/** Refuses pages and API calls from networks without access. Endpoints for other pods and health checks are not in this group. */
export function addNetworkAccess(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ ip }) => {
    if (!(await hasNetworkAccess(app.services, ip)))
      throw new RequestFault(403, 'Your network has no access to this pod.')
  })
}
