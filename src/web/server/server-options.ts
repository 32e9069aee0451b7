import type { Server } from 'node:http'
import type { FastifyHttpOptions } from 'fastify'
import type { Logger } from 'pino'
import { HTTP_LIMITS, type HttpLimits } from '../../limits.js'
import { refuseClient } from './client-errors.js'
import { type ConnectionOptions, openHttpServer } from './http-server.js'
import { routedUrl } from './paths.js'
import { requestLogging } from './request-log.js'

/** What both servers of the web process have in common. */
export function serverOptions(log: Logger, limits: HttpLimits = HTTP_LIMITS, connections?: ConnectionOptions) {
  return {
    ...requestLogging(log),
    serverFactory: (serve) => openHttpServer(serve, limits, connections),
    bodyLimit: limits.apiBodyBytes,
    clientErrorHandler: refuseClient,
    // What comes in on an open connection while we close is still served: the pools outlive the server.
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => routedUrl(url),
    // The router counts encoded characters, and would answer in its own words; our limits are looked at behind it.
    routerOptions: { maxParamLength: limits.headerBytes },
  } satisfies FastifyHttpOptions<Server>
}
