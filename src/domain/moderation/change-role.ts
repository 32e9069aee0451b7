import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { type Actor, requireOtherAdmin, requirePower } from './actor.js'
import { type ActionOptions, type ActionOutcome, recordAction } from './record-action.js'
import { withLockedUser } from './restrict-user.js'

export interface ChangeRoleOptions extends ActionOptions {
  readonly role: 'none' | 'moderator' | 'admin'
  /** The user name. */
  readonly confirm?: string | undefined
}

export interface RoleOutcome extends ActionOutcome {
  readonly role: 'none' | 'moderator' | 'admin'
}

/** Gives a local person a role, or takes it. It takes effect at the next request of the person. */
export async function changeRole(
  services: Pick<Services, 'db' | 'requestContext' | 'log' | 'now'>,
  actor: Actor,
  guid: string,
  { role, confirm, caseId, ...options }: ChangeRoleOptions,
): Promise<RoleOutcome> {
  requirePower(actor, 'administration')
  return withLockedUser(services, actor, { guid, ...options }, async ({ transaction, user, reason, admins }) => {
    const before = user.role ?? 'none'
    if (before === role) return { changed: false, role }
    if (role !== 'admin') requireOtherAdmin(admins, user.id)
    if (confirm !== user.username) {
      throw new Refusal('confirmation_needed', `Set confirm to ${user.username} to change the role.`, {
        details: { preview: { username: user.username, role: before, new_role: role } },
      })
    }
    await user.$query(transaction).patch({ role: role === 'none' ? null : role })
    const action = await recordAction(services, transaction, actor, {
      kind: 'role',
      target: { type: 'person', guid, label: user.username },
      reason,
      caseId,
      undo: { possible: false },
      before: { role: before },
      after: { role },
    })
    return { changed: true, role, action }
  })
}
