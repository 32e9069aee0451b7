import type { FastifyInstance, FastifyReply } from 'fastify'
import { PAGE_RULES, policyOf } from '../pages/html.js'
import { isForOtherOrigins, isPrivate, pathOf } from './paths.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the answers of this route say otherwise than all others. */
    headers?: Readonly<Record<string, string>>
  }
}

const A_YEAR = 365 * 86_400
const A_DAY = 86_400

/**
 * For browsers: guess no types, frame no pages, load nothing into them, and tell nobody where a link was followed. They are
 * the same for every answer, so that they need not be put together for each.
 */
const PROTECTION = {
  'content-security-policy': policyOf(PAGE_RULES),
  'cross-origin-opener-policy': 'same-origin',
  // Only what is asked for by its address in an <img> needs more; such routes say so.
  'cross-origin-resource-policy': 'same-origin',
  'origin-agent-cluster': '?1',
  // A token may stand in a query; no other site is to learn it from a link.
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'DENY',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
}

const READABLE_ELSEWHERE = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'Link, WWW-Authenticate, Retry-After, ETag, Unread-Notifications, Unread-Conversations, Unread-Messages, X-Request-Id, Idempotency-Replayed',
}

const CALLABLE_FROM_ELSEWHERE = {
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers': 'Authorization, Content-Type, Accept, If-None-Match, Idempotency-Key, Last-Event-ID',
  'access-control-max-age': String(A_DAY),
}

/** What every answer says about itself: its id, who may keep it, and who may read it. */
export function addHeaders(app: FastifyInstance, { https }: { readonly https: boolean }): void {
  const common = https ? { ...PROTECTION, 'strict-transport-security': `max-age=${A_YEAR}` } : PROTECTION
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(common).header('x-request-id', request.id)
    const { headers } = request.routeOptions.config
    if (headers !== undefined) reply.headers(headers)
    if (isPrivate(pathOf(request.url))) reply.header('cache-control', 'private, no-store')
    done()
  })
  openToOtherOrigins(app)
}

/** Says that the response depends on this header of the request. */
export function addVary(reply: FastifyReply, field: string): void {
  const fields = String(reply.getHeader('vary') ?? '').split(/, */)
  const isNamed = fields.some((known) => known.toLowerCase() === field.toLowerCase())
  if (!isNamed) reply.header('vary', [...fields.filter(Boolean), field].join(', '))
}

/** No cookie is ever read by the API, so any origin may use it, without credentials. Browsers ask first, without a token. */
function openToOtherOrigins(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (!isForOtherOrigins(pathOf(request.url))) return done()
    reply.headers(READABLE_ELSEWHERE)
    if (request.method !== 'OPTIONS') return done()
    reply.code(204).headers(CALLABLE_FROM_ELSEWHERE).header('content-length', '0').send()
  })
  app.options('*', { config: { public: true, quiet: true }, schema: { hide: true } }, (_request, reply) => {
    reply.callNotFound()
  })
}
