import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { HTTP_LIMITS } from '../../limits.js'
import { isDatabaseUnavailable, isForeignKeyViolation } from '../../persistence/database/errors.js'
import { errorPage } from '../pages/html.js'
import { type ErrorReason, FIELD_OF_REASON, isErrorReason, reasonOfStatus } from './error-reasons.js'
import { answersJson, isOpenIdConnect, isPrivate, pathOf } from './paths.js'
import { MalformedBody, RequestFault } from './request-faults.js'
import { noteFailure } from './request-log.js'
import { InvalidRequest } from './validation.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The status of each refusal of the use case on this route, with the field that it is about where `FIELD_OF_REASON` says
     * otherwise. Two names are not refusals: `invalid` is a body that breaks the schema (422 by default), `malformed` a body
     * that cannot be read (400 by default).
     */
    refusals?: RouteRefusals
  }
}

interface RefusalStatus {
  readonly status: number
  readonly field: string
}

/** Only pages have the last one: they show no reasons. */
type RefusalName = ErrorReason | 'invalid' | 'malformed' | 'authorization_missing'

export type RouteRefusals = { readonly [Name in RefusalName]?: number | RefusalStatus }

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

/** What an error body says beside its code. */
interface ErrorContent {
  readonly message: string
  readonly reason: ErrorReason
  readonly field?: string | undefined
  /** All that are wrong, where there are several. */
  readonly fields?: readonly string[]
  readonly more?: Readonly<Record<string, string>>
}

export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusals: RouteRefusals = request.routeOptions.config.refusals ?? {}

  if (error instanceof Refusal) {
    const found = refusalOf(error, refusals)
    if (found !== undefined) return answerError(request, reply, found.status, found)
  }
  if (error instanceof MalformedBody) {
    const { message, reason } = error
    return answerError(request, reply, statusOf(refusals.malformed) ?? error.status, { message, reason })
  }
  if (error instanceof RequestFault) {
    const { status, headers, message, reason, field, fields: more } = error
    return answerError(request, reply.headers(headers), status, { message, reason, field, more })
  }
  if (error instanceof InvalidRequest) return answerInvalid(error, request, reply, refusals)
  if (isDatabaseUnavailable(error) || error instanceof QueueUnavailable) {
    noteFailure(request, { error, isOutage: true })
    return answerUnavailable(request, reply.header('retry-after', HTTP_LIMITS.retryAfterSeconds))
  }
  // It was there when the use case looked for it.
  if (isForeignKeyViolation(error)) {
    noteFailure(request, { error, isOutage: false })
    return answerError(request, reply, 404, { message: 'This was deleted in the meantime.', reason: 'not_found' })
  }
  // Values are checked before they reach the database; one that slips through is still the client's.
  if (isWrongValue(error)) {
    noteFailure(request, { error, isOutage: false })
    const message = 'A value in this request cannot be stored.'
    return answerError(request, reply, 422, { message, reason: 'field_invalid' })
  }
  const status = Number(fieldOf(error, 'statusCode') ?? 500)
  if (status === 503) return answerUnavailable(request, reply)
  if (status < 500 && request.is404) return answerNotFound(request, reply)
  if (status >= 400 && status < 500) {
    const message = UNREADABLE[status] ?? 'This request cannot be read.'
    return answerError(request, reply, status, { message, reason: reasonOfStatus(status) })
  }
  noteFailure(request, { error, isOutage: false })
  return answerError(request, reply, 500, { message: OUR_FAULT, reason: 'internal_error' })
}

export function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return answerError(request, reply, 404, { message: 'There is nothing here.', reason: 'not_found' })
}

function answerUnavailable(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return answerError(request, reply, 503, { message: AWAY, reason: 'unavailable' })
}

/** A path that no object can have is one where nothing is. */
function answerInvalid(
  error: InvalidRequest,
  request: FastifyRequest,
  reply: FastifyReply,
  refusals: RouteRefusals,
): FastifyReply {
  const { part, message, reason, fields } = error
  if (part === 'params') return answerError(request, reply, 404, { message, reason: 'not_found' })
  const status = part === 'body' ? (statusOf(refusals.invalid) ?? 422) : 422
  return answerError(request, reply, status, { message, reason, field: fields[0], fields })
}

/** Undefined: the route does not expect this refusal. */
function refusalOf({ reason, message }: Refusal, refusals: RouteRefusals) {
  const expected: number | RefusalStatus | undefined = Reflect.get(refusals, reason)
  const status = statusOf(expected)
  if (status === undefined) return undefined
  const known = isErrorReason(reason) ? reason : reasonOfStatus(status)
  const isAboutField = status === 422 || status === 400
  const field = typeof expected === 'object' ? expected.field : FIELD_OF_REASON[known]
  return { status, message, reason: known, ...(isAboutField && { field }) }
}

function statusOf(refusal: number | RefusalStatus | undefined): number | undefined {
  return typeof refusal === 'object' ? refusal.status : refusal
}

/** JSON where clients ask, a small page where people look. */
function answerError(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  { message, reason, field, fields = [], more = {} }: ErrorContent,
): FastifyReply {
  const path = pathOf(request.url)
  // The route may have allowed caches to keep what it meant to answer.
  reply.code(status).header('cache-control', isPrivate(path) ? 'private, no-store' : 'no-store')
  if (!answersJson(path)) return reply.type('text/html; charset=utf-8').send(errorPage(status, message))
  const ofApi = {
    reason,
    ...(field !== undefined && { field }),
    ...(fields.length > 1 && { fields }),
  }
  // OpenID Connect names its own errors (RFC 6749, 5.2).
  return reply.send({ code: status, message, ...more, ...(!isOpenIdConnect(path) && ofApi) })
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
