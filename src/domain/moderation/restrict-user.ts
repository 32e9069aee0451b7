import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import type { ActionDetails } from '../../persistence/moderation/action-details.js'
import { findActionsInForce, isCoveredBy } from '../../persistence/moderation/actions.js'
import { findLocksInForce } from '../../persistence/moderation/locks.js'
import type { ModerationServices, Services } from '../../services/services.js'
import { requireNotPodmin, suspendAccess } from '../accounts/accounts.js'
import { type Actor, lockAdmins, requireActionOn, requireOtherAdmin, requirePower } from './actor.js'
import { type LocalUser, lockLocalUser } from './find-local-user.js'
import { isLockedWithoutAction } from './lock-users.js'
import {
  type ActionOptions,
  type ActionOutcome,
  recordAction,
  requireFutureEnd,
  requireReason,
} from './record-action.js'

/**
 * Locks a local account: no sign-in, tokens are refused, posts stay. A lock that ends later than all others of the account is one of its
 * own beside them: the account is open when all are undone.
 */
export async function suspendAccount(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  options: ActionOptions,
): Promise<ActionOutcome> {
  return withLockedUser(services, actor, { guid, ...options }, async ({ transaction, user, reason, admins }) => {
    requireOtherAdmin(admins, user.id)
    const target = { targetType: 'person', targetGuid: guid }
    if (isCoveredBy(await findActionsInForce(transaction, target, ['lock']), options.until)) return { changed: false }
    requireNotPodmin(services, user)
    const wasLocked = isLockedWithoutAction(user, await findLocksInForce(transaction, [user.id]))
    if (user.lockedAt === null) {
      await user.$query(transaction).patch({ lockedAt: services.now() })
      await suspendAccess(transaction, user.person.address)
    }
    const action = await recordAction(services, transaction, actor, {
      kind: 'lock',
      target: { type: 'person', guid, label: user.username },
      reason,
      caseId: options.caseId,
      until: options.until,
      undo: { possible: true },
      details: { userId: user.id, wasLocked } satisfies ActionDetails['lock'],
    })
    return { changed: true, action }
  })
}

interface LockedUser {
  readonly transaction: Knex.Transaction
  readonly user: LocalUser
  readonly reason: string
  /** The user ids of all admins. They are locked too. */
  readonly admins: readonly number[]
}

/** Finds and locks a local account for an action, and checks the rights. */
export async function withLockedUser<Outcome>(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  { guid, ...options }: Pick<ActionOptions, 'reason' | 'until'> & { readonly guid: string },
  run: (locked: LockedUser) => Promise<Outcome>,
): Promise<Outcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const admins = await lockAdmins(transaction)
    const user = await lockLocalUser(transaction, guid)
    const reason = requireReason(options)
    requireFutureEnd(services, options.until)
    requireActionOn(actor, user)
    return run({ transaction, user, reason, admins })
  })
}
