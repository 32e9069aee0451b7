import type { FastifyInstance, FastifyReply } from 'fastify'
import { formatPolicy, PAGE_RULES } from '../pages/html.js'
import { isAdminApi, isForOtherOrigins, isPrivate, stripQuery } from './paths.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Headers of this route that replace the common ones. */
    headers?: Readonly<Record<string, string>>
  }
}

const A_YEAR = 365 * 86_400
const A_DAY = 86_400

/**
 * Protects browsers: no guessed types, no frames, no foreign content in pages, no referrer. One constant object, because it is the
 * same for every response.
 */
const PROTECTION = {
  'content-security-policy': formatPolicy(PAGE_RULES),
  'cross-origin-opener-policy': 'same-origin',
  // Routes of pictures, which other sites may show in an <img>, override this.
  'cross-origin-resource-policy': 'same-origin',
  'origin-agent-cluster': '?1',
  // A query may contain a token, which a referrer would reveal to another site.
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'DENY',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
}

const CORS_RESPONSE = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'Link, Location, WWW-Authenticate, Retry-After, ETag, Unread-Notifications, Unread-Conversations, Unread-Messages, X-Request-Id, Idempotency-Replayed',
}

const CORS_PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers':
    'Authorization, Content-Type, Accept, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID',
  'access-control-max-age': String(A_DAY),
}

/** Sets the request id, the protection, cache and CORS headers of every response. */
export function addHeaders(
  app: FastifyInstance,
  {
    https,
    picturesUrl,
    adminOrigins,
  }: {
    readonly https: boolean
    readonly picturesUrl: string | undefined
    /** The origins that may use the admin API. */
    readonly adminOrigins: readonly string[]
  },
): void {
  const common = https ? { ...PROTECTION, 'strict-transport-security': `max-age=${A_YEAR}` } : PROTECTION
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(common).header('x-request-id', request.id)
    const { headers } = request.routeOptions.config
    if (headers !== undefined) reply.headers(headers)
    if (isPrivate(stripQuery(request.url))) reply.header('cache-control', 'private, no-store')
    done()
  })
  if (picturesUrl !== undefined) allowPicturesFrom(app, new URL(picturesUrl).origin)
  allowOtherOrigins(app, adminOrigins)
}

/** Pages may show pictures of the origin, also pages whose route has a policy of its own. */
function allowPicturesFrom(app: FastifyInstance, origin: string): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const policy = reply.getHeader('content-security-policy')
    if (typeof policy === 'string') {
      reply.header('content-security-policy', policy.replace(/img-src 'self'/, `$& ${origin}`))
    }
    done(null, payload)
  })
}

/** Adds a header of the request to `Vary`: the response depends on it. */
export function addVary(reply: FastifyReply, field: string): void {
  const fields = String(reply.getHeader('vary') ?? '').split(/, */)
  const isNamed = fields.some((known) => known.toLowerCase() === field.toLowerCase())
  if (!isNamed) reply.header('vary', [...fields.filter(Boolean), field].join(', '))
}

/** The API reads no cookies, so any origin may use it without credentials. Browsers send the preflight request without a token. */
function allowOtherOrigins(app: FastifyInstance, adminOrigins: readonly string[]): void {
  app.addHook('onRequest', (request, reply, done) => {
    const path = stripQuery(request.url)
    const { origin } = request.headers
    const isForAdmins = isAdminApi(path) && adminOrigins.length > 0
    if (isForAdmins) addVary(reply, 'Origin')
    const isAllowedAdmin = isForAdmins && origin !== undefined && adminOrigins.includes(origin)
    if (!isAllowedAdmin && !isForOtherOrigins(path)) return done()
    reply.headers(CORS_RESPONSE)
    if (isAllowedAdmin) reply.header('access-control-allow-origin', origin)
    if (request.method !== 'OPTIONS') return done()
    reply.code(204).headers(CORS_PREFLIGHT).header('content-length', '0').send()
  })
  app.options('*', { config: { public: true, quiet: true }, schema: { hide: true } }, (_request, reply) => {
    reply.callNotFound()
  })
}
