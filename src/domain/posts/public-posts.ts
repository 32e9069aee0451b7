import { type QueryBuilder, raw } from 'objection'
import { SERVE_LIMITS } from '../../limits.js'
import { Comment } from '../../persistence/models/comment.js'
import { Person } from '../../persistence/models/person.js'
import { Post } from '../../persistence/models/post.js'
import type { Pod } from '../../pod/pod.js'

type Source = Pick<Pod, 'db'>

/** A post that everybody may see, with all its parts. */
export interface PublicPost {
  readonly post: Post
  readonly author: Person
  /** What a reshare shows in the end, which is not another reshare; undefined also where that is gone. */
  readonly root: PublicPost | undefined
}

/** Undefined: it is not here, or not for everybody. */
export async function findPublicPost(pod: Source, guid: string): Promise<PublicPost | undefined> {
  const [post] = await readPosts(pod, Post.query(pod.db).where({ guid, public: true }))
  return post
}

/** The newest first. */
export function publicPostsOf(pod: Source, personId: number, before?: Date): Promise<readonly PublicPost[]> {
  const newest = newestPublic(pod, personId)
  return readPosts(pod, before === undefined ? newest : newest.where('createdAt', '<', before))
}

/** Guids and counters of the same posts, without their texts: differs when one of them is added, removed or answered. */
export async function publicPostVersions(pod: Source, personId: number): Promise<readonly object[]> {
  return newestPublic(pod, personId).select('guid', 'commentsCount', 'likesCount', 'resharesCount')
}

function newestPublic(pod: Source, personId: number): QueryBuilder<Post> {
  return Post.query(pod.db)
    .where({ authorId: personId, public: true })
    .orderBy([
      { column: 'createdAt', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(SERVE_LIMITS.postsOfPerson)
}

async function readPosts(pod: Source, which: QueryBuilder<Post>): Promise<readonly PublicPost[]> {
  const posts = await which
    .withGraphFetched('[author.profile, photos, location, poll.answers, mentionedPeople]')
    .modifyGraph('photos', (photos) => photos.orderBy(['position', 'id']))
    .modifyGraph('poll.answers', (answers) => answers.orderBy('position'))
  const read: PublicPost[] = []
  for (const post of posts) {
    const { author } = post
    if (author !== undefined) read.push({ post, author, root: await findRoot(pod, post) })
  }
  return read
}

async function findRoot(pod: Source, post: Post): Promise<PublicPost | undefined> {
  if (post.type !== 'Reshare') return undefined
  const root = await Post.rootOf(pod.db, post)
  return root && findPublicPost(pod, root.guid)
}

/**
 * The comments of a page, the oldest first, each with its author and the beginning of its text: one character more than is
 * shown, so that the page can say that there is more. Fifty whole comments would be 13 MB.
 */
export async function commentsUnder(pod: Source, post: Post): Promise<readonly Comment[]> {
  return Comment.query(pod.db)
    .select('id', 'guid', 'authorId', 'createdAt')
    .select(raw('left(text, ?)', [SERVE_LIMITS.excerptCharacters + 1]).as('text'))
    .where({ postId: post.id })
    .orderBy(['createdAt', 'id'])
    .limit(SERVE_LIMITS.commentsOnPage)
    .withGraphFetched('author')
}

interface KnownNames {
  readonly people: ReadonlyMap<string, Person>
  /** Addresses of the authors, by guid of the post. */
  readonly posts: ReadonlyMap<string, string>
}

/** The people and public posts among these that are known here. */
export async function lookUpNames(
  pod: Source,
  { addresses, guids }: { readonly addresses: readonly string[]; readonly guids: readonly string[] },
): Promise<KnownNames> {
  const [people, posts] = await Promise.all([
    addresses.length === 0 ? [] : Person.byAddresses(pod.db, addresses.slice(0, SERVE_LIMITS.namesOnPage)),
    guids.length === 0
      ? []
      : Post.query(pod.db)
          .where({ 'posts.public': true })
          .whereIn('posts.guid', guids.slice(0, SERVE_LIMITS.namesOnPage))
          .withGraphFetched('author'),
  ])
  return {
    people: new Map(people.map((person) => [person.address, person])),
    posts: new Map(posts.flatMap(({ guid, author }) => (author ? [[guid, author.address] as const] : []))),
  }
}
