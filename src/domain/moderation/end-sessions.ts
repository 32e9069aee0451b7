import type { Services } from '../../services/services.js'
import { endAllAccess } from '../accounts/accounts.js'
import type { Actor } from './actor.js'
import { type ActionOptions, type ActionOutcome, recordAction } from './record-action.js'
import { withLockedUser } from './restrict-user.js'

/** Ends all sessions, tokens and live streams of a local account. The person can sign in again. */
export async function endSessionsAsModerator(
  services: Pick<Services, 'db' | 'requestContext' | 'log' | 'now'>,
  actor: Actor,
  guid: string,
  options: ActionOptions,
): Promise<ActionOutcome> {
  return withLockedUser(services, actor, { guid, ...options }, async ({ transaction, user, reason }) => {
    await endAllAccess(transaction, { userId: user.id, address: user.person.address })
    const action = await recordAction(services, transaction, actor, {
      kind: 'end_sessions',
      target: { type: 'person', guid, label: user.username },
      reason,
      caseId: options.caseId,
      undo: { possible: false },
    })
    return { changed: true, action }
  })
}
