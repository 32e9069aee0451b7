import type { FastifySchema, RouteOptions } from 'fastify'
import { isReadMethod } from '../limits/write-limit.js'
import { ERROR_REASONS, type ErrorReason } from '../server/error-reasons.js'

/** Error reasons that any request can have, regardless of its path. */
const BEFORE_ROUTING = ['malformed_request', 'request_timeout', 'url_too_long', 'headers_too_large'] as const

type Reasons = ReadonlyMap<number, ReadonlySet<ErrorReason>>

/** The error responses of an operation as the API description shows them: for each status the reasons that it can have. */
export function buildErrorResponses(route: RouteOptions, schema: FastifySchema): Readonly<Record<string, object>> {
  const responses = Array.from(reasonsOf(route, schema), ([status, reasons]) => [status, responseOf(reasons)])
  return { ...Object.fromEntries(responses), default: responseOf(new Set(BEFORE_ROUTING)) }
}

function reasonsOf({ method, config = {} }: RouteOptions, schema: FastifySchema): Reasons {
  const reasons = new Map<number, Set<ErrorReason>>()
  const add = (status: number, ...added: readonly ErrorReason[]) => {
    reasons.set(status, new Set([...(reasons.get(status) ?? []), ...added]))
  }
  const { malformed, invalid, authorization_missing: _, ...refusals } = config.refusals ?? {}
  const isReadRoute = [method].flat().every(isReadMethod)
  const malformedStatus = statusOf(malformed) ?? 400

  add(400, 'token_repeated', 'malformed_request')
  add(401, 'token_missing', 'token_invalid')
  add(403, 'insufficient_scope')
  add(415, 'unsupported_media_type') // also of a GET that names a Content-Encoding
  for (const [reason, refusal] of Object.entries(refusals)) {
    add(statusOf(refusal) ?? 422, isErrorReason(reason) ? reason : 'field_invalid')
  }
  if (schema.params !== undefined || !isReadRoute) add(404, 'not_found')
  addSchemaReasons(schema.querystring, (reason) => add(422, reason))
  if (schema.body !== undefined) addSchemaReasons(schema.body, (reason) => add(statusOf(invalid) ?? 422, reason))
  if (!isReadRoute) {
    add(malformedStatus, 'malformed_body')
    add(413, 'body_too_large')
  }
  if (method === 'POST') {
    add(400, 'idempotency_key_invalid')
    add(409, 'idempotency_key_in_use', 'idempotency_result_lost')
    add(422, 'idempotency_key_reused', 'malformed_body')
  }
  if (!isReadRoute || config.lasting) add(429, 'rate_limited')
  // A value that passes every check and still cannot be stored.
  if (reasons.has(422)) add(422, 'field_invalid')
  add(500, 'internal_error')
  add(503, 'overloaded', 'unavailable')
  return reasons
}

function addSchemaReasons(schema: unknown, add: (reason: ErrorReason) => void): void {
  if (schema === undefined) return
  add('field_invalid')
  const { required = [], anyOf } = schema as { readonly required?: readonly string[]; readonly anyOf?: unknown }
  if (required.length > 0 || anyOf !== undefined) add('field_missing')
}

function statusOf(refusal: number | { readonly status: number } | undefined): number | undefined {
  return typeof refusal === 'object' ? refusal.status : refusal
}

function responseOf(reasons: ReadonlySet<ErrorReason>): object {
  const all = [...reasons].sort()
  return {
    description: all.map((reason) => `- \`${reason}\`: ${ERROR_REASONS[reason]}`).join('\n'),
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: 'Error#' }, { type: 'object', required: ['reason'], properties: { reason: { enum: all } } }],
        },
      },
    },
  }
}

/** Reasons of pages are shown to API clients as an invalid field. */
function isErrorReason(reason: string): reason is ErrorReason {
  return reason in ERROR_REASONS
}
