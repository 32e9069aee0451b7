import type { Role } from '../../persistence/models/user.js'
import { hasPower } from './role-powers.js'

/** The scopes of the client API that every user can grant. */
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

/** The scopes of the admin API. Only users with the role can grant them, and the role is checked again at every request. */
const STAFF_SCOPES = ['moderation', 'administration'] as const

export const ALL_SCOPES = [...SCOPES, ...STAFF_SCOPES] as const

export type Scope = (typeof ALL_SCOPES)[number]
type StaffScope = (typeof STAFF_SCOPES)[number]

/** Part of every authorization, whether requested or not. */
export const ALWAYS_GRANTED: Scope = 'public:read'

export function isScope(text: string): text is Scope {
  return (ALL_SCOPES as readonly string[]).includes(text)
}

function isStaffScope(scope: Scope): scope is StaffScope {
  return (STAFF_SCOPES as readonly Scope[]).includes(scope)
}

/** Whether tokens of a user with this role may have the scope. Each staff scope is named after the power that it needs. */
export function roleAllowsScope(role: Role | null, scope: Scope): boolean {
  return !isStaffScope(scope) || hasPower(role, scope)
}

/** Splits a list of scopes into known ones, without repeats, and unknown names. */
export function readScopes(text: string): { readonly scopes: readonly Scope[]; readonly unknown: readonly string[] } {
  const names = [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))]
  return {
    scopes: [...new Set<Scope>([...names.filter(isScope), ALWAYS_GRANTED])],
    unknown: names.filter((name) => !isScope(name)),
  }
}
