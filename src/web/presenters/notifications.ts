import type { Static } from 'typebox'
import type { NotificationType } from '../../persistence/models/notification.js'
import type { ListedNotification } from '../../persistence/notifications/list-notifications.js'
import type { DialectContext } from '../api/dialect.js'
import { COMMENTED_IN_DIASPORA, type Notification, type NotificationTypeName } from '../schemas/notifications.js'
import { presentPersonSummary } from './people.js'

export function presentNotification(
  { guid, type, read, createdAt, target, actors }: ListedNotification,
  { addresses, dialect }: DialectContext,
): Static<typeof Notification> {
  const fields: Static<typeof Notification> = {
    guid,
    type: type === 'commented_on_post' && dialect === 'diaspora' ? COMMENTED_IN_DIASPORA : type,
    read,
    created_at: createdAt.toISOString(),
    event_creators: actors.map((person) => presentPersonSummary(person, addresses)),
  }
  if (target) fields.target = { guid: target.guid, author: presentPersonSummary(target.author, addresses) }
  return fields
}

export function readNotificationType(name: Static<typeof NotificationTypeName>): NotificationType {
  return name === COMMENTED_IN_DIASPORA ? 'commented_on_post' : name
}
