import { type UnreadCounts, unreadCounts } from '../../persistence/notifications/unread-counts.js'
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'

/** What the viewer has not read; undefined where the token may not read the thing itself. */
export type ShownUnreadCounts = { readonly [Name in keyof UnreadCounts]: number | undefined }

const NOTHING: ShownUnreadCounts = { notifications: undefined, conversations: undefined, messages: undefined }

export async function countUnread(pod: Pick<Pod, 'db'>, viewer: Viewer): Promise<ShownUnreadCounts> {
  const { scopes } = viewer
  const [maySeeNotifications, maySeeConversations] = [scopes.has('notifications'), scopes.has('conversations')]
  if (!maySeeNotifications && !maySeeConversations) return NOTHING
  const { notifications, conversations, messages } = await unreadCounts(pod.db, viewer)
  return {
    notifications: maySeeNotifications ? notifications : undefined,
    conversations: maySeeConversations ? conversations : undefined,
    messages: maySeeConversations ? messages : undefined,
  }
}
