import type { Knex } from 'knex'
import { queryPreparedRow } from '../database/database.js'
import type { Photo } from '../models/photo.js'
import type { PollAnswer } from '../models/poll.js'
import type { Post } from '../models/post.js'
import { openPersonIdSql } from '../people/open-person-id.js'
import { groupPeopleByOwner, type PersonSummary } from '../people/person-summaries.js'
import { type ColumnLists, type RowOfAggregate, rowsFromColumns, valueAt } from '../sql/column-lists.js'
import { groupByOwner } from '../sql/group-by-owner.js'
import { keysetClauses, type Page, type TimePage, toPage } from '../sql/keyset-page.js'
import { findPostContents, type PostContent, type PostContentKey } from './post-contents.js'
import {
  MAX_RESHARE_CHAIN,
  mentionAggregate,
  type PostQuery,
  type PostsRow,
  personAggregate,
  photoAggregate,
  pollAnswerAggregate,
  postAggregate,
  postsSql,
  reshareChainQuery,
  viewerActions,
} from './posts-statement.js'
import { type Visibility, visibilityCondition } from './visibility.js'

/** The user who reads a list. Their likes, reshares and so on are part of each listed post. */
export interface ViewerIds {
  readonly userId: number
  readonly personId: number
}

/** A post as the client API shows it, with everything that belongs to it. */
export interface ListedPost extends Omit<PostContent, 'poll'>, Counters {
  readonly author: PersonSummary & { readonly nsfw: boolean }
  readonly mentionedPeople: readonly PersonSummary[]
  readonly photos: readonly Pick<Photo, 'name' | 'remotePath' | 'height' | 'width' | 'text'>[]
  readonly poll: ListedPoll | null
  /** Only the author is shown a hidden post. */
  readonly isHidden: boolean
  /** Actions of the viewer on the post. */
  readonly viewerActions: {
    readonly liked: boolean
    readonly reshared: boolean
    readonly subscribed: boolean
    readonly reported: boolean
  }
  /** The original post at the end of a chain of reshares. Undefined: not a reshare, or the original is deleted. */
  readonly root: ListedPost | undefined
}

type PostRows = ColumnLists<RowOfAggregate<typeof postAggregate>>

type Counters = Pick<Post, 'commentsCount' | 'likesCount' | 'resharesCount' | 'interactedAt'>

export interface ListedPoll {
  readonly guid: string
  readonly question: string
  readonly answers: readonly (Pick<PollAnswer, 'id' | 'answer' | 'voteCount'> & { readonly isViewersVote: boolean })[]
}

/**
 * Lists the posts of one person, hidden ones included. An unknown or closed person has none. Reads `posts_of_author`
 * (author_id, created_at, id) from the page key on.
 */
export async function listPostsOfPerson(
  db: Knex,
  viewer: ViewerIds,
  {
    authorGuid,
    visibility,
    page,
  }: { readonly authorGuid: string; readonly visibility: Visibility; readonly page: TimePage },
): Promise<Page<ListedPost>> {
  const values: unknown[] = [authorGuid]
  const { name, maxRows, condition, order } = keysetClauses(page, values, {
    time: 'posts.created_at',
    id: 'posts.id',
    firstValue: 3,
  })
  const posts = await listPosts(db, viewer, {
    name: `posts-of-person ${visibility} ${name}`,
    maxRows,
    selectPosts: (columns) => `
      select ${columns} from posts
      where posts.author_id = (${openPersonIdSql('$3')}) and ${visibilityCondition[visibility]} ${condition} ${order}`,
    values,
  })
  return toPage(posts, page)
}

/**
 * Lists the posts of a query, in its order. Runs one statement, a second one if contents are not cached, and a third one if the page
 * has reshares of reshares.
 */
export async function listPosts(db: Knex, viewer: ViewerIds, query: PostQuery): Promise<readonly ListedPost[]> {
  const rows = await readPostsRow(db, viewer, query)
  const { posts, roots } = await buildPosts(db, rows)
  // Posts were deleted between the two statements: read again, so that the page is full.
  if (posts.length < rows.posts.id.length) return listPosts(db, viewer, query)

  const originals = await readOriginals(db, viewer, roots)
  for (const post of posts) post.root = findOriginal(post, originals)
  return posts
}

interface BuiltPost extends ListedPost {
  root: ListedPost | undefined
  readonly rootId: number | null
}

/** The roots by id, and for roots that are reshares the posts of their chains. */
async function readOriginals(
  db: Knex,
  viewer: ViewerIds,
  roots: readonly BuiltPost[],
): Promise<ReadonlyMap<number, BuiltPost>> {
  const reshareIds = roots.filter(({ type }) => type === 'Reshare').map(({ id }) => id)
  if (reshareIds.length === 0) return indexById(roots)
  const { posts } = await buildPosts(db, await readPostsRow(db, viewer, reshareChainQuery(reshareIds)))
  return indexById([...roots, ...posts])
}

