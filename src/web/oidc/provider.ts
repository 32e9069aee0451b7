import { createHmac } from 'node:crypto'
import type { Configuration, Provider } from 'oidc-provider'
import { findActiveUser, findGrantOfClient } from '../../domain/accounts/authorizations.js'
import { findClient, isClientSecret } from '../../domain/accounts/clients.js'
import { hasFactor } from '../../domain/accounts/factors/second-factor.js'
import { ALL_SCOPES } from '../../domain/accounts/scopes.js'
import { loadSigningKey } from '../../domain/accounts/signing-keys.js'
import { hashToken } from '../../domain/accounts/token-hash.js'
import { findSubject } from '../../domain/accounts/user-info.js'
import { findFactors } from '../../persistence/accounts/factors.js'
import { renewRefreshToken } from '../../persistence/accounts/issued-tokens.js'
import type { Services } from '../../services/services.js'
import { openAdapters, REDIRECT_URI_OMITTED } from './adapter.js'
import { sendFault, watchFaults } from './faults.js'
import { OIDC_LIMITS } from './limits.js'
import { OIDC_PATHS } from './paths.js'
import { promptPolicy } from './policy.js'
import { type Library, loadLibrary } from './provider-internals/load-library.js'
import { patchModels } from './provider-internals/patch-models.js'
import { preserveRequestCookies } from './request-cookies.js'
import { ClaimsFault, requestedScopes, ScopeFault } from './scope-rules.js'
import { ACR_VALUES, OPENID_CLAIMS } from './sessions/levels.js'
import { shapeOidcResponses } from './shape-responses.js'

/** The page of each prompt that is not the sign-in. */
const PROMPT_PATHS: Readonly<Record<string, string>> = {
  consent: OIDC_PATHS.consent,
  create: OIDC_PATHS.signUp,
}

/** Opens the authorization server on the first request, because that may generate its signing key. */
export function getProvider(services: Services): () => Promise<Provider> {
  let openedProvider: Promise<Provider> | undefined
  return async () => {
    openedProvider ??= openProvider(services)
    try {
      return await openedProvider
    } catch (error) {
      openedProvider = undefined // for example while the database is unavailable; the next request tries again
      throw error
    }
  }
}

async function openProvider(services: Services): Promise<Provider> {
  const library = await loadLibrary(services.log)
  const key = await loadSigningKey(services)
  const provider = new library.Provider(services.config.oidcIssuer ?? services.config.url, {
    ...settings(services, library),
    adapter: openAdapters(services, library),
    jwks: { keys: [key] } as NonNullable<Configuration['jwks']>, // a JWK of Node, whose type is wider
    cookies: {
      names: { session: 'pod_session', interaction: 'pod_request', resume: 'pod_resume' },
      keys: [createHmac('sha256', String(key.d)).update('cookies').digest('hex')],
      long: { httpOnly: true, sameSite: 'lax', signed: true, path: '/' },
      short: { httpOnly: true, sameSite: 'lax', signed: true, path: '/' },
    },
  })
  provider.proxy = true // trusts the forwarded headers, which `oidcRoutes` sets
  patchModels(provider, library, {
    isSecret: isClientSecret,
    async subject(address, clientId) {
      const client = await findClient(services, clientId)
      return client === undefined ? address : findSubject(services, address, client)
    },
  })
  shapeOidcResponses(provider, {
    renew: (refreshToken) =>
      renewRefreshToken(services.db, hashToken(refreshToken), {
        lifetime: OIDC_LIMITS.refreshTokenSeconds,
        useSeconds: OIDC_LIMITS.refreshTokenUseSeconds,
      }),
  })
  preserveRequestCookies(provider)
  watchFaults(provider, services)
  return provider
}

