import type { ModerationServices } from '../../../services/services.js'
import { findTextFault } from '../../posts/texts.js'
import { Refusal } from '../../refusals.js'
import type { Actor } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import { sendNotice } from '../notices/send-notice.js'
import { type ActionOptions, type ActionOutcome, auditAction, insertAction } from '../record-action.js'
import { withLockedUser } from '../restrict-user.js'

export interface WarnOptions extends Omit<ActionOptions, 'until'> {
  /** The text for the person. */
  readonly text: string
}

/** Warns a local person, who sees the text after the next sign-in. */
export async function warnPerson(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  { text: written, ...options }: WarnOptions,
): Promise<ActionOutcome> {
  const text = written.trim()
  return withLockedUser(services, actor, { guid, ...options }, async ({ transaction, user, reason }) => {
    requireWarning(text)
    const newAction = await insertAction(services, transaction, actor, {
      kind: 'warn',
      target: { type: 'person', guid, label: user.username },
      reason,
      caseId: options.caseId,
      undo: { possible: false },
    })
    await sendNotice(services, transaction, { kind: 'warning', userId: user.id, actionId: newAction.id, text })
    return { changed: true, action: await auditAction(services, transaction, newAction) }
  })
}

function requireWarning(text: string): void {
  const max = MODERATION_LIMITS.reasonCharacters
  const fault = text === '' ? 'is empty' : findTextFault(text, max)
  if (fault !== undefined) throw new Refusal('text_invalid', `The text of a warning ${fault}.`)
}
