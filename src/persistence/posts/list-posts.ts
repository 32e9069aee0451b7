import type { Knex } from 'knex'
import { namedRow } from '../database/database.js'
import type { Photo } from '../models/photo.js'
import type { PollAnswer } from '../models/poll.js'
import type { Post } from '../models/post.js'
import { authorOf } from '../people/author-of.js'
import { type PersonSummary, peopleOfEach } from '../people/person-summaries.js'
import { type ColumnLists, type RowOf, rowsOf, valueAt } from '../sql/column-lists.js'
import { byOwner } from '../sql/group-by-owner.js'
import { type Page, pageOf, seek, type TimePage } from '../sql/keyset-page.js'
import { contentsOf, type PostContent } from './post-contents.js'
import {
  alongChains,
  choiceForm,
  type FoundPosts,
  LONGEST_CHAIN,
  mentionForm,
  type PostQuery,
  personForm,
  photoForm,
  postForm,
  postsStatement,
  viewerActions,
} from './posts-statement.js'
import { type Visibility, visibilityCondition } from './visibility.js'

/** In whose eyes: what they have done with a post is part of what they are shown. */
export interface Reader {
  readonly userId: number
  readonly personId: number
}

/** What a client is shown of a post, with all that belongs to it. */
export interface ListedPost extends Omit<PostContent, 'poll'>, Counters {
  readonly author: PersonSummary & { readonly nsfw: boolean }
  readonly mentionedPeople: readonly PersonSummary[]
  readonly photos: readonly Pick<Photo, 'name' | 'remotePath' | 'height' | 'width' | 'text'>[]
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

type PostRows = ColumnLists<RowOf<typeof postForm>>

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
  {
    authorGuid,
    visibility,
    page,
  }: { readonly authorGuid: string; readonly visibility: Visibility; readonly page: TimePage },
): Promise<Page<ListedPost>> {
  const values: unknown[] = [authorGuid]
  const place = { time: 'posts.created_at', id: 'posts.id', firstValue: 3 } as const
  const { name, most, condition, order } = seek(page, values, place)
  const found = await listedPosts(db, reader, {
    name: `posts-of-person ${visibility} ${name}`,
    most,
    which: (columns) => `
      select ${columns} from posts
      where posts.author_id = (${authorOf('$3')}) and ${visibilityCondition[visibility]} ${condition} ${order}`,
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
  if (posts.length < page.posts.id.length) return listedPosts(db, reader, query)

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

interface PostsOfPage {
  readonly posts: PostRows
  readonly roots: PostRows
  /** Whatever belongs to them. */
  readonly found: FoundPosts
}

async function find(db: Knex, { userId, personId }: Reader, query: PostQuery): Promise<PostsOfPage> {
  const values = [userId, personId, ...query.values]
  const found = await namedRow<FoundPosts>(db, query.name, () => postsStatement(query), values)
  return { posts: postForm.read(found.posts), roots: postForm.read(found.roots), found }
}

/** Without those that are deleted before their contents are read. */
async function build(
  db: Knex,
  { posts, roots, found }: PostsOfPage,
): Promise<{ readonly posts: readonly FoundPost[]; readonly roots: readonly FoundPost[] }> {
  const contents = await contentsOf(db, [...keysOf(posts), ...keysOf(roots)])
  const build = builderOf(found)
  const buildAll = (rows: PostRows) =>
    rows.id.flatMap((id, place) => {
      const content = contents.get(id)
      return content ? [build(content, rows, place)] : []
    })
  return { posts: buildAll(posts), roots: buildAll(roots) }
}

function keysOf({ id: ids, createdAt }: PostRows) {
  return ids.map((id, place) => ({ id, createdAt: valueAt(createdAt, place) }))
}

function builderOf(found: FoundPosts) {
  const knownPeople = byId(rowsOf(personForm.read(found.people)))
  const person = (id: number) => {
    const one = knownPeople.get(id)
    if (one === undefined) throw new Error(`Person ${id} has to do with a post and is not among its people.`)
    return one
  }
  const mentionedIn = peopleOfEach(mentionForm.read(found.mentions), person)
  const photosOf = byOwner(rowsOf(photoForm.read(found.photos)))
  const choices = byId(rowsOf(choiceForm.read(found.choices)))
  const done = viewerActions.read(found.actions)
  return (content: PostContent, rows: PostRows, place: number): FoundPost => {
    const { id } = content
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
      commentsCount: valueAt(rows.commentsCount, place),
      likesCount: valueAt(rows.likesCount, place),
      resharesCount: valueAt(rows.resharesCount, place),
      interactedAt: new Date(valueAt(rows.interactedAt, place)),
      author: person(valueAt(rows.authorId, place)),
      own: {
        liked: done.liked.has(id),
        reshared: done.reshared.has(id),
        subscribed: done.subscribed.has(id),
        reported: done.reported.has(id),
      },
      photos: photosOf.get(id) ?? [],
      mentionedPeople: mentionedIn(id),
      poll: content.poll && pollWith(content.poll, choices),
      root: undefined,
      rootId: valueAt(rows.rootId, place),
    }
  }
}

function byId<Item extends { readonly id: number }>(items: readonly Item[]): ReadonlyMap<number, Item> {
  return new Map(items.map((item) => [item.id, item]))
}

/** Null: its author has taken it back since, and the post stays. */
function pollWith(
  { guid, question, answers }: NonNullable<PostContent['poll']>,
  choices: ReadonlyMap<number, RowOf<typeof choiceForm>>,
): ListedPoll | null {
  const chosen = answers.flatMap(({ id, answer }) => {
    const choice = choices.get(id)
    return choice ? [{ id, answer, voteCount: choice.voteCount, own: choice.own }] : []
  })
  return chosen.length > 0 ? { guid, question, answers: chosen } : null
}
