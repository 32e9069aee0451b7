import type { Knex } from 'knex'
import { type QueryBuilder, raw } from 'objection'
import { Comment } from '../models/comment.js'
import { Person } from '../models/person.js'
import { Post } from '../models/post.js'
import { findNewestAddresses } from '../people/moved-people.js'
import { isRestrictedSql } from '../people/restricted-people.js'
import type { ListPage } from '../sql/id-page.js'
import { PUBLIC_POST_LIMITS } from './limits.js'
import { isAuthorUnblockedSql } from './visibility.js'

/** A public post with its photos, poll, location and mentions. */
export interface PublicPost {
  readonly post: Post
  readonly author: Person
  /** The status message at the end of a chain of reshares; undefined if there is none or it was deleted. */
  readonly root: PublicPost | undefined
}

/** Undefined: the post is unknown or not public. */
export async function findPublicPost(db: Knex, guid: string): Promise<PublicPost | undefined> {
  const [post] = await readPosts(
    db,
    Post.query(db).where({ guid, public: true }).whereRaw(isAuthorUnblockedSql('posts.author_id')),
  )
  return post
}

/** Lists public posts of a person, newest first. */
export function listPublicPosts(db: Knex, personId: number, before?: Date): Promise<readonly PublicPost[]> {
  const newest = orderByTime(queryPublicPosts(db, personId), 'desc').limit(PUBLIC_POST_LIMITS.postsOfPerson)
  return readPosts(db, before === undefined ? newest : newest.where('createdAt', '<', before))
}

/** The position of a page: before or after this item, which may have been deleted, or from it on. */
export interface PagePosition {
  readonly side: 'before' | 'after' | 'from'
  readonly time: Date
  readonly id: number
}

/**
 * Finds a page of a person's public posts, newest first, without texts. Guids and counters are enough for an ETag: they differ when
 * a post is added, deleted or answered.
 */
export async function findPublicPostPage(db: Knex, personId: number, position?: PagePosition): Promise<ListPage<Post>> {
  const posts = () =>
    queryPublicPosts(db, personId).select('id', 'guid', 'createdAt', 'commentsCount', 'likesCount', 'resharesCount')
  return readPage(posts, { position, first: 'newest', limit: PUBLIC_POST_LIMITS.postsOfPerson })
}

/**
 * Finds a page of the public posts with a tag, newest first. The scan of the index `taggings_of_tag` ends with the page, whatever the
 * number of posts.
 */
export async function findTagPostPage(db: Knex, tag: string, position?: PagePosition): Promise<ListPage<Post>> {
  const postsWithTag = raw(
    `(select taggings.post_id as id, taggings.created_at from taggings
      where taggings.tag_id = (select tags.id from tags where tags.name = ?) and taggings.post_id is not null
        and exists (
          select from posts where posts.id = taggings.post_id and posts.public and ${AUTHOR_IS_UNRESTRICTED_SQL}
        )) as posts`,
    [tag],
  )
  const posts = () => Post.query(db).from(postsWithTag).select('id', 'createdAt')
  return readPage(posts, { position, first: 'newest', limit: PUBLIC_POST_LIMITS.postsOnListPage })
}

/** Finds a page of all public posts that this pod has, newest first. Index `posts_newest`. */
export async function findPublicStreamPage(db: Knex, position?: PagePosition): Promise<ListPage<Post>> {
  const posts = () =>
    Post.query(db).select('id', 'createdAt').where({ public: true }).whereRaw(AUTHOR_IS_UNRESTRICTED_SQL)
  return readPage(posts, { position, first: 'newest', limit: PUBLIC_POST_LIMITS.postsOnListPage })
}

const AUTHOR_IS_UNRESTRICTED_SQL = `not ${isRestrictedSql('posts.author_id')}`

/** Reads the complete posts of a page, in its order. Posts that were deleted in the meantime are left out. */
export async function readPublicPosts(db: Knex, page: ListPage<Post>): Promise<readonly PublicPost[]> {
  const ids = page.items.map(({ id }) => id)
  return ids.length === 0 ? [] : readPosts(db, orderByTime(Post.query(db).whereIn('id', ids), 'desc'))
}

