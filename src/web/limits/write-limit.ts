import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Services } from '../../services/services.js'
import { WRITE_LIMITS } from '../api/limits.js'
import { openKeyedRateLimit, type RateLimit } from './rate-limit.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Subtracts the request again; null: it is not counted. */
    undoWriteCount: (() => void) | null
  }

  interface FastifyInstance {
    /** Counts a write for a handler that authenticates the viewer itself. Throws beyond the limit. */
    readonly countWrite: (request: FastifyRequest) => void
  }
}

/**
 * Limits requests that change something, per user and for all their clients together. Requests that fail are subtracted again.
 * A request beyond the limit is refused before its body is read, except a form that carries its token in the body.
 */
export function addWriteLimit(app: FastifyInstance): void {
  app.decorateRequest('undoWriteCount', null)
  let limit: RateLimit<number> | undefined

  function count(request: FastifyRequest, _reply: unknown, done: (error?: Error) => void): void {
    done(refusalOf(request))
  }

  function refusalOf(request: FastifyRequest): Error | undefined {
    const { authenticatedViewer: viewer, method } = request
    if (viewer === undefined || request.undoWriteCount || isReadMethod(method)) return undefined
    limit ??= openWriteLimit(app.services) // late: the API description registers routes without a pod
    try {
      request.undoWriteCount = limit(viewer.userId)
      return undefined
    } catch (error) {
      return error as Error // a rate limit throws nothing else
    }
  }

  app.decorate('countWrite', (request: FastifyRequest) => {
    const refusal = refusalOf(request)
    if (refusal !== undefined) throw refusal
  })
  app.addHook('onRequest', count)
  app.addHook('preValidation', count)
  app.addHook('onResponse', (request, { statusCode }, done) => {
    if (statusCode >= 400) request.undoWriteCount?.()
    done()
  })
}

export function isReadMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

export function openWriteLimit(services: Pick<Services, 'config' | 'now'>): RateLimit<number> {
  const { perSeconds, users } = WRITE_LIMITS
  return openKeyedRateLimit({
    limit: 'writes',
    times: services.config.writeLimit,
    perSeconds,
    sources: users,
    now: () => services.now(),
  })
}
