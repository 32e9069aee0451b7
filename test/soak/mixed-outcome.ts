import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import type { LikeEntity } from '../../src/protocol/entities/relayables.js'
import type { Services } from '../../src/services/services.js'
import type { Follower } from '../support/http/event-stream.js'
import type { Burst, LocalPost } from './burst-messages.js'
import { wrongsOf } from './burst-outcome.js'
import type { UserActions } from './client-sessions.js'
import type { UserWithToken } from './mixed-load-pod.js'
import type { Requests } from './persistent-client.js'
import type { Talk } from './private-messages.js'

/** All messages and client requests that the pod has acknowledged. */
export interface Life {
  readonly bursts: readonly Burst[]
  readonly talks: readonly Talk[]
  readonly actions: UserActions
  readonly requests: Requests
}

/** All lost, doubled, miscounted or abandoned work, as sentences; `said` are the log lines at level warning and above. */
export async function wrongsOfLife(
  pod: Services,
  { bursts, talks, actions, requests }: Life,
  said: readonly Record<string, unknown>[],
): Promise<readonly string[]> {
  const own = await likesOf(pod, actions)
  const burst: Burst = {
    envelopes: [],
    posts: bursts.flatMap(({ posts }) => posts),
    reshares: bursts.flatMap(({ reshares }) => reshares),
    comments: [...bursts.flatMap(({ comments }) => comments), ...actions.comments.map(commentOf)],
    likes: [...bursts.flatMap(({ likes }) => likes), ...own.likes],
    broken: bursts.flatMap(({ broken }) => broken),
  }
  const privatePosts: LocalPost[] = talks.flatMap(({ posts }) => posts)
  const conversations = [
    ...talks.flatMap((talk) => talk.conversations.map(({ guid }) => guid)),
    ...actions.conversations,
  ]
  const messages = [...talks.flatMap((talk) => talk.messages.map(({ guid }) => guid)), ...actions.messages]
  const dead = await listDeadLetters(pod)
  const photos: readonly string[] = await pod.db('photos').whereNull('remotePath').pluck('guid')
  return [
    ...(await wrongsOf(pod, burst, [...actions.posts, ...privatePosts], said, { notifications: 'not looked at' })),
    ...own.wrongs,
    ...missing('conversations', conversations, await pod.db('conversations').pluck('guid')),
    // The API does not return the guid of the first message of a local conversation.
    ...missing('messages', messages, await pod.db('messages').pluck('guid'), actions.conversations.length),
    // An upload whose response was lost is repeated, and stored twice.
    ...missing('photos', actions.photos, photos, requests.askedAgain + requests.failed.length),
    ...dead.map(({ queue, name, fault }) => `a dead letter, ${name} of ${queue}: ${fault}`),
    ...said.filter(({ level }) => Number(level) >= ERROR).map((line) => `an error in the log: ${JSON.stringify(line)}`),
  ]
}

const ERROR = 50
const createdAt = new Date('2025-05-06T07:08:09Z')

function commentOf(deed: UserActions['comments'][number]): Burst['comments'][number] {
  return { ...deed, type: 'comment', text: '', created_at: createdAt }
}

/** The API does not return their guids. */
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
  return { likes, wrongs: missing('likes of people here', actions.likes.map(name), likes.map(name)) }
}

/** Each message of a friend is received once, also after a lost connection. */
export function wrongsHeard(
  { username, address }: UserWithToken,
  events: Follower['events'],
  talks: readonly Talk[],
): readonly string[] {
  const conversations = talks.flatMap((talk) => talk.conversations)
  const own = new Set(conversations.filter(({ localUser }) => localUser.address === address).map(({ guid }) => guid))
  const expected = talks.flatMap(({ messages }) => messages.filter((message) => own.has(message.conversation_guid)))
  const heard = events.filter(({ type }) => type === 'message').map(({ data }) => String(data.guid))
  const lost = expected.filter(({ guid }) => !heard.includes(guid)).length
  const gaps = events.filter(({ type }) => type === 'reset').length
  return [
    ...(lost > 0 ? [`${username} has not heard ${lost} of ${expected.length} messages`] : []),
    ...(new Set(heard).size < heard.length ? [`${username} has heard a message twice`] : []),
    ...(gaps > 0 ? [`the stream of ${username} has ${gaps} gaps`] : []),
  ]
}

const SHOWN = 5

function missing(what: string, expected: readonly string[], found: readonly string[], further = 0): readonly string[] {
  const there = new Set(found)
  const lost = expected.filter((name) => !there.has(name))
  const surplus = found.length - expected.length - further
  return [
    ...lost.slice(0, SHOWN).map((name) => `${what}: ${name} is lost`),
    ...(lost.length > SHOWN ? [`${what}: and ${lost.length - SHOWN} more are lost`] : []),
    ...(surplus > 0 ? [`${what}: ${surplus} too many`] : []),
  ]
}