function settings(services: Services, library: Library): Configuration {
  const { errors } = library
  return {
    scopes: [...ALL_SCOPES],
    claims: { openid: OPENID_CLAIMS },
    acrValues: ACR_VALUES,
    responseTypes: ['code'],
    subjectTypes: ['public'],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'none'],
    routes: {
      authorization: OIDC_PATHS.authorization,
      token: OIDC_PATHS.token,
      jwks: OIDC_PATHS.jwks,
      revocation: OIDC_PATHS.revocation,
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      resourceIndicators: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      dPoP: { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: async (_ctx, client, token) => client.clientId === token.clientId,
      },
    },
    ttl: {
      AccessToken: OIDC_LIMITS.accessTokenSeconds,
      AuthorizationCode: OIDC_LIMITS.codeSeconds,
      IdToken: OIDC_LIMITS.idTokenSeconds,
      RefreshToken: OIDC_LIMITS.refreshTokenSeconds,
      Interaction: OIDC_LIMITS.interactionSeconds,
      Session: OIDC_LIMITS.sessionSeconds,
    },
    // Required for clients without a secret, which have no other proof. Older clients with a secret do not support it.
    pkce: { required: (_ctx, client) => client.tokenEndpointAuthMethod === 'none' },
    allowOmittingSingleRegisteredRedirectUri: true,
    expiresWithSession: async () => false,
    issueRefreshToken: async () => true,
    rotateRefreshToken: false,
    // Revoking a refresh token, or using a code twice, revokes the grant. Revoking an access token revokes only that token.
    revokeGrantPolicy: ({ oidc }) => !(oidc.route === 'revocation' && oidc.entities.AccessToken),
    clientBasedCORS: () => true,
    extraParams: {
      [REDIRECT_URI_OMITTED]: null,
      claims: (ctx, claims) => {
        const { params } = ctx.oidc
        if (params === undefined) return
        for (const name of ['state', 'nonce']) checkLength(name, params[name], errors)
        params[REDIRECT_URI_OMITTED] = ctx.query['redirect_uri'] === undefined ? 'true' : undefined
        // From the original query, because the library has removed the scopes that it does not know.
        params['scope'] = scopesOf(ctx.query['scope'], claims, errors).join(' ')
      },
    },
    interactions: {
      policy: promptPolicy(library, { hasFactor: (address) => hasFactorAt(services, address) }),
      url: (_ctx, { prompt, uid }) => `${PROMPT_PATHS[prompt.name] ?? OIDC_PATHS.signIn}?request=${uid}`,
    },
    async findAccount(_ctx, address) {
      if (!(await findActiveUser(services, address))) return undefined
      return { accountId: address, claims: async () => ({ sub: address }) }
    },
    async loadExistingGrant({ oidc }) {
      const { account, client, provider } = oidc
      if (!account || !client) return undefined
      const grant = await findGrantOfClient(services, { address: account.accountId, clientId: client.clientId })
      return grant && provider.Grant.find(grant.grantId)
    },
    renderError: (ctx, out) => sendFault(services, ctx, out),
    // The library must not request addresses that a client has registered; the pod has its own protected HTTP client.
    fetch: async () => {
      throw new Error('The authorization server must not send requests.')
    },
  }
}

async function hasFactorAt(services: Pick<Services, 'db'>, address: string): Promise<boolean> {
  const user = await findActiveUser(services, address)
  return user !== undefined && hasFactor(await findFactors(services.db, user.id))
}

/** Limits values that are stored before the user has signed in. */
function checkLength(name: string, value: unknown, { InvalidRequest }: Library['errors']): void {
  const bytes = typeof value === 'string' ? Buffer.byteLength(value) : 0
  if (bytes > OIDC_LIMITS.stateBytes) {
    throw new InvalidRequest(`${name} has ${bytes} bytes; at most ${OIDC_LIMITS.stateBytes} are accepted`)
  }
}

function scopesOf(
  scope: unknown,
  claims: string | undefined,
  { InvalidRequest, InvalidScope }: Library['errors'],
): readonly string[] {
  const text = typeof scope === 'string' ? scope : ''
  try {
    return requestedScopes(text, claims)
  } catch (error) {
    if (error instanceof ClaimsFault) throw new InvalidRequest(error.message)
    if (error instanceof ScopeFault) throw new InvalidScope(error.message, text.slice(0, 200))
    throw error
  }
}
