import { addToAspect } from '../../../src/domain/contacts/contacts.js'
import { listNotifications } from '../../../src/domain/notifications/notifications.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Poll } from '../../../src/persistence/models/poll.js'
import { Post } from '../../../src/persistence/models/post.js'
import { User } from '../../../src/persistence/models/user.js'
import type { CompletePod, CompletePodUser } from './complete-pod.js'

/** Discovers each of these people on the pods of the others. */
export async function discoverEachOther(...people: readonly CompletePodUser[]): Promise<void> {
  for (const { pod, address } of people) {
    await Promise.all(people.flatMap((other) => (other.pod === pod ? [] : [other.pod.json('fetch', address)])))
  }
}

/** Adds the person to the first aspect. */
export async function shareWith(who: CompletePodUser, whom: Pick<CompletePodUser, 'guid'>): Promise<void> {
  await addToAspect(who.pod.open, who, { aspectId: await firstAspectOf(who), personGuid: whom.guid })
}

export async function firstAspectOf({ pod, userId }: CompletePodUser): Promise<number> {
  const { aspects = [] } = await User.query(pod.open.db).findById(userId).withGraphFetched('aspects').throwIfNotFound()
  const [first] = aspects.toSorted((one, other) => one.position - other.position)
  if (first === undefined) throw new Error('The user has no aspect.')
  return first.id
}

/** The user's notifications since the last call, in order: type and actors. */
export async function takeNotifications(who: CompletePodUser): Promise<readonly (readonly string[])[]> {
  const { open } = who.pod
  const { items: notifications } = await listNotifications(open, who, { onlyUnread: true, limit: 100 })
  await open.db('notifications').where({ userId: who.userId }).update({ read: true })
  return notifications.toReversed().map(({ type, actors }) => [type, ...actors.map(({ address }) => address)])
}

/** The person as known to a pod; undefined if unknown. */
export function personAt(pod: CompletePod, who: Pick<CompletePodUser, 'guid'>): Promise<Person | undefined> {
  return Person.query(pod.open.db).findOne({ guid: who.guid }).withGraphFetched('profile').execute()
}

/** The poll of a post as a pod stores it, with its answers. */
export async function pollOf(pod: CompletePod, { guid }: Pick<Post, 'guid'>): Promise<Poll> {
  const { id } = await Post.query(pod.open.db).findOne({ guid }).throwIfNotFound()
  return Poll.query(pod.open.db).findOne({ postId: id }).withGraphFetched('answers').throwIfNotFound()
}

/** The contact of the user with a person, on the user's pod. */
export async function contactOf(who: CompletePodUser, whom: Pick<CompletePodUser, 'guid'>) {
  const row = await who.pod.open
    .db('contacts')
    .join('people', 'people.id', 'contacts.personId')
    .where({ userId: who.userId, guid: whom.guid })
    .first('sharing', 'receiving')
  return { sharing: row?.sharing ?? false, receiving: row?.receiving ?? false }
}

/** A post with its interactions as a pod stores it, without ids, so that copies of two pods compare equal. */
export async function postAt(pod: CompletePod, guid: string) {
  const post = await Post.query(pod.open.db)
    .findOne({ guid })
    .withGraphFetched('[author, root, location, poll.answers, tags, mentionedPeople, reshares.author, likes.author]')
    .withGraphFetched('comments.[author, likes.author, mentionedPeople]')
  if (post === undefined) return undefined
  const { author, root, location, poll, tags = [], mentionedPeople, reshares, likes, comments = [] } = post
  return {
    type: post.type,
    public: post.public,
    text: post.text,
    createdAt: secondsOf(post.createdAt),
    author: author?.address,
    root: root?.guid,
    location: location?.address,
    poll: poll?.answers?.map(({ answer, voteCount }) => `${answer}: ${voteCount}`).toSorted(),
    tags: tags.map(({ name }) => name).toSorted(),
    mentioned: addressesOf(mentionedPeople?.map((person) => ({ author: person }))),
    counts: [post.commentsCount, post.likesCount, post.resharesCount],
    reshares: addressesOf(reshares),
    likes: addressesOf(likes),
    comments: comments
      .map((comment) => ({
        guid: comment.guid,
        text: comment.text,
        createdAt: secondsOf(comment.createdAt),
        author: comment.author?.address,
        likes: addressesOf(comment.likes),
        likesCount: comment.likesCount,
        mentioned: addressesOf(comment.mentionedPeople?.map((person) => ({ author: person }))),
      }))
      .toSorted((one, other) => (one.guid < other.guid ? -1 : 1)),
  }
}

function addressesOf(written: readonly { readonly author?: Person }[] = []): readonly (string | undefined)[] {
  return written.map(({ author }) => author?.address).toSorted()
}

/** Times are sent without milliseconds. */
function secondsOf(time: Date): number {
  return Math.floor(time.getTime() / 1_000)
}
