import { CLIENT_AUTH_METHODS } from '../../domain/accounts/clients.js'
import { ALL_SCOPES } from '../../domain/accounts/scopes.js'
import { OIDC_PATHS } from './paths.js'
import { ACR_VALUES, OPENID_CLAIMS } from './sessions/levels.js'

/** Claims of an ID token; `nonce` only if the request has one. */
const ID_TOKEN_CLAIMS = ['iss', 'aud', 'exp', 'iat', 'nonce', 'at_hash', ...OPENID_CLAIMS]

/** The discovery document of the authorization server. The issuer must equal that of the ID tokens exactly. */
export function describeIssuer(podUrl: string, issuer: string): object {
  return {
    issuer,
    registration_endpoint: `${podUrl}${OIDC_PATHS.registration}`,
    authorization_endpoint: `${podUrl}${OIDC_PATHS.authorization}`,
    token_endpoint: `${podUrl}${OIDC_PATHS.token}`,
    userinfo_endpoint: `${podUrl}${OIDC_PATHS.userInfo}`,
    jwks_uri: `${podUrl}${OIDC_PATHS.jwks}`,
    revocation_endpoint: `${podUrl}${OIDC_PATHS.revocation}`,
    scopes_supported: ALL_SCOPES,
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'fragment'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    subject_types_supported: ['public', 'pairwise'],
    id_token_signing_alg_values_supported: ['RS256'],
    userinfo_signing_alg_values_supported: ['none'],
    token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: ['none', 'login', 'consent', 'create'],
    acr_values_supported: ACR_VALUES,
    claims_supported: [...ID_TOKEN_CLAIMS, 'name', 'nickname', 'profile', 'picture', 'email'],
    claims_parameter_supported: true,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    authorization_response_iss_parameter_supported: true,
  }
}
