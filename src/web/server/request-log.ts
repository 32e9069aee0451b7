import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import { messageOf } from '../../errors/thrown.js'
import { parseTrustedProxies } from '../../networks/trusted-proxies.js'
import { messageWithoutStatement } from '../../persistence/database/errors.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Successful requests are not logged: for routes that are requested every few seconds or more. */
    quiet?: boolean
  }

  interface FastifyRequest {
    /** The error of the request, logged with its line. Outages are logged elsewhere, so only their message is added. */
    failure: RequestFailure | undefined
  }
}

interface RequestFailure {
  readonly error: unknown
  readonly isOutage: boolean
}

/** Adds a failure to the log line of the request. On routes without such lines it is logged at once, unless it is an outage. */
export function recordFailure(request: FastifyRequest, failure: RequestFailure): void {
  if (request.server.hasRequestDecorator('failure')) request.failure = failure
  else if (!failure.isOutage) request.log.error({ err: failure.error }, 'request failed')
}

/** Keeps private data out of the log if a whole request or response is logged by mistake. */
const serializers = { req: describe, request: describe, res: () => undefined, reply: () => undefined }

/** Request ids are generated here; an id sent by a client could put any text into the logs. It is the trace of what the request causes. */
export function requestLogging(log: Logger) {
  return {
    // The wider type, so that apps have the same type with every logger.
    loggerInstance: log.child({}, { serializers }) as FastifyBaseLogger,
    genReqId: () => newTrace(),
    logController: new LogController({ disableRequestLogging: true }),
    // Without the options that Fastify passes, which slow down a child logger several times.
    childLoggerFactory: (parent: FastifyBaseLogger, bindings: object): FastifyBaseLogger => parent.child(bindings),
  }
}

/** Logs one line per request. It never contains an address, a header, a query or a body. */
export function addRequestLog(app: FastifyInstance): void {
  app.decorateRequest('failure', undefined)
  app.addHook('onResponse', (request, reply, done) => {
    const { failure } = request
    if (!request.routeOptions.config.quiet || reply.statusCode >= 500 || failure) {
      const { method, route } = describe(request)
      const ms = Math.round(reply.elapsedTime * 10) / 10
      const line = { ...idOf(request), method, route, status: reply.statusCode, ms }
      if (failure === undefined) request.log.info(line, 'request completed')
      else if (failure.isOutage) request.log.info({ ...line, reason: reasonOf(failure.error) }, 'request completed')
      else if (reply.statusCode >= 500) request.log.error({ ...line, err: failure.error }, 'request failed')
      else request.log.warn({ ...line, err: failure.error }, 'request completed')
    }
    done()
  })
}

/** Creates a span for each request whose trace is sampled. Without a tracer no hook is added. */
export function addRequestSpans(app: FastifyInstance): void {
  const { tracer } = app.services
  if (tracer === undefined) return
  app.addHook('onResponse', ({ id, method, routeOptions }, reply, done) => {
    const route = routeOptions.url ?? 'unknown'
    const since = performance.timeOrigin + performance.now() - reply.elapsedTime
    const attributes = { method, route, status: reply.statusCode }
    const span = tracer.begin(`${method} ${route}`, {
      kind: 'server',
      traces: [id],
      isRequest: true,
      since,
      attributes,
    })
    span?.end({ hasFailed: reply.statusCode >= 500 })
    done()
  })
}

/** Routes without a child logger do not log the id by themselves. */
function idOf({ id, log, server }: FastifyRequest): { readonly reqId?: string } {
  return log === server.log ? { reqId: id } : {}
}

const TRACE_PARENT = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/

/** The trace of a request: that of a trusted proxy (`traceparent`), except for messages of other pods, or a new one. */
export function traceReader(trustProxy: boolean | string): (request: IncomingMessage) => string {
  const isTrusted = parseTrustedProxies(trustProxy)
  return ({ headers, socket, url = '' }) => {
    const { traceparent } = headers
    if (typeof traceparent !== 'string' || url.startsWith('/receive') || !isTrusted(socket.remoteAddress))
      return newTrace()
    return TRACE_PARENT.exec(traceparent)?.[1] ?? newTrace()
  }
}

function newTrace(): string {
  return randomUUID().replaceAll('-', '')
}

function reasonOf(error: unknown): string {
  return messageWithoutStatement(messageOf(error))
}

/** The pattern of the route instead of the path, because guids and tags are private. */
function describe(request: Partial<FastifyRequest>) {
  return { method: request.method, route: request.routeOptions?.url ?? 'unknown' }
}
