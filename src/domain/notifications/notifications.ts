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
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

type NotificationRefusal = 'notification_not_found'

/** Something that happened and that somebody may want to know. Ids of rows that are really new. */
export interface NotificationCauses {
  /** Mentions in posts: ids of status messages. */
  readonly posts?: readonly number[]
  readonly comments?: readonly number[]
  readonly likes?: readonly number[]
  /** Ids of the reshares themselves. */
  readonly reshares?: readonly number[]
  readonly sharing?: readonly { readonly userId: number; readonly personId: number }[]
  /** Posts that were delivered to a person just now, not new themselves: a private post for the second reader. */
  readonly delivered?: readonly { readonly userId: number; readonly postId: number }[]
}

/**
 * Tells everybody here who is concerned, in the transaction of the causes, whoever they came from. Mentions, participations
 * and share visibilities of these rows have to be written by then. Returns the ids of what is new or was added to, which has to
 * be announced.
 */
export async function notifyAbout(
  transaction: Knex.Transaction,
  causes: NotificationCauses,
  now: Date,
): Promise<readonly number[]> {
  const { posts = [], comments = [], likes = [], reshares = [], sharing = [], delivered = [] } = causes
  const all = { posts, comments, likes, reshares, sharing, delivered }
  if (Object.values(all).every((rows) => rows.length === 0)) return []
  return insertCausedNotifications(transaction, all, now)
}

/** The viewer's own, the newest first, or the oldest first of those after a place. */
export function listNotifications(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  filter: NotificationFilter,
): Promise<Page<ListedNotification>> {
  return listNotificationsOfUser(pod.db, viewer.userId, filter)
}

/** The viewer's own, and as it is: to look for it does not make it read. */
export async function findNotification(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedNotification> {
  const notification = await findListedNotification(pod.db, viewer.userId, guid)
  if (notification !== undefined) return notification
  throw new Refusal<NotificationRefusal>('notification_not_found', 'This notification does not exist.')
}

/** Whoever opens one has read it. */
export function readNotification(pod: Pick<Pod, 'db'>, viewer: Viewer, guid: string): Promise<ListedNotification> {
  return setNotificationRead(pod, viewer, guid, { read: true })
}

/** Neither makes it any newer. */
export async function setNotificationRead(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  guid: string,
  { read }: { readonly read: boolean },
): Promise<ListedNotification> {
  const mark = () => (read ? Notification.markRead : Notification.markUnread)(pod.db, viewer.userId, guid)
  try {
    await mark()
  } catch (error) {
    // One about the same thing came in that very moment; now it is there to be seen, and goes on collecting.
    if (!isUniqueViolation(error, 'notifications_merging')) throw error
    await mark()
  }
  return findNotification(pod, viewer, guid)
}

/** All that the viewer has not read yet; returns how many. */
export async function markAllNotificationsRead(pod: Pick<Pod, 'db'>, viewer: Viewer): Promise<number> {
  return Notification.query(pod.db).where({ userId: viewer.userId, read: false }).patch({ read: true })
}
