import { randomBytes } from 'node:crypto'
import type { Client, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Library } from './library.js'

interface ProviderHooks {
  readonly isSecret: (secretHash: string, secret: string) => boolean
  readonly subject: (address: string, clientId: string) => Promise<string>
  /** Called for each refresh token that was accepted. */
  readonly renew: (refreshToken: string) => Promise<void>
}

/** Methods of the library that are replaced because it has no setting for them. Most are missing in its types. */
interface ProviderInternals {
  readonly AccessToken: TokenModel
  readonly RefreshToken: TokenModel
  readonly AuthorizationCode: TokenModel
  readonly Client: { readonly prototype: ClientInternals; readonly Schema: { prototype: { redirectUris: () => void } } }
  readonly IdToken: { readonly prototype: IdTokenInternals }
}

interface TokenModel {
  readonly prototype: { generateTokenId: () => string }
}

interface ClientInternals {
  compareClientSecret(this: Client, secret: unknown): boolean
  redirectUriAllowed(this: Client, uri: string): boolean
}

interface IdTokenInternals {
  readonly client?: Client
  readonly ctx?: KoaContextWithOIDC
  payload(): Promise<{ readonly sub: string }>
}

/** Changes the behaviour of the library where it differs from the contract of this pod. */
export function customiseProvider(
  provider: Provider,
  library: Library,
  { isSecret, subject, renew }: ProviderHooks,
): void {
  const internals = provider as unknown as ProviderInternals

  for (const model of [internals.AccessToken, internals.RefreshToken, internals.AuthorizationCode]) {
    const { generateTokenId } = model.prototype
    model.prototype.generateTokenId = function hexadecimal() {
      generateTokenId.call(this) // also sets the format of the token
      return randomBytes(32).toString('hex')
    }
  }

  // The library holds the hash of a client secret instead of the secret.
  internals.Client.prototype.compareClientSecret = function compareClientSecret(secret) {
    return typeof secret === 'string' && this.clientSecret !== undefined && isSecret(this.clientSecret, secret)
  }
  // Exact comparison, also of loopback addresses, for which the library ignores the port.
  internals.Client.prototype.redirectUriAllowed = function redirectUriAllowed(uri) {
    return this.redirectUris?.includes(uri) === true
  }
  // Checked at registration instead. The rules of the library allow no application with both web and native addresses.
  internals.Client.Schema.prototype.redirectUris = () => undefined
  // A client may send its secret in the header or in the body, regardless of the registered method.
  Object.defineProperty(internals.Client.prototype, 'clientAuthMethod', {
    get(this: Client) {
      if (this.tokenEndpointAuthMethod === 'none') return 'none'
      return library.Provider.ctx?.get('authorization') ? 'client_secret_basic' : 'client_secret_post'
    },
  })

  const { payload } = internals.IdToken.prototype
  internals.IdToken.prototype.payload = async function payloadWithSubject(this: IdTokenInternals) {
    const claims = await payload.call(this)
    const accessToken = this.ctx?.oidc.entities.AccessToken?.jti
    const sub = this.client ? await subject(claims.sub, this.client.clientId) : claims.sub
    return { ...claims, sub, ...(accessToken && { at_hash: accessToken }) } // the library hashes `at_hash` when it signs the token
  }

  provider.use(async (context, next) => {
    context.query = normaliseQuery(context.query)
    await next()
    const ctx = context as Partial<KoaContextWithOIDC> // `oidc` is missing on unknown routes
    if (ctx.oidc?.route === 'authorization') describeUnsupported(context as KoaContextWithOIDC)
    if (ctx.oidc?.route !== 'token') return
    const used = context.status === 200 ? ctx.oidc.entities.RefreshToken?.jti : undefined
    if (used !== undefined && ctx.oidc.params?.['grant_type'] === 'refresh_token') await renew(used)
    shapeTokenAnswer(context as KoaContextWithOIDC)
  })
}

type Query = Readonly<Record<string, string | string[] | undefined>>

/** Parameters that have a meaning only with the scope `openid`. */
const OPENID_PARAMETERS = ['acr_values', 'claims', 'claims_locales', 'id_token_hint', 'max_age', 'nonce'] as const

/** Changes an authorization request that the library would refuse or answer in the wrong way. */
function normaliseQuery(query: Query): Record<string, string | string[] | undefined> {
  const read = { ...query }
  // `form_post` needs a page with a script; for an unknown mode the library reports an error to the client.
  if (read['response_mode'] === 'form_post') read['response_mode'] = 'unknown'
  if (typeof read['scope'] !== 'string') return read
  const scopes = read['scope'].split(' ').filter((scope) => scope !== '')
  read['scope'] = scopes.join(' ')
  // The library refuses these parameters without `openid`, but clients send them anyway.
  if (!scopes.includes('openid')) for (const parameter of OPENID_PARAMETERS) delete read[parameter]
  return read
}

const UNSUPPORTED: Readonly<Record<string, string>> = {
  request_not_supported: 'request objects are not supported',
  request_uri_not_supported: 'request objects are not supported; request_uri is never fetched',
  registration_not_supported: 'clients register at the registration endpoint',
}

/** Adds a description to errors for which the library has none. */
function describeUnsupported(ctx: KoaContextWithOIDC): void {
  const location = String(ctx.response.get('location') ?? '')
  const [match, error = ''] = /[?#&]error=(\w+)(?=(?:&(?!error=)[^&]*)*$)/.exec(location) ?? []
  const description = UNSUPPORTED[error]
  if (match === undefined || description === undefined || location.includes('error_description=')) return
  const described = `${match}&${new URLSearchParams({ error_description: description })}`
  ctx.set(
    'location',
    location.replace(match, () => described),
  )
}

function shapeTokenAnswer(ctx: KoaContextWithOIDC): void {
  ctx.set('pragma', 'no-cache')
  if (ctx.status !== 200) {
    shapeTokenFault(ctx)
    return
  }
  const { token_type: _type, ...answer } = ctx.body as Record<string, unknown> // the body of the token endpoint
  if (ctx.oidc.params?.['grant_type'] === 'refresh_token') {
    // The refresh token stays the same, and there was no new sign-in.
    delete answer['refresh_token']
    delete answer['id_token']
  }
  ctx.body = { ...answer, token_type: 'bearer' }
}

/** A malformed PKCE verifier is reported like a wrong one. */
function shapeTokenFault(ctx: KoaContextWithOIDC): void {
  const { error, error_description: description = '' } = ctx.body as Record<string, string> // as in all errors of the library
  if (error !== 'invalid_request' || !/^code_verifier /.test(description)) return
  ctx.body = { error: 'invalid_grant', error_description: description }
}
