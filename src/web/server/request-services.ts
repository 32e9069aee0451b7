import type { FastifyInstance } from 'fastify'
import { type Services, withRequestContext } from '../../services/services.js'
import { isReadMethod } from '../limits/write-limit.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The services for use cases: `inRequestTransaction` adds the trace, the claimed key and the `If-Match` of a request that writes. */
    services: Services
  }
}

/** Gives each request services of its own, so that rows that it causes have its trace. */
export function addRequestServices(app: FastifyInstance): void {
  app.decorateRequest('services')
  app.addHook('onRequest', (request, _reply, done) => {
    request.services = isReadMethod(request.method)
      ? app.services
      : withRequestContext(app.services, { trace: request.id })
    done()
  })
}
