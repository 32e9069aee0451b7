import { randomBytes } from 'node:crypto'
import type { Client, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Library } from './library.js'

interface Pieces {
  readonly isSecret: (secretHash: string, secret: string) => boolean
  readonly subject: (address: string, clientId: string) => Promise<string>
  /** Called for each refresh token that was accepted. */
  readonly renew: (refreshToken: string) => Promise<void>
}

/** The seams of the library that are no settings; its types know few of them. */
interface Seams {
  readonly AccessToken: Generating
  readonly RefreshToken: Generating
  readonly AuthorizationCode: Generating
  readonly Client: { readonly prototype: ClientSeams; readonly Schema: { prototype: { redirectUris: () => void } } }
  readonly IdToken: { readonly prototype: IdTokenSeams }
}

interface Generating {
  readonly prototype: { generateTokenId: () => string }
}

interface ClientSeams {
  compareClientSecret(this: Client, secret: unknown): boolean
  redirectUriAllowed(this: Client, uri: string): boolean
}

interface IdTokenSeams {
  readonly client?: Client
  readonly ctx?: KoaContextWithOIDC
  payload(): Promise<{ readonly sub: string }>
}

/** Makes the library answer as the contract of this pod says, where it would answer in another way. */
export function reshape(provider: Provider, library: Library, { isSecret, subject, renew }: Pieces): void {
  const seams = provider as unknown as Seams

  for (const model of [seams.AccessToken, seams.RefreshToken, seams.AuthorizationCode]) {
    const { generateTokenId } = model.prototype
    model.prototype.generateTokenId = function hexadecimal() {
      generateTokenId.call(this) // settles the format as well
      return randomBytes(32).toString('hex')
    }
  }

  // What it takes for the secret of a client is our hash of it.
  seams.Client.prototype.compareClientSecret = function compareClientSecret(secret) {
    return typeof secret === 'string' && this.clientSecret !== undefined && isSecret(this.clientSecret, secret)
  }
  // To the letter, also where it is an address of the same machine with another port.
  seams.Client.prototype.redirectUriAllowed = function redirectUriAllowed(uri) {
    return this.redirectUris?.includes(uri) === true
  }
  // Looked at when the client registers; its own rules know no applications that have both kinds of addresses.
  seams.Client.Schema.prototype.redirectUris = () => undefined
  // A client that has a secret may send it in either way, whichever it has registered.
  Object.defineProperty(seams.Client.prototype, 'clientAuthMethod', {
    get(this: Client) {
      if (this.tokenEndpointAuthMethod === 'none') return 'none'
      return library.Provider.ctx?.get('authorization') ? 'client_secret_basic' : 'client_secret_post'
    },
  })

  const { payload } = seams.IdToken.prototype
  seams.IdToken.prototype.payload = async function payloadOfOurs(this: IdTokenSeams) {
    const claims = await payload.call(this)
    const accessToken = this.ctx?.oidc.entities.AccessToken?.jti
    const sub = this.client ? await subject(claims.sub, this.client.clientId) : claims.sub
    return { ...claims, sub, ...(accessToken && { at_hash: accessToken }) } // hashed where it is signed
  }

  provider.use(async (context, next) => {
    context.query = readable(context.query)
    await next()
    const ctx = context as Partial<KoaContextWithOIDC> // none where the library has no such route
    if (ctx.oidc?.route === 'authorization') describeUnsupported(context as KoaContextWithOIDC)
    if (ctx.oidc?.route !== 'token') return
    const used = context.status === 200 ? ctx.oidc.entities.RefreshToken?.jti : undefined
    if (used !== undefined && ctx.oidc.params?.['grant_type'] === 'refresh_token') await renew(used)
    shapeTokenAnswer(context as KoaContextWithOIDC)
  })
}

type Query = Readonly<Record<string, string | string[] | undefined>>

/** Nothing but `openid` gives them a meaning. */
const OF_OPENID = ['acr_values', 'claims', 'claims_locales', 'id_token_hint', 'max_age', 'nonce'] as const

/** A request as the library would not misunderstand it. */
function readable(query: Query): Record<string, string | string[] | undefined> {
  const read = { ...query }
  // It would answer with a page that needs a script; to another name it says that it does not know it.
  if (read['response_mode'] === 'form_post') read['response_mode'] = 'unknown'
  if (typeof read['scope'] !== 'string') return read
  const scopes = read['scope'].split(' ').filter((scope) => scope !== '')
  read['scope'] = scopes.join(' ')
  // It refuses what clients send each time without having to.
  if (!scopes.includes('openid')) for (const parameter of OF_OPENID) delete read[parameter]
  return read
}

const UNSUPPORTED: Readonly<Record<string, string>> = {
  request_not_supported: 'request objects are not supported',
  request_uri_not_supported: 'request objects are not supported; request_uri is never fetched',
  registration_not_supported: 'clients register at the registration endpoint',
}

/** The library describes these errors with nothing but their name. */
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
  const { token_type: _type, ...answer } = ctx.body as Record<string, unknown> // made by the token endpoint
  if (ctx.oidc.params?.['grant_type'] === 'refresh_token') {
    // The old one stays valid, and nobody has signed in anew.
    delete answer['refresh_token']
    delete answer['id_token']
  }
  ctx.body = { ...answer, token_type: 'bearer' }
}

/** A verifier that could not be one is a wrong one, like any other. */
function shapeTokenFault(ctx: KoaContextWithOIDC): void {
  const { error, error_description: description = '' } = ctx.body as Record<string, string> // as all its errors
  if (error !== 'invalid_request' || !/^code_verifier /.test(description)) return
  ctx.body = { error: 'invalid_grant', error_description: description }
}
