import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { QueueAway } from '../../jobs/queues/job-queues.js'
import { HTTP_LIMITS } from '../../limits.js'
import { isDatabaseUnavailable, isParentGone } from '../../persistence/database/errors.js'
import { errorPage } from '../pages/html.js'
import { answersJson, isPrivate, pathOf } from './paths.js'
import { MalformedBody, RequestFault } from './request-faults.js'
import { InvalidRequest } from './validation.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The status each refusal of the use case becomes on this route. Two names are not refusals: `invalid` is a body that
     * breaks the schema (422 unless it stands here), `malformed` one that cannot be read at all (400).
     */
    refusals?: Readonly<Record<string, number>>
  }
}

/** What a client is told when the fault is ours: always the same, so that it gives nothing away. */
const OUR_FAULT = 'Something went wrong on this pod.'
const AWAY = 'The pod cannot do this at the moment. Please try again soon.'

/** Fastify's own errors, in words that do not name it. */
const UNREADABLE: Readonly<Record<number, string>> = {
  404: 'There is nothing here.',
  408: 'The request took too long to arrive.',
  413: 'The body is too large.',
  414: 'The address is too long.',
  415: 'The body must be JSON or a form.',
}

export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusals = request.routeOptions.config.refusals ?? {}

  if (error instanceof Refusal) {
    const status = refusals[error.reason]
    if (status !== undefined) return answerError(request, reply, status, error.message)
  }
  if (error instanceof MalformedBody) {
    return answerError(request, reply, refusals['malformed'] ?? error.status, error.message)
  }
  if (error instanceof RequestFault) {
    return answerError(request, reply.headers(error.headers), error.status, error.message, error.fields)
  }
  if (error instanceof InvalidRequest) {
    return answerError(request, reply, statusOfInvalid(error, refusals), error.message)
  }
  if (isDatabaseUnavailable(error) || error instanceof QueueAway) {
    request.log.warn({ err: error }, 'something this request needs is out of reach')
    return answerError(request, reply.header('retry-after', HTTP_LIMITS.retryAfterSeconds), 503, AWAY)
  }
  // It was there when the use case looked for it.
  if (isParentGone(error)) {
    request.log.warn({ err: error }, 'what this request is about is gone')
    return answerError(request, reply, 404, 'This was deleted in the meantime.')
  }
  // Values are checked before they reach the database; one that slips through is still the client's.
  if (isWrongValue(error)) {
    request.log.warn({ err: error }, 'the database refused a value')
    return answerError(request, reply, 422, 'A value in this request cannot be stored.')
  }
  const status = Number(fieldOf(error, 'statusCode') ?? 500)
  if (status === 503) return answerError(request, reply, 503, AWAY)
  if (status < 500 && request.is404) return answerNotFound(request, reply)
  if (status >= 400 && status < 500) {
    return answerError(request, reply, status, UNREADABLE[status] ?? 'This request cannot be read.')
  }
  request.log.error({ err: error }, 'unexpected error')
  return answerError(request, reply, 500, OUR_FAULT)
}

export function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return answerError(request, reply, 404, 'There is nothing here.')
}

/** JSON where clients ask, a small page where people look. */
function answerError(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  message: string,
  fields: Readonly<Record<string, string>> = {},
): FastifyReply {
  // The route may have allowed others to keep what it meant to answer.
  reply.code(status).header('cache-control', isPrivate(pathOf(request.url)) ? 'private, no-store' : 'no-store')
  if (answersJson(pathOf(request.url))) return reply.send({ code: status, message, ...fields })
  return reply.type('text/html; charset=utf-8').send(errorPage(status, message))
}

/** A path that no object can have is one where nothing is. */
function statusOfInvalid(error: InvalidRequest, refusals: Readonly<Record<string, number>>): number {
  if (error.part === 'params') return 404
  return error.part === 'body' ? (refusals['invalid'] ?? 422) : 422
}

/** PostgreSQL class 22: a value it understood and cannot store. */
function isWrongValue(error: unknown): boolean {
  const code = fieldOf(fieldOf(error, 'nativeError') ?? error, 'code')
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code)
}

/** What is thrown need not be an error. */
function fieldOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}