/** Follows a chain of reshares to its original post. Undefined: the original is private, deleted or too far. */
function findOriginal({ rootId }: BuiltPost, posts: ReadonlyMap<number, BuiltPost>): BuiltPost | undefined {
  let nextId = rootId
  for (let depth = 0; nextId !== null && depth < MAX_RESHARE_CHAIN; depth += 1) {
    const root = posts.get(nextId)
    if (root === undefined) return undefined
    if (root.type === 'StatusMessage') return root.public && !root.isHidden ? root : undefined
    nextId = root.rootId
  }
  return undefined
}

interface DecodedPostsRow {
  readonly posts: PostRows
  readonly roots: PostRows
  /** The row with the columns that are not decoded yet. */
  readonly row: PostsRow
}

async function readPostsRow(db: Knex, { userId, personId }: ViewerIds, query: PostQuery): Promise<DecodedPostsRow> {
  const values = [userId, personId, ...query.values]
  const row = await queryPreparedRow<PostsRow>(db, query.name, () => postsSql(query), values)
  return { posts: postAggregate.decode(row.posts), roots: postAggregate.decode(row.roots), row }
}

/** Builds the posts of a page and their roots, without those that were deleted before their contents were read. */
async function buildPosts(
  db: Knex,
  { posts, roots, row }: DecodedPostsRow,
): Promise<{ readonly posts: readonly BuiltPost[]; readonly roots: readonly BuiltPost[] }> {
  const contents = await findPostContents(db, [...keysOf(posts), ...keysOf(roots)])
  const buildPost = postBuilder(row)
  const buildAll = (rows: PostRows) =>
    rows.id.flatMap((id, index) => {
      const content = contents.get(id)
      return content ? [buildPost(content, rows, index)] : []
    })
  return { posts: buildAll(posts), roots: buildAll(roots) }
}

function keysOf({ id: ids, createdAt }: PostRows): readonly PostContentKey[] {
  return ids.map((id, index) => ({ id, createdAt: valueAt(createdAt, index) }))
}

function postBuilder(row: PostsRow) {
  const peopleById = indexById(rowsFromColumns(personAggregate.decode(row.people)))
  const findPerson = (id: number) => {
    const person = peopleById.get(id)
    if (person === undefined) throw new Error(`Person ${id} belongs to a post of the page, but is not in its people.`)
    return person
  }
  const mentionedPeopleOf = groupPeopleByOwner(mentionAggregate.decode(row.mentions), findPerson)
  const photosByPost = groupByOwner(rowsFromColumns(photoAggregate.decode(row.photos)))
  const pollAnswers = indexById(rowsFromColumns(pollAnswerAggregate.decode(row.pollAnswers)))
  const actions = viewerActions.decode(row.actions)
  return (content: PostContent, rows: PostRows, index: number): BuiltPost => {
    const { id } = content
    // Field by field: spreading an object of this size costs more than reading it.
    return {
      id,
      guid: content.guid,
      type: content.type,
      public: content.public,
      text: content.text,
      providerDisplayName: content.providerDisplayName,
      createdAt: content.createdAt,
      location: content.location,
      commentsCount: valueAt(rows.commentsCount, index),
      likesCount: valueAt(rows.likesCount, index),
      resharesCount: valueAt(rows.resharesCount, index),
      interactedAt: new Date(valueAt(rows.interactedAt, index)),
      author: findPerson(valueAt(rows.authorId, index)),
      isHidden: valueAt(rows.isHidden, index),
      viewerActions: {
        liked: actions.liked.has(id),
        reshared: actions.reshared.has(id),
        subscribed: actions.subscribed.has(id),
        reported: actions.reported.has(id),
      },
      photos: photosByPost.get(id) ?? [],
      mentionedPeople: mentionedPeopleOf(id),
      poll: content.poll && pollWithVotes(content.poll, pollAnswers),
      root: undefined,
      rootId: valueAt(rows.rootId, index),
    }
  }
}

function indexById<Item extends { readonly id: number }>(items: readonly Item[]): ReadonlyMap<number, Item> {
  return new Map(items.map((item) => [item.id, item]))
}

/** Adds the votes to a poll. Null: the author has retracted the poll; the post stays. */
function pollWithVotes(
  { guid, question, answers }: NonNullable<PostContent['poll']>,
  votesById: ReadonlyMap<number, RowOfAggregate<typeof pollAnswerAggregate>>,
): ListedPoll | null {
  const withVotes = answers.flatMap(({ id, answer }) => {
    const votes = votesById.get(id)
    return votes ? [{ id, answer, voteCount: votes.voteCount, isViewersVote: votes.isViewersVote }] : []
  })
  return withVotes.length > 0 ? { guid, question, answers: withVotes } : null
}
