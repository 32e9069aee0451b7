import { ALWAYS_GRANTED, isScope, type Scope } from '../../domain/accounts/scopes.js'

/** What is wrong with the scopes somebody asks for, in the words of OAuth. */
export class ScopeFault extends Error {
  override name = 'ScopeFault'
}

/** The claims somebody asks for cannot be read. */
export class ClaimsFault extends Error {
  override name = 'ClaimsFault'
}

/** All that a request asks for: its scopes, those it names as claims of the user info, and the one that always comes along. */
export function requestedScopes(scope: string, claims: string | undefined): readonly Scope[] {
  const names = scope.split(' ').filter((name) => name !== '')
  const known = [...names.filter(isScope), ...claimedScopes(claims)]
  // OpenID Connect Core 3.1.2.1: what is not known is ignored, `offline_access` included; refresh tokens always come.
  if (names.length > 0 && known.length === 0) throw new ScopeFault(`unknown scope: ${names.join(' ').slice(0, 100)}`)
  const scopes = new Set<Scope>([...known, ALWAYS_GRANTED])
  // Who may read private posts learns who the contacts are.
  if ((scopes.has('private:read') || scopes.has('private:modify')) && !scopes.has('contacts:read')) {
    throw new ScopeFault('private:read and private:modify need contacts:read')
  }
  return [...scopes]
}

function claimedScopes(claims: string | undefined): readonly Scope[] {
  if (claims === undefined) return []
  try {
    const wanted: unknown = JSON.parse(claims)?.userinfo
    return typeof wanted === 'object' && wanted !== null ? Object.keys(wanted).filter(isScope) : []
  } catch {
    throw new ClaimsFault('claims is not valid JSON')
  }
}
