import type { Knex } from 'knex'
import { inTransaction } from '../../persistence/database/transactions.js'
import type { Pod } from '../../pod/pod.js'
import { endSessionsAndStreams, requireNotPodmin } from '../accounts/accounts.js'
import { type Actor, lockAdmins, requireActionOn, requireOtherAdmin, requirePower } from './actor.js'
import { type LocalUser, lockLocalUser } from './find-local-user.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from './record-action.js'

type UserPod = Pick<Pod, 'db' | 'now' | 'log' | 'requestContext' | 'config'>

/** Locks a local account: no sign-in, tokens are refused, posts stay. */
export async function suspendAccount(
  pod: UserPod,
  actor: Actor,
  guid: string,
  options: ActionOptions,
): Promise<ActionOutcome> {
  return withLockedUser(pod, actor, guid, options, async (transaction, user, reason, admins) => {
    requireOtherAdmin(admins, user.id)
    if (user.lockedAt !== null) return { changed: false }
    requireNotPodmin(pod, user)
    await user.$query(transaction).patch({ lockedAt: pod.now() })
    await endSessionsAndStreams(transaction, user.person.address)
    const action = await recordAction(pod, transaction, actor, {
      kind: 'lock',
      target: { type: 'person', guid, label: user.username },
      reason,
      caseId: options.caseId,
      until: options.until,
      undo: { possible: true },
      details: { userId: user.id },
    })
    return { changed: true, action }
  })
}

/** Finds and locks a local account for an action, and checks the rights. `admins` are locked too. */
export async function withLockedUser<Outcome>(
  pod: Pick<Pod, 'db' | 'requestContext'>,
  actor: Actor,
  guid: string,
  options: Pick<ActionOptions, 'reason'>,
  run: (transaction: Knex.Transaction, user: LocalUser, reason: string, admins: readonly number[]) => Promise<Outcome>,
): Promise<Outcome> {
  requirePower(actor, 'moderation')
  return inTransaction(pod, async (transaction) => {
    const admins = await lockAdmins(transaction)
    const user = await lockLocalUser(transaction, guid)
    const reason = requireReason(options)
    requireActionOn(actor, user)
    return run(transaction, user, reason, admins)
  })
}
