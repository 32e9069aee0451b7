import { randomBytes } from 'node:crypto'
import type { Client, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Library } from './load-library.js'

interface ModelHooks {
  readonly isSecret: (secretHash: string, secret: string) => boolean
  readonly subject: (address: string, clientId: string) => Promise<string>
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

/** Changes models of the library where they differ from the contract of this pod. */
export function patchModels(provider: Provider, library: Library, { isSecret, subject }: ModelHooks): void {
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
}
