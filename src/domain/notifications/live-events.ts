import {
  type ConversationMessageWithGuid,
  listConversationMessagesByIds,
} from '../../persistence/conversations/list-conversations.js'
import { type LiveEventCase, listCasesOfLiveEvents } from '../../persistence/moderation/cases.js'
import { listPostsOfLiveEvents } from '../../persistence/notifications/list-live-event-posts.js'
import { type ListedNotification, listNotificationsByIds } from '../../persistence/notifications/list-notifications.js'
import type { LiveEventKind, LiveEventSource } from '../../persistence/notifications/live-event-sources.js'
import type { ListedPost } from '../../persistence/posts/list-posts.js'
import { findMainStreamMembers } from '../../persistence/streams/main-stream-members.js'
import type { Services } from '../../services/services.js'
import { roleAllowsScope, type Scope } from '../accounts/scopes.js'
import type { Viewer } from '../accounts/viewers.js'
import { mayShowPost } from '../posts/post-access.js'

/** A new notification, message or post in the form in which lists show it; or the state of a case, without its content. */
export type LiveEvent = { readonly id: number } & (
  | { readonly kind: 'notification'; readonly notification: ListedNotification }
  | { readonly kind: 'message'; readonly message: ConversationMessageWithGuid }
  | { readonly kind: 'post'; readonly post: ListedPost }
  | { readonly kind: 'moderation_case'; readonly case: LiveEventCase }
)

/** The scope that a token needs for each kind of live event. */
export const SCOPE_OF_LIVE_EVENT_KIND: Readonly<Record<LiveEventKind, Scope>> = {
  notification: 'notifications',
  message: 'conversations',
  post: 'public:read',
  moderation_case: 'moderation',
}

export interface EventRecipient {
  readonly viewer: Viewer
  /** Requested kinds. */
  readonly kinds: ReadonlySet<LiveEventKind>
}

/** Maps each recipient to the live events that concern them. Recipients without any are left out. */
export async function groupLiveEventsByRecipient<Recipient extends EventRecipient>(
  services: Pick<Services, 'db'>,
  sources: readonly LiveEventSource[],
  recipients: readonly Recipient[],
): Promise<ReadonlyMap<Recipient, readonly LiveEventSource[]>> {
  const recipientsByUser = groupByKey(recipients.map((recipient) => [recipient.viewer.userId, recipient]))
  const readersOf = await findPostReaders(services, sources, recipients)
  const staff = [...new Set(recipients.filter(isCaseReader).map(({ viewer }) => viewer.userId))]
  const sourcesByRecipient = new Map<Recipient, LiveEventSource[]>()
  for (const source of sources) {
    const users = source.kind === 'moderation_case' ? staff : recipientUserIds(source, readersOf)
    for (const recipient of users.flatMap((userId) => recipientsByUser.get(userId) ?? [])) {
      if (!recipient.kinds.has(source.kind)) continue
      const sourcesOfRecipient = sourcesByRecipient.get(recipient) ?? []
      sourcesByRecipient.set(recipient, sourcesOfRecipient)
      sourcesOfRecipient.push(source)
    }
  }
  return sourcesByRecipient
}

/** The role of a viewer is the one of the last check of the token. Reading the events checks it again. */
function isCaseReader({ viewer, kinds }: EventRecipient): boolean {
  return kinds.has('moderation_case') && mayReceive(viewer, 'moderation_case')
}

function mayReceive({ scopes, role }: Viewer, kind: LiveEventKind): boolean {
  const scope = SCOPE_OF_LIVE_EVENT_KIND[kind]
  return scopes.has(scope) && roleAllowsScope(role ?? null, scope)
}

function recipientUserIds(
  { kind, subjectId, userId }: LiveEventSource,
  readersOf: ReadonlyMap<number, readonly number[]>,
): readonly number[] {
  if (kind !== 'post') return userId === null ? [] : [userId]
  const readers = readersOf.get(subjectId) ?? []
  return userId === null ? readers : readers.filter((reader) => reader === userId)
}

/** The users in whose main stream each post is. */
async function findPostReaders(
  { db }: Pick<Services, 'db'>,
  sources: readonly LiveEventSource[],
  recipients: readonly EventRecipient[],
): Promise<ReadonlyMap<number, readonly number[]>> {
  const postIds = subjectIdsOfKind('post', sources)
  const readers = recipients.filter(({ kinds }) => kinds.has('post')).map(({ viewer }) => viewer.userId)
  if (postIds.length === 0 || readers.length === 0) return new Map()
  const members = await findMainStreamMembers(db, { userIds: [...new Set(readers)], postIds })
  return groupByKey(members.map(({ postId, userId }) => [postId, userId]))
}

/** Reads the subjects of live events for a viewer. Deleted subjects, and those that the token may not show, are left out. */
export async function findLiveEvents(
  { db }: Pick<Services, 'db'>,
  viewer: Viewer,
  sources: readonly LiveEventSource[],
): Promise<readonly LiveEvent[]> {
  const allowedSources = sources.filter(({ kind }) => mayReceive(viewer, kind))
  // One after the other, so that a listener uses no more than one of the connections that requests need.
  const notifications = await findSubjects(allowedSources, 'notification', (ids) =>
    listNotificationsByIds(db, viewer.userId, ids),
  )
  const messages = await findSubjects(allowedSources, 'message', (ids) =>
    listConversationMessagesByIds(db, viewer.personId, ids),
  )
  const posts = await findSubjects(allowedSources, 'post', (ids) => listPostsOfLiveEvents(db, viewer, ids))
  const cases = await findSubjects(allowedSources, 'moderation_case', (ids) =>
    listCasesOfLiveEvents(db, ids, viewer.personId),
  )
  return allowedSources.flatMap(({ id, kind, subjectId }): LiveEvent[] => {
    const [notification, message, post] = [notifications.get(subjectId), messages.get(subjectId), posts.get(subjectId)]
    if (kind === 'notification') return notification === undefined ? [] : [{ id, kind, notification }]
    if (kind === 'message') return message === undefined ? [] : [{ id, kind, message }]
    if (kind === 'moderation_case') {
      const liveEventCase = cases.get(subjectId)
      return liveEventCase === undefined ? [] : [{ id, kind, case: liveEventCase }]
    }
    return post !== undefined && mayShowPost(viewer, post) ? [{ id, kind, post }] : []
  })
}

async function findSubjects<Row extends { readonly id: number }>(
  sources: readonly LiveEventSource[],
  kind: LiveEventKind,
  find: (ids: readonly number[]) => Promise<readonly Row[]>,
): Promise<ReadonlyMap<number, Row>> {
  const ids = subjectIdsOfKind(kind, sources)
  return ids.length === 0 ? new Map() : new Map((await find(ids)).map((row) => [row.id, row]))
}

function subjectIdsOfKind(kind: LiveEventKind, sources: readonly LiveEventSource[]): readonly number[] {
  return [...new Set(sources.filter((source) => source.kind === kind).map(({ subjectId }) => subjectId))]
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
