import { ALWAYS_GRANTED, isScope, type Scope } from '../../domain/accounts/scopes.js'

/** Invalid requested scopes; the message is the OAuth error description. */
export class ScopeFault extends Error {
  override name = 'ScopeFault'
}

/** The parameter `claims` cannot be read. */
export class ClaimsFault extends Error {
  override name = 'ClaimsFault'
}

/** The scopes of a request: its `scope`, the claims of user info that it requests, and the scope that is always granted. */
export function requestedScopes(scope: string, claims: string | undefined): readonly Scope[] {
  const names = scope.split(' ').filter((name) => name !== '')
  const knownScopes = [...names.filter(isScope), ...claimedScopes(claims)]
  // OpenID Connect Core 3.1.2.1: unknown scopes are ignored, also `offline_access`, because refresh tokens are always issued.
  if (names.length > 0 && knownScopes.length === 0)
    throw new ScopeFault(`unknown scope: ${names.join(' ').slice(0, 100)}`)
  const scopes = new Set<Scope>([...knownScopes, ALWAYS_GRANTED])
  // Private posts reveal the contacts of the user.
  if ((scopes.has('private:read') || scopes.has('private:modify')) && !scopes.has('contacts:read')) {
    throw new ScopeFault('private:read and private:modify need contacts:read')
  }
  return [...scopes]
}

function claimedScopes(claims: string | undefined): readonly Scope[] {
  if (claims === undefined) return []
  try {
    const userinfoClaims: unknown = JSON.parse(claims)?.userinfo
    return typeof userinfoClaims === 'object' && userinfoClaims !== null
      ? Object.keys(userinfoClaims).filter(isScope)
      : []
  } catch {
    throw new ClaimsFault('claims is not valid JSON')
  }
}
