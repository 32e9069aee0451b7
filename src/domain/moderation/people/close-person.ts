import type { Knex } from 'knex'
import { User } from '../../../persistence/models/user.js'
import {
  type ActionDetails,
  type BegunClosing,
  readActionDetails,
} from '../../../persistence/moderation/action-details.js'
import type { ActionRow } from '../../../persistence/moderation/actions.js'
import { countRelations } from '../../../persistence/moderation/person-relations.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import { requireNotPodmin } from '../../accounts/accounts.js'
import { beginClosing, cancelClosing, startDueClosing } from '../../accounts/closing/close-account.js'
import { closeNow } from '../../accounts/closing/close-now.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requireOtherAdmin, requirePower } from '../actor.js'
import type { LocalUser } from '../find-local-user.js'
import { type ActionOptions, type ActionOutcome, auditAction, insertAction } from '../record-action.js'
import { withLockedUser } from '../restrict-user.js'

export interface CloseOptions extends Omit<ActionOptions, 'until'> {
  /** The user name. */
  readonly confirm?: string | undefined
  /** Whether the account is closed without a grace period; for admins. */
  readonly immediately?: boolean | undefined
  /** Retract comments and posts before the account is closed. */
  readonly retractContent?: boolean | undefined
}

export interface CloseOutcome extends ActionOutcome {
  /** Null: the account is closed now. */
  readonly closeAt: Date | null
}

/** Closes a local account after the grace period. Its owner cannot prevent it; moderators can until then. */
export async function closePerson(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  { confirm, immediately = false, retractContent = false, ...options }: CloseOptions,
): Promise<CloseOutcome> {
  if (immediately) requirePower(actor, 'administration')
  return withLockedUser(services, actor, { guid, ...options }, async ({ transaction, user, reason, admins }) => {
    const before = closingOf(user)
    if (before?.closingBy === 'moderator' && !immediately) return { changed: false, closeAt: user.closeAt }
    requireOtherAdmin(admins, user.id)
    requireNotPodmin(services, user)
    await requireConfirmation(transaction, user, confirm)
    const days = immediately ? 0 : services.config.closeGraceDays
    const isClosedNow = immediately && !retractContent
    const closeAt = isClosedNow
      ? null
      : await beginClosing(services, transaction, user, { by: 'moderator', days, shouldRetractContent: retractContent })
    const newAction = await insertAction(services, transaction, actor, {
      kind: 'close',
      target: { type: 'person', guid, label: user.username },
      reason,
      caseId: options.caseId,
      undo: { possible: !immediately, ...(!immediately && closeAt !== null && { until: closeAt.toISOString() }) },
      before: { close_at: before?.closeAt ?? null },
      after: { close_at: closeAt?.toISOString() ?? null, retract_content: retractContent },
      details: { userId: user.id, before } satisfies ActionDetails['close'],
    })
    if (isClosedNow) await closeNow(services, transaction, user)
    else if (immediately) await startDueClosing(services, transaction, user.username)
    return { changed: true, closeAt, action: await auditAction(services, transaction, newAction) }
  })
}

/** Keeps the account, or leaves it to the closing that its owner has begun before. */
export async function undoClosing(
  services: Pick<Services, 'now'>,
  transaction: Knex.Transaction,
  action: ActionRow,
): Promise<void> {
  const { userId, before } = readActionDetails(action, 'close')
  await cancelClosing(services, transaction, userId, 'moderator').catch((error: unknown) => {
    throw error instanceof Refusal ? new Refusal('not_undoable', error.message) : error
  })
  if (before === null) return
  const { closeAt, closingBy, closingRetracts } = before
  await User.query(transaction)
    .findById(userId)
    .patch({ closeAt: new Date(closeAt), closingBy, closingRetracts })
}

function closingOf({ closeAt, closingBy, closingRetracts }: User): BegunClosing | null {
  if (closeAt === null || closingBy === null) return null
  return { closeAt: closeAt.toISOString(), closingBy, closingRetracts }
}

async function requireConfirmation(
  transaction: Knex.Transaction,
  { username, personId }: LocalUser,
  confirm: string | undefined,
): Promise<void> {
  if (confirm === username) return
  const preview = await countRelations(transaction, [personId])
  throw new Refusal('confirmation_needed', `Set confirm to ${username} to close the account.`, { details: { preview } })
}
