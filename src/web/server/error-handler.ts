import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { inEnglish } from '../../languages/locales.js'
import type { MessageId, Translate } from '../../languages/translate.js'
import { isDatabaseUnavailable, isForeignKeyViolation } from '../../persistence/database/errors.js'
import { StorageUnavailable } from '../../persistence/s3/storage-unavailable.js'
import { diasporaMessage } from '../api/diaspora-messages.js'
import { errorPage } from '../pages/html.js'
import { refusalText } from '../pages/language/refusal-text.js'
import { textsFor } from '../pages/language/request-language.js'
import { type ErrorReason, FIELD_OF_REASON, isErrorReason, reasonOfStatus } from './error-reasons.js'
import { HTTP_LIMITS } from './limits.js'
import { isConsole, isJsonPath, isOpenIdConnect, isPrivate, stripQuery } from './paths.js'
import { MalformedBody, RequestFault } from './request-faults.js'
import { recordFailure } from './request-log.js'
import { InvalidRequest } from './schemas/validation.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The status of each refusal that the use case of this route may throw, and the field it concerns if that differs from
     * `FIELD_OF_REASON`. Two names are not refusals: `invalid` is a body that breaks the schema (422 by default), `malformed` a
     * body that cannot be read (400 by default).
     */
    refusals?: RouteRefusals
  }
}

interface RefusalStatus {
  readonly status: number
  readonly field: string
}

/** `authorization_missing` occurs only on pages, which show no reasons. */
type RefusalName = ErrorReason | 'invalid' | 'malformed' | 'authorization_missing'

export type RouteRefusals = { readonly [Name in RefusalName]?: number | RefusalStatus }

const NOT_FOUND: ErrorResponse = { status: 404, message: 'There is nothing here.', reason: 'not_found' }
const UNAVAILABLE: ErrorResponse = {
  status: 503,
  message: 'The pod cannot do this at the moment. Please try again soon.',
  reason: 'unavailable',
}

/** Messages for errors of Fastify, whose own messages name it. */
const MESSAGE_OF_STATUS: Readonly<Record<number, string>> = {
  404: 'There is nothing here.',
  408: 'The request took too long to arrive.',
  413: 'The body is too large.',
  414: 'The URL is too long.',
  415: 'The body must be JSON or a form.',
}

/** The response to an error: its status, and the members of its body. */
interface ErrorResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | number>>
  readonly message: string
  readonly reason: ErrorReason
  readonly field?: string | undefined
  /** All wrong fields, if there are several. */
  readonly fields?: readonly string[]
  readonly more?: Readonly<Record<string, unknown>>
  /** The message of a page; default: that of the status. */
  readonly text?: ((t: Translate) => string) | undefined
  /** The error is logged with the line of the request. */
  readonly loggedAs?: 'outage' | 'failure'
}

export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { loggedAs, headers = {}, ...response } = classifyError(error, request)
  if (loggedAs !== undefined) recordFailure(request, { error, isOutage: loggedAs === 'outage' })
  return sendError(request, reply.headers(headers), response)
}

function classifyError(error: unknown, request: FastifyRequest): ErrorResponse {
  const refusals: RouteRefusals = request.routeOptions.config.refusals ?? {}

  if (error instanceof Refusal) {
    const expectedResponse = expectedRefusal(error, refusals)
    if (expectedResponse !== undefined) return inDialect(request, expectedResponse)
  }
  if (error instanceof MalformedBody) {
    const { message, reason } = error
    return inDialect(request, { status: statusOf(refusals.malformed) ?? error.status, message, reason })
  }
  if (error instanceof RequestFault) {
    const { status, headers, message, reason, field, fields: more, text } = error
    return { status, headers, message, reason, field, more, text }
  }
  if (error instanceof InvalidRequest) return classifyInvalid(error, request, refusals)
  if (isDatabaseUnavailable(error) || error instanceof QueueUnavailable || error instanceof StorageUnavailable) {
    return { ...UNAVAILABLE, headers: { 'retry-after': HTTP_LIMITS.retryAfterSeconds }, loggedAs: 'outage' }
  }
  // A parent was deleted after the use case had found it.
  if (isForeignKeyViolation(error)) {
    return { status: 404, message: 'This was deleted in the meantime.', reason: 'not_found', loggedAs: 'failure' }
  }
  // The checks before the database missed a wrong value of the client.
  if (isUnstorableValue(error)) {
    const message = 'A value in this request cannot be stored.'
    return { status: 422, message, reason: 'field_invalid', loggedAs: 'failure' }
  }
  const status = Number(fieldOf(error, 'statusCode') ?? 500)
  if (status === 503) return UNAVAILABLE
  if (status < 500 && request.is404) return NOT_FOUND
  if (status >= 400 && status < 500) {
    const message = MESSAGE_OF_STATUS[status] ?? 'This request cannot be read.'
    return { status, message, reason: reasonOfStatus(status) }
  }
  // The cause is only logged.
  const message = 'Something went wrong on this pod.'
  return { status: 500, message, reason: 'internal_error', loggedAs: 'failure' }
}

