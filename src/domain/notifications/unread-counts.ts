import { countUnreadItems, type UnreadCounts } from '../../persistence/notifications/unread-counts.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'

/** Numbers of unread items of the viewer; undefined if the token may not read the items. */
export type ShownUnreadCounts = { readonly [Name in keyof UnreadCounts]: number | undefined }

const NOTHING: ShownUnreadCounts = { notifications: undefined, conversations: undefined, messages: undefined }

export async function countUnread(services: Pick<Services, 'db'>, viewer: Viewer): Promise<ShownUnreadCounts> {
  const { scopes } = viewer
  const [maySeeNotifications, maySeeConversations] = [scopes.has('notifications'), scopes.has('conversations')]
  if (!maySeeNotifications && !maySeeConversations) return NOTHING
  const { notifications, conversations, messages } = await countUnreadItems(services.db, viewer)
  return {
    notifications: maySeeNotifications ? notifications : undefined,
    conversations: maySeeConversations ? conversations : undefined,
    messages: maySeeConversations ? messages : undefined,
  }
}
