/** All scopes of the client API. */
export const SCOPES = [
  'openid',
  'sub',
  'name',
  'nickname',
  'picture',
  'profile',
  'email',
  'profile:read_private',
  'profile:modify',
  'contacts:read',
  'contacts:modify',
  'conversations',
  'interactions',
  'notifications',
  'public:read',
  'public:modify',
  'private:read',
  'private:modify',
  'tags:read',
  'tags:modify',
] as const

export type Scope = (typeof SCOPES)[number]

/** Part of every authorization, whether requested or not. */
export const ALWAYS_GRANTED: Scope = 'public:read'

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text)
}

/** Splits a list of scopes into known ones, without repeats, and unknown names. */
export function readScopes(text: string): { readonly scopes: readonly Scope[]; readonly unknown: readonly string[] } {
  const names = [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))]
  return {
    scopes: [...new Set<Scope>([...names.filter(isScope), ALWAYS_GRANTED])],
    unknown: names.filter((name) => !isScope(name)),
  }
}