function queryPublicPosts(db: Knex, personId: number): QueryBuilder<Post> {
  return Post.query(db).where({ authorId: personId, public: true })
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

const COMPARISONS = { before: '<', after: '>', from: '>=' } as const

function limitToSide<Item extends PostOrComment>(
  query: QueryBuilder<Item>,
  { side, time, id }: PagePosition,
): QueryBuilder<Item> {
  return query.whereRaw(`(created_at, id) ${COMPARISONS[side]} (?, ?)`, [time, id])
}

async function readPosts(db: Knex, query: QueryBuilder<Post>): Promise<readonly PublicPost[]> {
  const posts = await query
    .withGraphFetched('[author.profile, photos, location, poll.answers, mentionedPeople]')
    .modifyGraph('photos', (photos) => photos.orderBy(['position', 'id']))
    .modifyGraph('poll.answers', (answers) => answers.orderBy('position'))
  const reshares = posts.filter(({ type }) => type === 'Reshare')
  const roots = reshares.length === 0 ? undefined : await readRoots(db, reshares)
  return posts.flatMap((post) =>
    post.author === undefined ? [] : [{ post, author: post.author, root: roots?.get(post.id) }],
  )
}

/** Reads the public roots of reshares, by the id of the reshare. */
async function readRoots(db: Knex, reshares: readonly Post[]): Promise<ReadonlyMap<number, PublicPost | undefined>> {
  const rootIds = await Post.findRootIds(
    db,
    reshares.map(({ id }) => id),
  )
  const isReadable = isAuthorUnblockedSql('posts.author_id')
  const query = Post.query(db).whereIn('id', [...new Set(rootIds.values())])
  const roots = await readPosts(db, query.where({ public: true }).whereRaw(isReadable))
  const rootOfId = new Map(roots.map((root) => [root.post.id, root]))
  return new Map([...rootIds].map(([id, rootId]) => [id, rootOfId.get(rootId)]))
}

/**
 * Finds a page of comments, oldest first, with authors and the beginning of each text. One character more than is displayed is read,
 * so that the page can mark a cut. Fifty complete comments can take 13 MB.
 */
export async function findCommentPage(db: Knex, post: Post, position?: PagePosition): Promise<ListPage<Comment>> {
  const comments = () =>
    Comment.query(db)
      .select('id', 'guid', 'authorId', 'createdAt')
      .select(raw('left(text, ?)', [PUBLIC_POST_LIMITS.excerptCharacters + 1]).as('text'))
      .where({ postId: post.id, hidden: false })
      .whereRaw(isAuthorUnblockedSql('comments.author_id'))
      .withGraphFetched('author')
  return readPage(comments, { position, first: 'oldest', limit: PUBLIC_POST_LIMITS.commentsOnPage })
}

/** Finds the position of the page that begins with this comment. Undefined: the post has no such comment. */
export async function findCommentPosition(
  db: Knex,
  post: Pick<Post, 'id'>,
  guid: string,
): Promise<PagePosition | undefined> {
  const comment = await Comment.query(db)
    .select('id', 'createdAt')
    .findOne({ postId: post.id, guid, hidden: false })
    .whereRaw(isAuthorUnblockedSql('comments.author_id'))
  return comment && { side: 'from', time: comment.createdAt, id: comment.id }
}

interface KnownNames {
  /** People by the address in the text; a person who has moved has the newest identity. */
  readonly people: ReadonlyMap<string, Person>
  /** The newest addresses of people who have moved, by those in the text. */
  readonly newest: ReadonlyMap<string, string>
  /** Addresses of the authors, by guid of the post. */
  readonly posts: ReadonlyMap<string, string>
}

/** Finds the known people and public posts among addresses, also those of authors of linked posts, and guids. */
export async function findKnownNames(
  db: Knex,
  { addresses, guids }: { readonly addresses: readonly string[]; readonly guids: readonly string[] },
): Promise<KnownNames> {
  const named = addresses.slice(0, PUBLIC_POST_LIMITS.namesOnPage)
  const newest = named.length === 0 ? new Map<string, string>() : await findNewestAddresses(db, named)
  const [people, posts] = await Promise.all([
    named.length === 0 ? [] : Person.byAddresses(db, [...named, ...newest.values()]),
    guids.length === 0
      ? []
      : Post.query(db)
          .where({ 'posts.public': true })
          .whereIn('posts.guid', guids.slice(0, PUBLIC_POST_LIMITS.namesOnPage))
          .withGraphFetched('author'),
  ])
  const byAddress = new Map(people.map((person) => [person.address, person]))
  return {
    people: new Map(
      named.flatMap((address) => {
        const person = byAddress.get(newest.get(address) ?? address)
        return person === undefined ? [] : [[address, person] as const]
      }),
    ),
    newest,
    posts: new Map(posts.flatMap(({ guid, author }) => (author ? [[guid, author.address] as const] : []))),
  }
}
