import type { Server } from 'node:http'
import type { FastifyBaseLogger, FastifyHttpOptions } from 'fastify'
import type { Logger } from 'pino'
import { HTTP_LIMITS, type HttpLimits } from '../limits.js'
import { refuseClient } from './client-errors.js'
import { routedUrl } from './paths.js'
import { requestLogging } from './request-log.js'

/** How long and how large anything may be on a connection; the defaults of Node and Fastify would wait for ever. */
export function serverOptions(log: Logger, limits: HttpLimits = HTTP_LIMITS) {
  return {
    loggerInstance: log as FastifyBaseLogger, // the wider type, so that an app is the same type with any logger
    ...requestLogging,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.connectionsCheckMs,
    },
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.idleTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxRequestsPerSocket: limits.requestsPerSocket,
    bodyLimit: limits.apiBodyBytes,
    clientErrorHandler: refuseClient,
    // What comes in on an open connection while we close is still served: the pools outlive the server.
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => routedUrl(url),
    // The router counts encoded characters; the limit of ours is looked at when they are decoded.
    routerOptions: { maxParamLength: limits.urlBytes },
  } satisfies FastifyHttpOptions<Server>
}
