import { randomUUID } from 'node:crypto'
import { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import { messageOf } from '../../errors/thrown.js'
import { messageWithoutStatement } from '../../persistence/database/errors.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** No line in the log when all went well: asked for every few seconds, or thousands of times a minute. */
    quiet?: boolean
  }

  interface FastifyRequest {
    /** Why it was not answered as it should be; belongs to the line of the request. An outage has lines of its own. */
    failure: RequestFailure | undefined
  }
}

interface RequestFailure {
  readonly error: unknown
  readonly isOutage: boolean
}

/** Adds to the line of the request; where requests have no line, a failure that is no outage has one. */
export function noteFailure(request: FastifyRequest, failure: RequestFailure): void {
  if (request.server.hasRequestDecorator('failure')) request.failure = failure
  else if (!failure.isOutage) request.log.error({ err: failure.error }, 'request failed')
}

/** Whoever logs a whole request or answer by mistake logs no more of it than this. */
const serializers = { req: describe, request: describe, res: () => undefined, reply: () => undefined }

/** Ids are ours: one from outside could be anything, and would be in the log of every process it reaches. */
export function requestLogging(log: Logger) {
  return {
    // The wider type, so that an app is the same type with any logger.
    loggerInstance: log.child({}, { serializers }) as FastifyBaseLogger,
    genReqId: () => randomUUID(),
    logController: new LogController({ disableRequestLogging: true }),
    // Without options, which Fastify would give it: with them the log of a request costs several times as much.
    childLoggerFactory: (parent: FastifyBaseLogger, bindings: object): FastifyBaseLogger => parent.child(bindings),
  }
}

/** One line per request, made of what an operator may know: never an address, a header, a query or a body. */
export function addRequestLog(app: FastifyInstance): void {
  app.decorateRequest('failure', undefined)
  app.addHook('onResponse', (request, reply, done) => {
    const { failure } = request
    if (!request.routeOptions.config.quiet || reply.statusCode >= 500 || failure) {
      const { method, route } = describe(request)
      const ms = Math.round(reply.elapsedTime * 10) / 10
      const line = { method, route, status: reply.statusCode, ms }
      if (failure === undefined) request.log.info(line, 'answered')
      else if (failure.isOutage) request.log.info({ ...line, reason: reasonOf(failure.error) }, 'answered')
      else if (reply.statusCode >= 500) request.log.error({ ...line, err: failure.error }, 'request failed')
      else request.log.warn({ ...line, err: failure.error }, 'answered')
    }
    done()
  })
}

function reasonOf(error: unknown): string {
  return messageWithoutStatement(messageOf(error))
}

/** The pattern of the route, not the path: guids and tags are nobody's business either. */
function describe(request: Partial<FastifyRequest>) {
  return { method: request.method, route: request.routeOptions?.url ?? 'unknown' }
}
