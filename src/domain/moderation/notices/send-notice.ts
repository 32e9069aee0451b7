import type { Knex } from 'knex'
import type { Translate } from '../../../languages/translate.js'
import { User } from '../../../persistence/models/user.js'
import { insertNotice, type UserNotice } from '../../../persistence/moderation/user-notices.js'
import type { Services } from '../../../services/services.js'
import { beginConversation } from '../../conversations/begin-conversation.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'

export type NoticeDependencies = Pick<Services, 'config' | 'jobs' | 'locales' | 'now'>

interface NewNotice {
  readonly kind: Exclude<UserNotice['kind'], 'contacts_lost'>
  readonly userId: number
  readonly actionId: number
  /** The text of a warning. */
  readonly text?: string
  readonly target?: { readonly type: string; readonly guid: string }
}

/**
 * Stores a notice for a local user, sends a mail without its text, and begins a conversation from the podmin account if there is one, in
 * the language of the user. Names no moderator.
 */
export async function sendNotice(
  services: NoticeDependencies,
  transaction: Knex.Transaction,
  { kind, userId, actionId, text = '', target }: NewNotice,
): Promise<void> {
  const createdAt = services.now()
  const ofTarget = { targetType: target?.type ?? null, targetGuid: target?.guid ?? null }
  await insertNotice(transaction, { kind, userId, actionId, text, ...ofTarget, createdAt })
  await enqueueAccountMail(services, transaction, 'moderation_notice', userId)
  const podmin = await findPodmin(services, transaction)
  if (podmin?.person === undefined || podmin.id === userId) return
  const user = await User.query(transaction).findById(userId).withGraphFetched('person').throwIfNotFound()
  if (user.person === undefined) return
  const t = services.locales.translator(user.language)
  const sentence = noticeSentence(t, { kind, targetType: target?.type })
  await beginConversation(services, transaction, podmin.person, {
    recipients: [user.person],
    subject: t('mail.moderation_notice.subject', { pod: services.config.host }),
    createdAt,
    text: text === '' ? sentence : `${sentence}\n\n${text}`,
  })
}

/** The account of the podmin, if it is open. */
export async function findPodmin(
  { config }: Pick<Services, 'config'>,
  transaction: Knex.Transaction,
): Promise<User | undefined> {
  if (config.podminAccount === undefined) return undefined
  const podmin = await User.byUsername(transaction, config.podminAccount)
  const isOpen = podmin !== undefined && podmin.closedAt === null && podmin.lockedAt === null && podmin.closeAt === null
  return isOpen ? podmin : undefined
}

/** The notice in words, for people and for clients that do not know the kind. */
export function noticeSentence(
  t: Translate,
  { kind, targetType }: { readonly kind: UserNotice['kind']; readonly targetType?: string | null | undefined },
): string {
  if (kind === 'warning' || kind === 'contacts_lost') return t(`notices.${kind}`)
  const target = targetType === 'post' || targetType === 'comment' ? targetType : 'content'
  return t(`notices.${target}_${kind === 'content_hidden' ? 'hidden' : 'removed'}`)
}
