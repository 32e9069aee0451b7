import { noticeSentence } from '../../domain/moderation/notices/send-notice.js'
import { inEnglish } from '../../languages/locales.js'
import type { UserNotice } from '../../persistence/moderation/user-notices.js'

export function presentUserNotice({ id, kind, text, targetType, targetGuid, ...notice }: UserNotice) {
  const target = targetType === null || targetGuid === null ? undefined : { type: targetType, guid: targetGuid }
  return {
    id,
    kind,
    title: noticeSentence(inEnglish, { kind, targetType }),
    text,
    target: target ?? null,
    contacts_lost: notice.lostContacts,
    created_at: notice.createdAt.toISOString(),
    confirmed_at: notice.confirmedAt?.toISOString() ?? null,
  }
}
