import { randomBytes } from 'node:crypto'
import type { Client, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Library } from './library.js'

interface Pieces {
  readonly isSecret: (secretHash: string, secret: string) => boolean
  readonly subject: (address: string, clientId: string) => Promise<string>
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
export function reshape(provider: Provider, library: Library, { isSecret, subject }: Pieces): void {
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
    // It would answer with a page that needs a script; to another name it says that it does not know it.
    if (context.query['response_mode'] === 'form_post') context.query = { ...context.query, response_mode: 'unknown' }
    await next()
    const ctx = context as Partial<KoaContextWithOIDC> // none where the library has no such route
    if (ctx.oidc?.route === 'token') shapeTokenAnswer(context as KoaContextWithOIDC)
  })
}

function shapeTokenAnswer(ctx: KoaContextWithOIDC): void {
  ctx.set('pragma', 'no-cache')
  if (ctx.status !== 200) return
  const { token_type: _type, ...answer } = ctx.body as Record<string, unknown> // made by the token endpoint
  if (ctx.oidc.params?.['grant_type'] === 'refresh_token') {
    // Also to a client that asked for less: what its token can do is what the authorization says.
    answer['scope'] = ctx.oidc.entities.RefreshToken?.scope
    // The old one stays valid, and nobody has signed in anew.
    delete answer['refresh_token']
    delete answer['id_token']
  }
  ctx.body = { ...answer, token_type: 'bearer' }
}
