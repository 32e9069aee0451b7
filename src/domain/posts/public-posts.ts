import { type QueryBuilder, raw } from 'objection'
import { Comment } from '../../persistence/models/comment.js'
import { Person } from '../../persistence/models/person.js'
import { Post } from '../../persistence/models/post.js'
import { isRestricted } from '../../persistence/people/restricted-people.js'
import { isAuthorUnblocked } from '../../persistence/posts/visibility.js'
import type { Pod } from '../../pod/pod.js'
import { PUBLIC_POST_LIMITS } from './limits.js'

type Source = Pick<Pod, 'db'>

/** A public post with its photos, poll, location and mentions. */
export interface PublicPost {
  readonly post: Post
  readonly author: Person
  /** The status message at the end of a chain of reshares; undefined also if it was deleted. */
  readonly root: PublicPost | undefined
}

/** Undefined: the post is unknown or not public. */
export async function findPublicPost(pod: Source, guid: string): Promise<PublicPost | undefined> {
  const [post] = await readPosts(
    pod,
    Post.query(pod.db).where({ guid, public: true }).whereRaw(isAuthorUnblocked('posts.author_id')),
  )
  return post
}

/** Lists public posts of a person, newest first. */
export function listPublicPosts(pod: Source, personId: number, before?: Date): Promise<readonly PublicPost[]> {
  const newest = orderByTime(queryPublicPosts(pod, personId), 'desc').limit(PUBLIC_POST_LIMITS.postsOfPerson)
  return readPosts(pod, before === undefined ? newest : newest.where('createdAt', '<', before))
}

/** The position of a page: before or after this item, which may have been deleted. */
export interface PagePosition {
  readonly side: 'before' | 'after'
  readonly time: Date
  readonly id: number
}

/** A page of a list ordered by time. */
export interface ListPage<Item> {
  readonly items: readonly Item[]
  readonly hasOlder: boolean
  readonly hasNewer: boolean
}

/**
 * Finds a page of a person's public posts, newest first, without texts. Guids and counters are enough for an ETag: they differ when
 * a post is added, deleted or answered.
 */
export async function findPublicPostPage(
  pod: Source,
  personId: number,
  position?: PagePosition,
): Promise<ListPage<Post>> {
  const posts = () =>
    queryPublicPosts(pod, personId).select('id', 'guid', 'createdAt', 'commentsCount', 'likesCount', 'resharesCount')
  return readPage(posts, { position, first: 'newest', limit: PUBLIC_POST_LIMITS.postsOfPerson })
}

/**
 * Finds a page of the public posts with a tag, newest first. The scan of the index `taggings_of_tag` ends with the page, whatever the
 * number of posts.
 */
export async function findTagPostPage(pod: Source, tag: string, position?: PagePosition): Promise<ListPage<Post>> {
  const tagged = raw(
    `(select taggings.post_id as id, taggings.created_at from taggings
      where taggings.tag_id = (select tags.id from tags where tags.name = ?) and taggings.post_id is not null
        and exists (
          select from posts where posts.id = taggings.post_id and posts.public and ${AUTHOR_IS_UNRESTRICTED}
        )) as posts`,
    [tag],
  )
  const posts = () => Post.query(pod.db).from(tagged).select('id', 'createdAt')
  return readPage(posts, { position, first: 'newest', limit: PUBLIC_POST_LIMITS.postsOnListPage })
}

/** Finds a page of all public posts that this pod has, newest first. Index `posts_newest`. */
export async function findPublicStreamPage(pod: Source, position?: PagePosition): Promise<ListPage<Post>> {
  const posts = () =>
    Post.query(pod.db).select('id', 'createdAt').where({ public: true }).whereRaw(AUTHOR_IS_UNRESTRICTED)
  return readPage(posts, { position, first: 'newest', limit: PUBLIC_POST_LIMITS.postsOnListPage })
}

const AUTHOR_IS_UNRESTRICTED = `not ${isRestricted('posts.author_id')}`

/** Reads the complete posts of a page, in its order. Posts that were deleted meanwhile are left out. */
export async function readPublicPosts(pod: Source, page: ListPage<Post>): Promise<readonly PublicPost[]> {
  const ids = page.items.map(({ id }) => id)
  return ids.length === 0 ? [] : readPosts(pod, orderByTime(Post.query(pod.db).whereIn('id', ids), 'desc'))
}

function queryPublicPosts(pod: Source, personId: number): QueryBuilder<Post> {
  return Post.query(pod.db).where({ authorId: personId, public: true })
}

type PostOrComment = Post | Comment

