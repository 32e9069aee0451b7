import { listMessagesByIds, type MessageInConversation } from '../../persistence/conversations/list-conversations.js'
import { type AnnouncedCase, listAnnouncedCases } from '../../persistence/moderation/cases.js'
import type { Announcement, AnnouncementKind } from '../../persistence/notifications/announcements.js'
import { listAnnouncedPosts } from '../../persistence/notifications/list-announced-posts.js'
import { type ListedNotification, listNotificationsByIds } from '../../persistence/notifications/list-notifications.js'
import type { ListedPost } from '../../persistence/posts/list-posts.js'
import { mainStreamMembers } from '../../persistence/streams/main-stream-members.js'
import type { Pod } from '../../pod/pod.js'
import { roleAllowsScope, type Scope } from '../accounts/scopes.js'
import type { Viewer } from '../accounts/viewers.js'
import { mayShowPost } from '../posts/post-access.js'

/** A new notification, message or post in the form in which lists show it; or the state of a case, without its content. */
export type LiveEvent = { readonly id: number } & (
  | { readonly kind: 'notification'; readonly notification: ListedNotification }
  | { readonly kind: 'message'; readonly message: MessageInConversation }
  | { readonly kind: 'post'; readonly post: ListedPost }
  | { readonly kind: 'moderation_case'; readonly case: AnnouncedCase }
)

/** The scope that a token needs for each kind of announcement. */
export const SCOPE_OF_ANNOUNCEMENT_KIND: Readonly<Record<AnnouncementKind, Scope>> = {
  notification: 'notifications',
  message: 'conversations',
  post: 'public:read',
  moderation_case: 'moderation',
}

export interface EventRecipient {
  readonly viewer: Viewer
  /** Requested kinds. */
  readonly kinds: ReadonlySet<AnnouncementKind>
}

/** Maps each recipient to the announcements that concern them. Recipients without any are left out. */
export async function groupAnnouncementsByRecipient<Recipient extends EventRecipient>(
  pod: Pick<Pod, 'db'>,
  announcements: readonly Announcement[],
  recipients: readonly Recipient[],
): Promise<ReadonlyMap<Recipient, readonly Announcement[]>> {
  const ofUser = groupByKey(recipients.map((recipient) => [recipient.viewer.userId, recipient]))
  const readersOf = await findPostReaders(pod, announcements, recipients)
  const staff = [...new Set(recipients.filter(isCaseReader).map(({ viewer }) => viewer.userId))]
  const audience = new Map<Recipient, Announcement[]>()
  for (const announcement of announcements) {
    const users = announcement.kind === 'moderation_case' ? staff : recipientUserIds(announcement, readersOf)
    for (const recipient of users.flatMap((userId) => ofUser.get(userId) ?? [])) {
      if (!recipient.kinds.has(announcement.kind)) continue
      const announcementsOfRecipient = audience.get(recipient) ?? []
      audience.set(recipient, announcementsOfRecipient)
      announcementsOfRecipient.push(announcement)
    }
  }
  return audience
}

/** The role of a viewer is the one of the last check of the token. Reading the events checks it again. */
function isCaseReader({ viewer, kinds }: EventRecipient): boolean {
  return kinds.has('moderation_case') && mayReceive(viewer, 'moderation_case')
}

function mayReceive({ scopes, role }: Viewer, kind: AnnouncementKind): boolean {
  const scope = SCOPE_OF_ANNOUNCEMENT_KIND[kind]
  return scopes.has(scope) && roleAllowsScope(role ?? null, scope)
}

function recipientUserIds(
  { kind, subjectId, userId }: Announcement,
  readersOf: ReadonlyMap<number, readonly number[]>,
): readonly number[] {
  if (kind !== 'post') return userId === null ? [] : [userId]
  const readers = readersOf.get(subjectId) ?? []
  return userId === null ? readers : readers.filter((reader) => reader === userId)
}

/** The users in whose main stream each post is. */
async function findPostReaders(
  { db }: Pick<Pod, 'db'>,
  announcements: readonly Announcement[],
  recipients: readonly EventRecipient[],
): Promise<ReadonlyMap<number, readonly number[]>> {
  const postIds = subjectIdsOfKind('post', announcements)
  const readers = recipients.filter(({ kinds }) => kinds.has('post')).map(({ viewer }) => viewer.userId)
  if (postIds.length === 0 || readers.length === 0) return new Map()
  const members = await mainStreamMembers(db, { userIds: [...new Set(readers)], postIds })
  return groupByKey(members.map(({ postId, userId }) => [postId, userId]))
}

/** Reads the subjects of announcements for a viewer. Deleted subjects, and those that the token may not show, are left out. */
export async function findLiveEvents(
  { db }: Pick<Pod, 'db'>,
  viewer: Viewer,
  announcements: readonly Announcement[],
): Promise<readonly LiveEvent[]> {
  const allowed = announcements.filter(({ kind }) => mayReceive(viewer, kind))
  // One after the other, so that a listener uses no more than one of the connections that requests need.
  const notifications = await findSubjects(allowed, 'notification', (ids) =>
    listNotificationsByIds(db, viewer.userId, ids),
  )
  const messages = await findSubjects(allowed, 'message', (ids) => listMessagesByIds(db, viewer.personId, ids))
  const posts = await findSubjects(allowed, 'post', (ids) => listAnnouncedPosts(db, viewer, ids))
  const cases = await findSubjects(allowed, 'moderation_case', (ids) => listAnnouncedCases(db, ids, viewer.personId))
  return allowed.flatMap(({ id, kind, subjectId }): LiveEvent[] => {
    const [notification, message, post] = [notifications.get(subjectId), messages.get(subjectId), posts.get(subjectId)]
    if (kind === 'notification') return notification === undefined ? [] : [{ id, kind, notification }]
    if (kind === 'message') return message === undefined ? [] : [{ id, kind, message }]
    if (kind === 'moderation_case') {
      const announcedCase = cases.get(subjectId)
      return announcedCase === undefined ? [] : [{ id, kind, case: announcedCase }]
    }
    return post !== undefined && mayShowPost(viewer, post) ? [{ id, kind, post }] : []
  })
}

async function findSubjects<Row extends { readonly id: number }>(
  announcements: readonly Announcement[],
  kind: AnnouncementKind,
  find: (ids: readonly number[]) => Promise<readonly Row[]>,
): Promise<ReadonlyMap<number, Row>> {
  const ids = subjectIdsOfKind(kind, announcements)
  return ids.length === 0 ? new Map() : new Map((await find(ids)).map((row) => [row.id, row]))
}

function subjectIdsOfKind(kind: AnnouncementKind, announcements: readonly Announcement[]): readonly number[] {
  return [
    ...new Set(announcements.filter((announcement) => announcement.kind === kind).map(({ subjectId }) => subjectId)),
  ]
}

function groupByKey<Value>(pairs: readonly (readonly [number, Value])[]): ReadonlyMap<number, Value[]> {
  const groups = new Map<number, Value[]>()
  for (const [key, value] of pairs) {
    const group = groups.get(key) ?? []
    groups.set(key, group)
    group.push(value)
  }
  return groups
}
