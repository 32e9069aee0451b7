import type { Server } from 'node:http'
import type { FastifyHttpOptions } from 'fastify'
import type { Logger } from 'pino'
import { refuseClient } from './client-errors.js'
import { type ConnectionOptions, openHttpServer } from './http-server.js'
import { HTTP_LIMITS, type HttpLimits } from './limits.js'
import { routedUrl } from './paths.js'
import { requestLogging } from './request-log.js'
import { buildSerializer } from './schemas/serializers.js'

/** Options of both servers of the web process. */
export function serverOptions(log: Logger, limits: HttpLimits = HTTP_LIMITS, connections?: ConnectionOptions) {
  return {
    ...requestLogging(log),
    serverFactory: (serve) => openHttpServer(serve, limits, connections),
    schemaController: { compilersFactory: { buildSerializer } },
    bodyLimit: limits.apiBodyBytes,
    clientErrorHandler: refuseClient,
    // Requests on open connections are served until the server has closed: the database pools are closed later.
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => routedUrl(url),
    // The router counts encoded characters and answers in its own format; `addValidation` checks the length instead.
    routerOptions: { maxParamLength: limits.headerBytes },
  } satisfies FastifyHttpOptions<Server>
}
