import type { Knex } from 'knex'
import { authorOf } from './author-of.js'
import { type Belonging, byOwner } from './belongings.js'
import { namedRow } from './database.js'
import type { Person } from './models/person.js'
import type { Photo } from './models/photo.js'
import type { PollAnswer } from './models/poll.js'
import type { Post } from './models/post.js'
import { type Page, pageOf, seek, type TimePage } from './paged.js'
import { contentsOf, type PostContent } from './post-contents.js'
import { alongChains, LONGEST_CHAIN, type PostQuery, postsStatement } from './posts-statement.js'
import { inSight, type Sight } from './sight.js'

/** In whose eyes: what they have done with a post is part of what they are shown. */
export interface Reader {
  readonly userId: number
  readonly personId: number
}

export type PersonSummary = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

/** What a client is shown of a post, with all that belongs to it. */
export interface ListedPost extends Omit<PostContent, 'poll'>, Counters {
  readonly author: PersonSummary & { readonly nsfw: boolean }
  readonly mentionedPeople: readonly PersonSummary[]
  readonly photos: readonly Pick<Photo, 'name' | 'remotePath' | 'height' | 'width'>[]
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

type Counters = Pick<Post, 'commentsCount' | 'likesCount' | 'resharesCount' | 'interactedAt'>

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

/**
 * In the order in which they are found. That takes one statement, a second one for contents that were not read lately, and a
 * third one where somebody reshares a reshare.
 */
export async function listedPosts(db: Knex, reader: Reader, query: PostQuery): Promise<readonly ListedPost[]> {
  const page = await find(db, reader, query)
  const { posts, roots } = await build(db, page)
  // Some were deleted in between; the page reaches further than they did.
  if (posts.length < (page.posts?.length ?? 0)) return listedPosts(db, reader, query)

  const reshares = roots.filter(({ type }) => type === 'Reshare')
  const behind = reshares.length === 0 ? [] : (await build(db, await find(db, reader, behindThese(reshares)))).posts
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
  readonly people: readonly (ListedPost['author'] & { readonly id: number })[] | null
  readonly mentions: readonly (Belonging & { readonly personId: number })[] | null
  readonly photos: readonly (Belonging & ListedPost['photos'][number])[] | null
  readonly choices: readonly Choice[] | null
  /** Ids. */
  readonly liked: readonly number[]
  readonly reshared: readonly number[]
  readonly subscribed: readonly number[]
  readonly reported: readonly number[]
}

interface Row extends Pick<Post, 'id' | 'guid' | 'authorId' | 'rootId'>, Omit<Counters, 'interactedAt'> {
  readonly interactedAt: string
}

type Choice = Pick<ListedPoll['answers'][number], 'id' | 'voteCount' | 'own'>

function find(db: Knex, { userId, personId }: Reader, query: PostQuery): Promise<Found> {
  return namedRow<Found>(db, query.name, () => postsStatement(query), [userId, personId, ...query.values])
}

/** Without those that are deleted before their contents are read. */
async function build(
  db: Knex,
  found: Found,
): Promise<{ readonly posts: readonly FoundPost[]; readonly roots: readonly FoundPost[] }> {
  const [posts, roots] = [found.posts ?? [], found.roots ?? []]
  const contents = await contentsOf(db, [...posts, ...roots])
  const buildOne = builderOf(found)
  const each = (row: Row) => {
    const content = contents.get(row.id)
    return content ? [buildOne(row, content)] : []
  }
  return { posts: posts.flatMap(each), roots: roots.flatMap(each) }
}

function builderOf(found: Found): (row: Row, content: PostContent) => FoundPost {
  const people = new Map((found.people ?? []).map((person) => [person.id, person]))
  const choices = new Map((found.choices ?? []).map((choice) => [choice.id, choice]))
  const [photos, mentions] = [byOwner(found.photos), byOwner(found.mentions)]
  return (row, content) => {
    const { id } = row
    const author = people.get(row.authorId)
    if (author === undefined) throw new Error(`Nobody has written post ${id}.`)
    // Spelt out: to spread an object of this size costs more than to read it.
    return {
      id,
      guid: content.guid,
      type: content.type,
      public: content.public,
      text: content.text,
      providerDisplayName: content.providerDisplayName,
      createdAt: content.createdAt,
      location: content.location,
      commentsCount: row.commentsCount,
      likesCount: row.likesCount,
      resharesCount: row.resharesCount,
      interactedAt: new Date(row.interactedAt),
      author,
      own: {
        liked: found.liked.includes(id),
        reshared: found.reshared.includes(id),
        subscribed: found.subscribed.includes(id),
        reported: found.reported.includes(id),
      },
      photos: photos.get(id) ?? [],
      mentionedPeople: (mentions.get(id) ?? []).flatMap(({ personId }) => people.get(personId) ?? []),
      poll: content.poll && pollWith(content.poll, choices),
      root: undefined,
      rootId: row.rootId,
    }
  }
}

function pollWith(
  { guid, question, answers }: NonNullable<PostContent['poll']>,
  choices: ReadonlyMap<number, Choice>,
): ListedPoll {
  return {
    guid,
    question,
    answers: answers.map(({ id, answer }) => {
      const { voteCount = 0, own = false } = choices.get(id) ?? {}
      return { id, answer, voteCount, own }
    }),
  }
}
