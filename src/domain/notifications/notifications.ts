import type { Knex } from 'knex'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { Notification } from '../../persistence/models/notification.js'
import { insertCausedNotifications } from '../../persistence/notifications/insert-notifications.js'
import {
  findListedNotification,
  type ListedNotification,
  listNotificationsOfUser,
  type NotificationFilter,
} from '../../persistence/notifications/list-notifications.js'
import type { Page } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

/** New rows that cause notifications, by their ids. */
export interface NotificationCauses {
  /** Mentions in posts: ids of status messages. */
  readonly posts?: readonly number[]
  readonly comments?: readonly number[]
  readonly likes?: readonly number[]
  /** Ids of the reshares themselves. */
  readonly reshares?: readonly number[]
  readonly sharing?: readonly { readonly userId: number; readonly personId: number }[]
  /** Private posts that became visible to one more local user. The posts may have been stored before. */
  readonly newlyVisiblePosts?: readonly { readonly userId: number; readonly postId: number }[]
  /** Moves the posts of the comments forward in the activity streams of those involved, with the same statement. */
  readonly shouldMoveActivity?: boolean
}

/**
 * Notifies local users about new rows, in the transaction of these rows. Their mentions, participations and visibilities must be
 * written before. Returns the ids of new and extended notifications; the caller enqueues their live events.
 */
export async function notifyAbout(
  transaction: Knex.Transaction,
  causes: NotificationCauses,
  now: Date,
): Promise<readonly number[]> {
  const {
    posts = [],
    comments = [],
    likes = [],
    reshares = [],
    sharing = [],
    newlyVisiblePosts = [],
    shouldMoveActivity = false,
  } = causes
  const all = { posts, comments, likes, reshares, sharing, newlyVisiblePosts }
  if (Object.values(all).every((rows) => rows.length === 0)) return []
  return insertCausedNotifications(transaction, { ...all, shouldMoveActivity }, now)
}

/** Lists the viewer's notifications, newest first; oldest first for a page after a position. */
export function listNotifications(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  filter: NotificationFilter,
): Promise<Page<ListedNotification>> {
  return listNotificationsOfUser(services.db, viewer.userId, filter)
}

/** Returns a notification of the viewer without marking it as read. */
export async function getNotification(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedNotification> {
  const notification = await findListedNotification(services.db, viewer.userId, guid)
  if (notification !== undefined) return notification
  throw new Refusal('notification_not_found', 'This notification does not exist.')
}

/** Marks a notification as read and returns it. */
export function markNotificationRead(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedNotification> {
  return setNotificationRead(services, viewer, guid, { read: true })
}

/** Marks a notification as read or unread. The time of its last change stays. */
export async function setNotificationRead(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
  { read }: { readonly read: boolean },
): Promise<ListedNotification> {
  const mark = () => (read ? Notification.markRead : Notification.markUnread)(services.db, viewer.userId, guid)
  try {
    await mark()
  } catch (error) {
    // A notification about the same target was inserted at the same moment. A second try sees it and leaves merging to it.
    if (!isUniqueViolation(error, 'notifications_merging')) throw error
    await mark()
  }
  return getNotification(services, viewer, guid)
}

/** Marks all unread notifications of the viewer as read; returns how many. */
export async function markAllNotificationsRead(services: Pick<Services, 'db'>, viewer: Viewer): Promise<number> {
  return Notification.query(services.db).where({ userId: viewer.userId, read: false }).patch({ read: true })
}
