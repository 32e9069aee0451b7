import type { KoaContextWithOIDC, Provider } from 'oidc-provider'

interface OidcResponseHooks {
  /** Called for each refresh token that was accepted. */
  readonly renew: (refreshToken: string) => Promise<void>
}

/** Changes requests and responses of the library, by a middleware, where they differ from the contract of this pod. */
export function shapeOidcResponses(provider: Provider, { renew }: OidcResponseHooks): void {
  provider.use(async (context, next) => {
    context.query = normaliseQuery(context.query)
    await next()
    const ctx = context as Partial<KoaContextWithOIDC> // `oidc` is missing on unknown routes
    if (ctx.oidc?.route === 'authorization') describeUnsupported(context as KoaContextWithOIDC)
    if (ctx.oidc?.route !== 'token') return
    const refreshTokenId = context.status === 200 ? ctx.oidc.entities.RefreshToken?.jti : undefined
    if (refreshTokenId !== undefined && ctx.oidc.params?.['grant_type'] === 'refresh_token') await renew(refreshTokenId)
    shapeTokenResponse(context as KoaContextWithOIDC)
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
  const describedMatch = `${match}&${new URLSearchParams({ error_description: description })}`
  ctx.set(
    'location',
    location.replace(match, () => describedMatch),
  )
}

function shapeTokenResponse(ctx: KoaContextWithOIDC): void {
  ctx.set('pragma', 'no-cache')
  if (ctx.status !== 200) {
    shapeTokenFault(ctx)
    return
  }
  const { token_type: _type, ...response } = ctx.body as Record<string, unknown> // the body of the token endpoint
  if (ctx.oidc.params?.['grant_type'] === 'refresh_token') {
    // The refresh token stays the same, and there was no new sign-in.
    delete response['refresh_token']
    delete response['id_token']
  }
  ctx.body = { ...response, token_type: 'bearer' }
}

/** A malformed PKCE verifier is reported like a wrong one. */
function shapeTokenFault(ctx: KoaContextWithOIDC): void {
  const { error, error_description: description = '' } = ctx.body as Record<string, string> // as in all errors of the library
  if (error !== 'invalid_request' || !/^code_verifier /.test(description)) return
  ctx.body = { error: 'invalid_grant', error_description: description }
}
