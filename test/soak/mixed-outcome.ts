import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import type { LikeEntity } from '../../src/protocol/entities/relayables.js'
import type { Services } from '../../src/services/services.js'
import type { Follower } from '../support/http/event-stream.js'
import type { Burst, LocalPost } from './burst-messages.js'
import { findViolations } from './burst-outcome.js'
import type { UserActions } from './client-sessions.js'
import type { UserWithToken } from './mixed-load-pod.js'
import type { Requests } from './persistent-client.js'
import type { PrivateMessages } from './private-messages.js'

/** All messages and client requests that the pod has acknowledged. */
export interface AcknowledgedWork {
  readonly bursts: readonly Burst[]
  readonly privateBatches: readonly PrivateMessages[]
  readonly actions: UserActions
  readonly requests: Requests
}

/** All lost, repeated, miscounted or abandoned work, as sentences. `logLines` are those at level warning and above. */
export async function findMixedViolations(
  pod: Services,
  { bursts, privateBatches, actions, requests }: AcknowledgedWork,
  logLines: readonly Record<string, unknown>[],
): Promise<readonly string[]> {
  const localLikes = await likesOf(pod, actions)
  const burst: Burst = {
    envelopes: [],
    posts: bursts.flatMap(({ posts }) => posts),
    reshares: bursts.flatMap(({ reshares }) => reshares),
    comments: [...bursts.flatMap(({ comments }) => comments), ...actions.comments.map(commentOf)],
    likes: [...bursts.flatMap(({ likes }) => likes), ...localLikes.likes],
    invalid: bursts.flatMap(({ invalid }) => invalid),
  }
  const privatePosts: LocalPost[] = privateBatches.flatMap(({ posts }) => posts)
  const conversations = [
    ...privateBatches.flatMap((batch) => batch.conversations.map(({ guid }) => guid)),
    ...actions.conversations,
  ]
  const messages = [...privateBatches.flatMap((batch) => batch.messages.map(({ guid }) => guid)), ...actions.messages]
  const dead = await listDeadLetters(pod)
  const photos: readonly string[] = await pod.db('photos').whereNull('remotePath').pluck('guid')
  return [
    ...(await findViolations(
      pod,
      { burst, localPosts: [...actions.posts, ...privatePosts], onlyBurstNotifications: true },
      logLines,
    )),
    ...localLikes.violations,
    ...missing('conversations', conversations, await pod.db('conversations').pluck('guid')),
    // The API does not return the guid of the first message of a local conversation.
    ...missing('messages', messages, await pod.db('messages').pluck('guid'), actions.conversations.length),
    // An upload whose response was lost is repeated, and stored twice.
    ...missing('photos', actions.photos, photos, requests.retried + requests.failed.length),
    ...dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`),
    ...logLines
      .filter(({ level }) => Number(level) >= ERROR)
      .map((line) => `an error in the log: ${JSON.stringify(line)}`),
  ]
}

const ERROR = 50
const createdAt = new Date('2025-05-06T07:08:09Z')

function commentOf(comment: UserActions['comments'][number]): Burst['comments'][number] {
  return { ...comment, type: 'comment', text: '', created_at: createdAt }
}

/** The likes of local users with their guids, which the API does not return. */
async function likesOf({ db }: Services, actions: UserActions) {
  const rows: readonly { guid: string; postGuid: string; author: string }[] = await db('likes')
    .join('posts', 'posts.id', 'likes.postId')
    .join('people', 'people.id', 'likes.authorId')
    .whereNull('people.podId')
    .select('likes.guid', { postGuid: 'posts.guid' }, { author: 'people.address' })
  const likes = rows.map(({ postGuid, ...row }): LikeEntity => {
    return { ...row, type: 'like', parent_guid: postGuid, parent_type: 'Post', positive: true }
  })
  const name = ({ author, parent_guid: guid }: UserActions['likes'][number]) => `${author} ${guid}`
  return { likes, violations: missing('likes of local users', actions.likes.map(name), likes.map(name)) }
}

/** Checks that a stream has each message of a friend once, also after a lost connection. */
export function findStreamViolations(
  { username, address }: UserWithToken,
  events: Follower['events'],
  privateBatches: readonly PrivateMessages[],
): readonly string[] {
  const conversations = privateBatches.flatMap((batch) => batch.conversations)
  const own = new Set(conversations.filter(({ localUser }) => localUser.address === address).map(({ guid }) => guid))
  const expected = privateBatches.flatMap(({ messages }) =>
    messages.filter((message) => own.has(message.conversation_guid)),
  )
  const received = events.filter(({ type }) => type === 'message').map(({ data }) => String(data.guid))
  const lost = expected.filter(({ guid }) => !received.includes(guid)).length
  const gaps = events.filter(({ type }) => type === 'reset').length
  return [
    ...(lost > 0 ? [`${username} has not received ${lost} of ${expected.length} messages`] : []),
    ...(new Set(received).size < received.length ? [`${username} has received a message twice`] : []),
    ...(gaps > 0 ? [`the stream of ${username} has ${gaps} gaps`] : []),
  ]
}

const MAX_LISTED = 5

function missing(
  subject: string,
  expected: readonly string[],
  found: readonly string[],
  further = 0,
): readonly string[] {
  const foundNames = new Set(found)
  const lost = expected.filter((name) => !foundNames.has(name))
  const surplus = found.length - expected.length - further
  return [
    ...lost.slice(0, MAX_LISTED).map((name) => `${subject}: ${name} is lost`),
    ...(lost.length > MAX_LISTED ? [`${subject}: and ${lost.length - MAX_LISTED} more are lost`] : []),
    ...(surplus > 0 ? [`${subject}: ${surplus} too many`] : []),
  ]
}