function orderByTime<Item extends PostOrComment>(query: QueryBuilder<Item>, order: 'asc' | 'desc'): QueryBuilder<Item> {
  return query.orderBy([
    { column: 'createdAt', order },
    { column: 'id', order },
  ])
}

/** Reads a page with two statements at most: the page with one row more, and one row in the other direction. */
async function readPage<Item extends PostOrComment>(
  list: () => QueryBuilder<Item>,
  {
    position,
    first,
    limit,
  }: {
    readonly position: PagePosition | undefined
    /** The page without a position, and the order within each page. */
    readonly first: 'newest' | 'oldest'
    readonly limit: number
  },
): Promise<ListPage<Item>> {
  const isTowardsOlder = position === undefined ? first === 'newest' : position.side === 'before'
  const query = orderByTime(list(), isTowardsOlder ? 'desc' : 'asc').limit(limit + 1)
  const posts = await (position === undefined ? query : limitToSide(query, position))
  const items = posts.slice(0, limit)
  const hasMore = posts.length > limit
  const hasEarlier = position !== undefined && (await hasItemsOnOtherSide(list, items[0], isTowardsOlder))
  const isReversed = isTowardsOlder !== (first === 'newest')
  return {
    items: isReversed ? items.reverse() : items,
    hasOlder: isTowardsOlder ? hasMore : hasEarlier,
    hasNewer: isTowardsOlder ? hasEarlier : hasMore,
  }
}

async function hasItemsOnOtherSide<Item extends PostOrComment>(
  list: () => QueryBuilder<Item>,
  item: Item | undefined,
  isTowardsOlder: boolean,
): Promise<boolean> {
  if (item === undefined) return false
  const position = { side: isTowardsOlder ? 'after' : 'before', time: item.createdAt, id: item.id } as const
  const ids = list().clearSelect().clearWithGraph().select('id')
  return (await limitToSide(ids, position).limit(1)).length > 0
}

function limitToSide<Item extends PostOrComment>(
  query: QueryBuilder<Item>,
  { side, time, id }: PagePosition,
): QueryBuilder<Item> {
  return query.whereRaw(`(created_at, id) ${side === 'before' ? '<' : '>'} (?, ?)`, [time, id])
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
  const root = await Post.findRoot(pod.db, post)
  return root && findPublicPost(pod, root.guid)
}

/**
 * Finds a page of comments, oldest first, with authors and the beginning of each text. One character more than is displayed is read,
 * so that the page can mark a cut. Fifty complete comments can take 13 MB.
 */
export async function findCommentPage(pod: Source, post: Post, position?: PagePosition): Promise<ListPage<Comment>> {
  const comments = () =>
    Comment.query(pod.db)
      .select('id', 'guid', 'authorId', 'createdAt')
      .select(raw('left(text, ?)', [PUBLIC_POST_LIMITS.excerptCharacters + 1]).as('text'))
      .where({ postId: post.id, hidden: false })
      .whereRaw(isAuthorUnblocked('comments.author_id'))
      .withGraphFetched('author')
  return readPage(comments, { position, first: 'oldest', limit: PUBLIC_POST_LIMITS.commentsOnPage })
}

/** Finds the position of the page that begins with this comment. Undefined: the post has no such comment. */
export async function findCommentPosition(
  pod: Source,
  post: Pick<Post, 'id'>,
  guid: string,
): Promise<PagePosition | undefined> {
  const comment = await Comment.query(pod.db)
    .select('id', 'createdAt')
    .findOne({ postId: post.id, guid, hidden: false })
    .whereRaw(isAuthorUnblocked('comments.author_id'))
  return comment && { side: 'after', time: comment.createdAt, id: comment.id - 1 }
}

interface KnownNames {
  readonly people: ReadonlyMap<string, Person>
  /** Addresses of the authors, by guid of the post. */
  readonly posts: ReadonlyMap<string, string>
}

/** Finds the known people and public posts among addresses and guids. */
export async function findKnownNames(
  pod: Source,
  { addresses, guids }: { readonly addresses: readonly string[]; readonly guids: readonly string[] },
): Promise<KnownNames> {
  const [people, posts] = await Promise.all([
    addresses.length === 0 ? [] : Person.byAddresses(pod.db, addresses.slice(0, PUBLIC_POST_LIMITS.namesOnPage)),
    guids.length === 0
      ? []
      : Post.query(pod.db)
          .where({ 'posts.public': true })
          .whereIn('posts.guid', guids.slice(0, PUBLIC_POST_LIMITS.namesOnPage))
          .withGraphFetched('author'),
  ])
  return {
    people: new Map(people.map((person) => [person.address, person])),
    posts: new Map(posts.flatMap(({ guid, author }) => (author ? [[guid, author.address] as const] : []))),
  }
}
