import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Power } from '../../domain/accounts/role-powers.js'
import { roleAllowsScope, type Scope } from '../../domain/accounts/scopes.js'
import { openViewerLookup, type Viewer } from '../../domain/accounts/viewers.js'
import type { Services } from '../../services/services.js'
import type { ErrorReason } from '../server/error-reasons.js'
import { RequestFault } from '../server/request-faults.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Scopes that the token must have, all of them. */
    scopes?: readonly Scope[]
    /** Instead of scopes: the route needs no token, and does not read one. */
    public?: true
    /** Instead of scopes: a page of the console, for people who are signed in and have this power. */
    power?: Power
    /** Instead of scopes: a page for people who are signed in; with `proof`, one that needs a recent proof of the password. */
    requires?: 'session' | 'proof'
    /** The token may be a field of a multipart form. The handler reads it and calls `authenticateUpload`. */
    tokenInUpload?: true
  }

  interface FastifyRequest {
    /** The user of the token. Only routes with scopes have a viewer; on others the getter throws. */
    readonly viewer: Viewer
    authenticatedViewer: Viewer | undefined
  }

  interface FastifyInstance {
    /** Sets the viewer of a request whose token came in a multipart form; throws as for any other token. */
    readonly authenticateUpload: (request: FastifyRequest, token: string | undefined) => Promise<void>
  }
}

/**
 * Authenticates bearer tokens in the header, the query or a form. A token outside of the body is checked before the body is read,
 * so that unauthenticated clients cannot make the pod read bodies.
 */
export function addAuthentication(app: FastifyInstance, services: Services): void {
  const realm = services.config.host
  const viewers = openViewerLookup(services)

  app.decorateRequest('authenticatedViewer', undefined)
  app.decorateRequest('viewer', {
    getter() {
      const { authenticatedViewer } = this as FastifyRequest
      if (!authenticatedViewer) throw new Error('A public route has no viewer.')
      return authenticatedViewer
    },
  })

  app.addHook('onRequest', async (request) => {
    const { scopes } = request.routeOptions.config
    if (scopes === undefined) return
    const tokens = [...headerTokens(request), ...queryTokens(request)]
    if (tokens.length > 1) throw repeatedTokenFault(realm)
    const [token] = tokens
    if (token !== undefined) request.authenticatedViewer = await authenticate(token, scopes)
    else if (!hasFormBody(request) && !mayCarryTokenInUpload(request)) throw missingTokenFault(realm)
  })

  app.addHook('preValidation', (request, _reply, done) => {
    const { scopes } = request.routeOptions.config
    if (scopes === undefined) done()
    else if (hasFormBody(request)) authenticateForm(request, scopes).then(() => done(), done)
    else done(request.authenticatedViewer || mayCarryTokenInUpload(request) ? undefined : missingTokenFault(realm))
  })

  app.decorate('authenticateUpload', async (request: FastifyRequest, token: string | undefined) => {
    if (request.authenticatedViewer) return
    if (token === undefined) throw missingTokenFault(realm)
    request.authenticatedViewer = await authenticate(token, request.routeOptions.config.scopes ?? [])
  })

  async function authenticateForm(request: FastifyRequest, scopes: readonly Scope[]): Promise<void> {
    const [token, ...more] = tokensIn(request.body)
    if (token !== undefined && (more.length > 0 || request.authenticatedViewer)) throw repeatedTokenFault(realm)
    if (token !== undefined) request.authenticatedViewer = await authenticate(token, scopes)
    if (!request.authenticatedViewer) throw missingTokenFault(realm)
  }

  async function authenticate(token: string, scopes: readonly Scope[]): Promise<Viewer> {
    const viewer = await viewers.find(token)
    if (!viewer) throw invalidTokenFault(realm)
    checkScopes(realm, viewer, scopes)
    return viewer
  }
}

/** Checks scopes that only some requests of a route need; the scopes of all requests are in the route's `config`. */
export function requireScopes(request: FastifyRequest, ...scopes: readonly Scope[]): void {
  checkScopes(request.server.services.config.host, request.viewer, scopes)
}

