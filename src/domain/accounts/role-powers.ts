import type { Role } from '../../persistence/models/user.js'

/** `administration` includes `moderation`. */
export type Power = 'moderation' | 'administration'

/** Whether a user with this role has the power; null: a member without a role. */
export function roleHasPower(role: Role | null, power: Power): boolean {
  return role === 'admin' || (role === 'moderator' && power === 'moderation')
}
