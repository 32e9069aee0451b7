import type { Role } from '../../persistence/models/user.js'

/** `administration` includes `moderation`. */
export type Power = 'moderation' | 'administration'

/** Null: a user without a role. A command in a shell of the pod and the pod itself (`system`) have every power. */
export type ActorRole = Role | 'member' | 'command' | 'system' | null

/** The only check of a role. */
export function hasPower(role: ActorRole, power: Power): boolean {
  return role === 'admin' || role === 'command' || role === 'system' || (role === 'moderator' && power === 'moderation')
}