function checkScopes(realm: string, viewer: Viewer, scopes: readonly Scope[]): void {
  const missing = scopes.filter((scope) => !viewer.scopes.has(scope))
  if (missing.length > 0) throw insufficientScopeFault(realm, scopes)
  if (!scopes.every((scope) => roleAllowsScope(viewer.role ?? null, scope))) throw missingRoleFault()
}

/** A route as Fastify passes it to `onRoute`. Plugins may still change its settings while they register. */
export type KnownRoute = Pick<RouteOptions, 'method' | 'url' | 'config'>

/** Prevents the start if a route declares no access: such a route would be open to everyone. */
export function checkRouteAccess(routes: readonly KnownRoute[]): void {
  const undeclaredRoutes = routes.filter(
    ({ config = {} }) => !config.scopes && !config.public && !config.power && !config.requires,
  )
  if (undeclaredRoutes.length === 0) return
  const names = undeclaredRoutes.map(({ method, url }) => `${String(method)} ${url}`)
  throw new Error(`These routes name no scopes, no power and no sign-in, and are not public: ${names.join(', ')}`)
}

/** All bearer tokens in headers. Of several such headers, Node shows only the first, but a proxy may have checked another. */
function headerTokens({ raw: { rawHeaders } }: FastifyRequest): string[] {
  return rawHeaders
    .filter((_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'authorization')
    .flatMap((value) => /^Bearer +(\S+) *$/i.exec(value)?.[1] ?? [])
}

function queryTokens(request: FastifyRequest): string[] {
  return tokensIn(request.query)
}

function tokensIn(fields: unknown): string[] {
  const value = typeof fields === 'object' && fields !== null ? Reflect.get(fields, 'access_token') : undefined
  return [value].flat().filter((token): token is string => typeof token === 'string' && token !== '')
}

/** Whether the body is a form. In JSON, `access_token` is an ordinary field. */
export function hasFormBody({ headers }: FastifyRequest): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '')
}

/** Not with an Idempotency-Key: its owner must be known before the form is read. */
function mayCarryTokenInUpload({ routeOptions, headers }: FastifyRequest): boolean {
  if (routeOptions.config.tokenInUpload !== true || headers['idempotency-key'] !== undefined) return false
  return /^multipart\/form-data\b/i.test(headers['content-type'] ?? '')
}

function missingTokenFault(realm: string): RequestFault {
  const text = 'This call needs an access token.'
  return new RequestFault(401, text, {
    headers: { 'www-authenticate': `Bearer realm="${realm}"` },
    fields: { error: 'invalid_request', error_description: text },
    reason: 'token_missing',
  })
}

function invalidTokenFault(realm: string): RequestFault {
  return oauthFault(realm, {
    status: 401,
    reason: 'token_invalid',
    error: 'invalid_token',
    text: 'The access token is unknown, expired or revoked.',
  })
}

function repeatedTokenFault(realm: string): RequestFault {
  return oauthFault(realm, {
    status: 400,
    reason: 'token_repeated',
    error: 'invalid_request',
    text: 'The access token must be given in one way only.',
  })
}

interface OAuthError {
  readonly status: number
  readonly reason: ErrorReason
  /** The code of RFC 6750. */
  readonly error: string
  readonly text: string
}

function oauthFault(realm: string, { status, reason, error, text }: OAuthError): RequestFault {
  return new RequestFault(status, text, {
    headers: { 'www-authenticate': `Bearer realm="${realm}", error="${error}", error_description="${text}"` },
    fields: { error, error_description: text },
    reason,
  })
}

/** The user has lost the role since the token was made. */
function missingRoleFault(): RequestFault {
  return new RequestFault(403, 'Your account does not have the role that this call needs.', { reason: 'role_needed' })
}

/** 403 and not 401, because clients end their session on a 401. */
function insufficientScopeFault(realm: string, scopes: readonly Scope[]): RequestFault {
  const neededScopes = scopes.join(' ')
  return new RequestFault(403, `insufficient_scope: this call needs ${neededScopes}.`, {
    headers: { 'www-authenticate': `Bearer realm="${realm}", error="insufficient_scope", scope="${neededScopes}"` },
  })
}
