import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import { PAGE_POLICY } from './html.js'
import { isForOtherOrigins, isPrivate, pathOf } from './paths.js'

const A_YEAR = 365 * 86_400
const A_DAY = 86_400

/** What every answer says about itself: its id, who may keep it, and who may read it. */
export async function addHeaders(app: FastifyInstance, options: { readonly https: boolean }): Promise<void> {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    if (isPrivate(pathOf(request.url))) reply.header('cache-control', 'private, no-store')
  })

  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: PAGE_POLICY },
    // Only what is asked for by its address in an <img> needs more; such routes say so.
    crossOriginResourcePolicy: { policy: 'same-origin' },
    strictTransportSecurity: options.https ? { maxAge: A_YEAR, includeSubDomains: false } : false,
    // A token may stand in a query; no other site is to learn it from a link.
    referrerPolicy: { policy: 'no-referrer' },
    frameguard: { action: 'deny' },
  })

  app.addHook('onRoute', (route) => {
    if (route.method === 'OPTIONS' && route.url === '*') route.config = { ...route.config, public: true, quiet: true }
  })
  // No cookie is ever read by the API, so any origin may use it, without credentials.
  await app.register(cors, {
    delegator: (request, decide) =>
      decide(null, {
        origin: isForOtherOrigins(pathOf(request.url)) ? '*' : false,
        methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
        allowedHeaders: ['Authorization', 'Content-Type', 'Accept'],
        exposedHeaders: ['Link', 'WWW-Authenticate', 'Retry-After', 'X-Request-Id'],
        maxAge: A_DAY,
        strictPreflight: false,
      }),
  })
}
