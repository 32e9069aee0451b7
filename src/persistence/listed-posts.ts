import type { Knex } from 'knex'
import { authorOf } from './author-of.js'
import { type Belonging, byOwner } from './belongings.js'
import { named } from './database.js'
import type { Person } from './models/person.js'
import type { Photo } from './models/photo.js'
import type { PollAnswer } from './models/poll.js'
import type { Location, Post, PostType } from './models/post.js'
import { type Page, pageOf, seek, type TimePage } from './paged.js'
import { alongChains, LONGEST_CHAIN, type PostQuery, postsStatement } from './posts-statement.js'
import { inSight, type Sight } from './sight.js'

/** In whose eyes: what they have done with a post is part of what they are shown. */
export interface Reader {
  readonly userId: number
  readonly personId: number
}

export type PersonSummary = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

/** What a client is shown of a post, with all that belongs to it. */
export interface ListedPost
  extends Pick<
    Post,
    | 'id'
    | 'guid'
    | 'public'
    | 'text'
    | 'providerDisplayName'
    | 'commentsCount'
    | 'likesCount'
    | 'resharesCount'
    | 'interactedAt'
    | 'createdAt'
  > {
  readonly type: PostType
  readonly author: PersonSummary & { readonly nsfw: boolean }
  readonly mentionedPeople: readonly PersonSummary[]
  readonly photos: readonly Pick<Photo, 'name' | 'remotePath' | 'height' | 'width'>[]
  readonly location: Pick<Location, 'address' | 'lat' | 'lng'> | null
  readonly poll: ListedPoll | null
  /** What the reader has done with it. */
  readonly own: {
    readonly liked: boolean
    readonly reshared: boolean
    readonly subscribed: boolean
    readonly reported: boolean
  }
  /** What a reshare shows in the end, which is not another reshare; undefined also where that is gone. */
  readonly root: ListedPost | undefined
}

export interface ListedPoll {
  readonly guid: string
  readonly question: string
  readonly answers: readonly (Pick<PollAnswer, 'id' | 'answer' | 'voteCount'> & { readonly own: boolean })[]
}

/** What one person has written, hidden or not; nothing, where nobody of that name is here. */
export async function listedPostsOf(
  db: Knex,
  reader: Reader,
  { authorGuid, sight, page }: { readonly authorGuid: string; readonly sight: Sight; readonly page: TimePage },
): Promise<Page<ListedPost>> {
  const values: unknown[] = [authorGuid]
  const place = { time: 'posts.created_at', id: 'posts.id', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const found = await listedPosts(db, reader, {
    name: `posts-of-person ${sight} ${name}`,
    most,
    which: (columns) => `
      select ${columns} from posts
      where posts.author_id = (${authorOf('$3')}) and ${inSight[sight]} ${condition} ${order}`,
    values,
  })
  return pageOf(found, page)
}

/** In the order in which they are found, with one statement; with a second one where somebody reshares a reshare. */
export async function listedPosts(db: Knex, reader: Reader, query: PostQuery): Promise<readonly ListedPost[]> {
  const { posts, roots } = await find(db, reader, query)
  const reshares = roots.filter(({ type }) => type === 'Reshare')
  const behind = reshares.length === 0 ? [] : (await find(db, reader, behindThese(reshares))).posts
  const known = new Map([...roots, ...behind].map((root) => [root.id, root]))
  for (const post of posts) post.root = endOf(post, known)
  return posts
}

interface FoundPost extends ListedPost {
  root: ListedPost | undefined
  readonly rootId: number | null
}

function behindThese(reshares: readonly FoundPost[]): PostQuery {
  return { ...alongChains('$3'), values: [reshares.map(({ id }) => id)] }
}

function endOf({ rootId }: FoundPost, known: ReadonlyMap<number, FoundPost>): FoundPost | undefined {
  let next = rootId
  for (let depth = 0; next !== null && depth < LONGEST_CHAIN; depth += 1) {
    const root = known.get(next)
    if (root === undefined) return undefined
    if (root.type === 'StatusMessage') return root.public ? root : undefined
    next = root.rootId
  }
  return undefined
}

/** All in one row, in lists; null: there is nothing of the kind. What belongs to a post says so. */
interface Found {
  readonly posts: readonly Row[] | null
  readonly roots: readonly Row[] | null
  readonly authors: readonly (ListedPost['author'] & { readonly id: number })[] | null
  readonly photos: readonly (Belonging & ListedPost['photos'][number])[] | null
  readonly mentionedPeople: readonly (Belonging & PersonSummary)[] | null
  readonly locations: readonly (Belonging & NonNullable<ListedPost['location']>)[] | null
  readonly polls: readonly (Belonging & ListedPoll)[] | null
  /** Ids. */
  readonly liked: readonly number[]
  readonly reshared: readonly number[]
  readonly subscribed: readonly number[]
  readonly reported: readonly number[]
}

type BelongingName = 'author' | 'own' | 'photos' | 'mentionedPeople' | 'location' | 'poll' | 'root'

interface Row extends Omit<ListedPost, BelongingName | 'interactedAt' | 'createdAt'> {
  readonly interactedAt: string
  readonly createdAt: string
  readonly authorId: number
  readonly rootId: number | null
}

async function find(
  db: Knex,
  { userId, personId }: Reader,
  query: PostQuery,
): Promise<{ readonly posts: readonly FoundPost[]; readonly roots: readonly FoundPost[] }> {
  const [found] = await named<Found>(db, query.name, textOf(query), [userId, personId, ...query.values])
  if (found === undefined) throw new Error('A statement without tables has one row.')
  const build = builderOf(found)
  return { posts: (found.posts ?? []).map(build), roots: (found.roots ?? []).map(build) }
}

/** By name: to put such a text together for each request, and to compare it, costs as much as to read some of the posts. */
const texts = new Map<string, string>()

function textOf(query: PostQuery): string {
  const known = texts.get(query.name)
  if (known !== undefined) return known
  const text = postsStatement(query)
  texts.set(query.name, text)
  return text
}

function builderOf(found: Found): (row: Row) => FoundPost {
  const authors = new Map((found.authors ?? []).map((author) => [author.id, author]))
  const [photos, mentionedPeople] = [byOwner(found.photos), byOwner(found.mentionedPeople)]
  const [locations, polls] = [byOwner(found.locations), byOwner(found.polls)]
  return (row) => {
    const { id } = row
    const author = authors.get(row.authorId)
    if (author === undefined) throw new Error(`Nobody has written post ${id}.`)
    // Spelt out: to spread an object of this size costs more than to read it.
    return {
      id,
      guid: row.guid,
      type: row.type,
      public: row.public,
      text: row.text,
      providerDisplayName: row.providerDisplayName,
      commentsCount: row.commentsCount,
      likesCount: row.likesCount,
      resharesCount: row.resharesCount,
      interactedAt: new Date(row.interactedAt),
      createdAt: new Date(row.createdAt),
      author,
      own: {
        liked: found.liked.includes(id),
        reshared: found.reshared.includes(id),
        subscribed: found.subscribed.includes(id),
        reported: found.reported.includes(id),
      },
      photos: photos.get(id) ?? [],
      mentionedPeople: mentionedPeople.get(id) ?? [],
      location: locations.get(id)?.[0] ?? null,
      poll: polls.get(id)?.[0] ?? null,
      root: undefined,
      rootId: row.rootId,
    }
  }
}