export function sendNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendError(request, reply, NOT_FOUND)
}

/** An invalid path parameter is answered with 404: no object can have such a path. */
function classifyInvalid(error: InvalidRequest, request: FastifyRequest, refusals: RouteRefusals): ErrorResponse {
  const { part, message, reason, fields } = error
  if (part === 'params') return { status: 404, message, reason: 'not_found' }
  const status = part === 'body' ? (statusOf(refusals.invalid) ?? 422) : 422
  return inDialect(request, { status, message, reason, field: fields[0], fields })
}

/** Undefined: the route does not expect this refusal. */
function expectedRefusal(refusal: Refusal, refusals: RouteRefusals) {
  const { reason, message, details: more } = refusal
  const expectedStatus: number | RefusalStatus | undefined = Reflect.get(refusals, reason)
  const status = statusOf(expectedStatus)
  if (status === undefined) return undefined
  const apiReason = isErrorReason(reason) ? reason : reasonOfStatus(status)
  const isAboutField = status === 422 || status === 400
  const field = typeof expectedStatus === 'object' ? expectedStatus.field : FIELD_OF_REASON[apiReason]
  const text = (t: Translate) => refusalText(t, refusal)
  return { status, message, reason: apiReason, more, text, ...(isAboutField && { field }) }
}

function statusOf(refusal: number | RefusalStatus | undefined): number | undefined {
  return typeof refusal === 'object' ? refusal.status : refusal
}

/** Gives an error that the description of the operation lists the message that the dialect of the client has for it. */
function inDialect(request: FastifyRequest, response: ErrorResponse): ErrorResponse {
  const message = diasporaMessage(request, response) ?? response.message
  return { ...response, message }
}

/** Answers with JSON on paths for clients, and with a page on paths for people. */
function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, message, reason, field, fields = [], more = {}, text }: ErrorResponse,
): FastifyReply {
  const path = stripQuery(request.url)
  // Overrides the caching that the route has set for its success response.
  reply.code(status).header('cache-control', isPrivate(path) ? 'private, no-store' : 'no-store')
  if (!isJsonPath(path)) {
    reply.type('text/html; charset=utf-8')
    // The console is English, and its messages say more than the status. A 404 uses the ordinary error page.
    const isOfConsole = isConsole(path)
    if (isOfConsole && status !== 404) return reply.send(errorPage(inEnglish, status, message))
    const setting = isOfConsole ? undefined : request.signedInUser?.account.language
    const t = textsFor(request, reply, { setting })
    return reply.send(errorPage(t, status, text?.(t) ?? t(textOfStatus(status))))
  }
  const apiFields = {
    reason,
    ...(field !== undefined && { field }),
    ...(fields.length > 1 && { fields }),
  }
  // OpenID Connect names its own errors (RFC 6749, 5.2).
  return reply.send({ code: status, message, ...more, ...(!isOpenIdConnect(path) && apiFields) })
}

/** The page texts of errors without a text of their own. */
const TEXT_OF_STATUS = {
  403: 'error.forbidden',
  404: 'error.not_found',
  408: 'error.too_slow',
  409: 'error.conflict',
  410: 'error.gone',
  413: 'error.too_large',
  414: 'error.address_too_long',
  415: 'error.media_type',
  422: 'error.wrong_value',
  503: 'error.unavailable',
} as const satisfies Readonly<Record<number, MessageId>>

function textOfStatus(status: number) {
  const texts: Readonly<Record<number, (typeof TEXT_OF_STATUS)[keyof typeof TEXT_OF_STATUS]>> = TEXT_OF_STATUS
  return texts[status] ?? (status < 500 ? 'error.bad_request' : 'error.internal')
}

/** PostgreSQL class 22 (data exception): a value that a column cannot hold. */
function isUnstorableValue(error: unknown): boolean {
  const code = fieldOf(fieldOf(error, 'nativeError') ?? error, 'code')
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code)
}

/** Any value can be thrown, not only an `Error`. */
function fieldOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}
