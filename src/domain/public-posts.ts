import type { QueryBuilder } from 'objection'
import { SERVE_LIMITS } from '../limits.js'
import { Comment } from '../persistence/models/comment.js'
import { Person } from '../persistence/models/person.js'
import { Post } from '../persistence/models/post.js'
import type { Pod } from '../pod.js'
import { readLinks, readMentions } from '../protocol/mentions.js'

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
export function publicPostsOf(pod: Source, personId: number): Promise<readonly PublicPost[]> {
  const newest = Post.query(pod.db)
    .where({ authorId: personId, public: true })
    .orderBy([
      { column: 'createdAt', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(SERVE_LIMITS.postsOfPerson)
  return readPosts(pod, newest)
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

/** The oldest first, each with its author. */
export async function commentsUnder(pod: Source, post: Post): Promise<readonly Comment[]> {
  return Comment.query(pod.db)
    .where({ postId: post.id })
    .orderBy(['createdAt', 'id'])
    .limit(SERVE_LIMITS.commentsOnPage)
    .withGraphFetched('author')
}

/** Everybody and everything public that texts name and that is known here. */
export interface NamedInTexts {
  readonly people: ReadonlyMap<string, Person>
  /** Addresses of the authors, by guid of the post. */
  readonly posts: ReadonlyMap<string, string>
}

export async function namedIn(pod: Source, texts: readonly string[]): Promise<NamedInTexts> {
  const addresses = new Set(texts.flatMap(readMentions).map(({ address }) => address))
  const guids = new Set(texts.flatMap(readLinks).map(({ guid }) => guid))
  const people =
    addresses.size === 0 ? [] : await Person.byAddresses(pod.db, [...addresses].slice(0, SERVE_LIMITS.namesOnPage))
  const posts =
    guids.size === 0
      ? []
      : await Post.query(pod.db)
          .where({ 'posts.public': true })
          .whereIn('posts.guid', [...guids].slice(0, SERVE_LIMITS.namesOnPage))
          .withGraphFetched('author')
  return {
    people: new Map(people.map((person) => [person.address, person])),
    posts: new Map(posts.flatMap(({ guid, author }) => (author ? [[guid, author.address] as const] : []))),
  }
}
