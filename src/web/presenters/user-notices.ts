import { noticeSentence } from '../../domain/moderation/notices/send-notice.js'
import type { UserNotice } from '../../persistence/moderation/user-notices.js'

export function presentUserNotice({ id, kind, text, targetType, targetGuid, ...notice }: UserNotice) {
  const target = targetType === null || targetGuid === null ? undefined : { type: targetType, guid: targetGuid }
  return {
    id,
    kind,
    title: noticeSentence(kind, target),
    text,
    target: target ?? null,
    contacts_lost: notice.lostContacts,
    created_at: notice.createdAt.toISOString(),
    confirmed_at: notice.confirmedAt?.toISOString() ?? null,
  }
}
