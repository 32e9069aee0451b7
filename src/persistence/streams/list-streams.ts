/**
 * Lists pages of streams.
 *
 * Which statement returns the main stream? One of three (docs/decisions/0038), all built in `people-stream.ts`. `listStreamPage` first
 * tries the remembered window with `sparse` or `window`. Without one, or if the page is not full, it runs `peopleStreamSql`. The name of the
 * prepared statement shows which one ran:
 *
 * | Statement | Built by | Reads | Index |
 * | --- | --- | --- | --- |
 * | `stream main …, sparse` | `peopleStreamInSparseWindow` | all posts of the pod in a short time window | `posts_newest`, `post_visibilities_newest` |
 * | `stream main …, window` | `peopleStreamInWindow` | the posts of the viewer's contacts in a time window | `posts_of_author`, `post_visibilities_of_author` |
 * | `stream main …` | `peopleStreamSql` | the newest posts of each contact, merged | the same, and `posts_newest`, `post_visibilities_newest` |
 *
 * Mentions are read by `mentions_of_person`, followed tags by `taggings_of_tag`. `page-windows.ts` remembers the time windows.
 */
import type { Knex } from 'knex'
import { type ListedPost, listPosts, type ViewerIds } from '../posts/list-posts.js'
import type { PostQuery, SelectPosts } from '../posts/posts-statement.js'
import { VIEWER_USER_ID_SQL, type Visibility } from '../posts/visibility.js'
import { type KeysetClauseBuilder, keysetClausesFor, type Page, type TimePage, toPage } from '../sql/keyset-page.js'
import { firstPostsSql } from '../sql/merged-scan.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { getPageWindows, type PageWindow } from './page-windows.js'
import {
  type PeopleStream,
  peopleStreamInSparseWindow,
  peopleStreamInWindow,
  peopleStreamSql,
  tagStream,
  tagStreamInWindow,
} from './people-stream.js'
import {
  commentedPosts,
  likedPosts,
  mentioningPosts,
  type PostReferenceScan,
  postsWithActivity,
  taggedPosts,
} from './post-scans.js'

/** No stream has posts that the viewer has hidden, or posts of blocked authors. */
export type Stream = keyof typeof streams

export interface StreamQuery {
  readonly visibility: Visibility
  readonly page: TimePage
}

/** Lists a page of a stream as the viewer sees it. */
export async function listStreamPosts(
  db: Knex,
  viewer: ViewerIds,
  { stream, ...query }: StreamQuery & { readonly stream: Stream },
): Promise<Page<ListedPost>> {
  return listStreamPage(db, viewer, query, { name: stream, source: streams[stream], values: [] })
}

/** Lists posts of the people in these aspects, and the viewer's own posts that are public or shared with these aspects. */
export async function listAspectStreamPosts(
  db: Knex,
  viewer: ViewerIds,
  { aspectIds, ...query }: StreamQuery & { readonly aspectIds: readonly number[] },
): Promise<Page<ListedPost>> {
  return listStreamPage(db, viewer, query, { name: 'aspects', source: aspectStream, values: [aspectIds] })
}

/** Lists posts with one tag. */
export async function listPostsWithTag(
  db: Knex,
  viewer: ViewerIds,
  { tag, ...query }: StreamQuery & { readonly tag: string },
): Promise<Page<ListedPost>> {
  return listStreamPage(db, viewer, query, { name: 'tag', source: singleTagStream, values: [tag] })
}

/** The statements of a stream. */
interface StreamSource {
  /** Selects a page from the whole stream. */
  selectPosts(page: KeysetClauseBuilder, visibility: Visibility): SelectPosts
  /** Selects a page that is likely to lie in a time window. Undefined: one index scan finds each page. */
  selectInWindow?(page: KeysetClauseBuilder, visibility: Visibility, windowEnd: string): SelectPosts
  /** Statement for a window in which the whole pod has few posts. */
  selectInSparseWindow?(page: KeysetClauseBuilder, visibility: Visibility, windowEnd: string): SelectPosts
}

interface NamedStream {
  readonly name: string
  readonly source: StreamSource
  /** The parameters from $3 on. */
  readonly values: readonly unknown[]
}

/** Reads the page from the window of the last read, and from the whole stream if there is no window or it does not fill the page. */
async function listStreamPage(
  db: Knex,
  viewer: ViewerIds,
  query: StreamQuery,
  stream: NamedStream,
): Promise<Page<ListedPost>> {
  const { page } = query
  if (stream.source.selectInWindow === undefined) {
    return toPage(await listPosts(db, viewer, fullStreamQuery(query, stream)), page)
  }

  const windows = getPageWindows(db)
  const streamPage = { userId: viewer.userId, stream: `${stream.name} ${query.visibility} ${stream.values}`, page }
  const window = windows.find(streamPage)
  const windowPosts = window && (await listPosts(db, viewer, windowQuery(query, stream, window)))
  const posts =
    windowPosts && isFullPage(windowPosts, page, window)
      ? windowPosts
      : await listPosts(db, viewer, fullStreamQuery(query, stream))
  windows.record(streamPage, posts, windowPosts?.length === 0)
  return toPage(posts, page)
}

/**
 * The page is full, or the window has no end and so holds the whole stream. An empty result proves nothing: a window with too many posts
 * returns it too.
 */
function isFullPage(posts: readonly ListedPost[], { limit }: TimePage, { end }: PageWindow): boolean {
  return posts.length > limit || (end === undefined && posts.length > 0)
}

function fullStreamQuery({ visibility, page }: StreamQuery, stream: NamedStream): PostQuery {
  const values = [...stream.values]
  const clauses = postClauses(page, values)
  return {
    name: `stream ${stream.name} ${visibility} ${clauses.name}`,
    maxRows: clauses.maxRows,
    selectPosts: (columns) => stream.source.selectPosts(clauses, visibility)(columns),
    values,
  }
}

function windowQuery({ visibility, page }: StreamQuery, stream: NamedStream, window: PageWindow): PostQuery {
  const values = [...stream.values, window.end ?? '-infinity']
  const windowEnd = opaqueParam(`$${values.length + 2}`, 'timestamptz')
  const clauses = postClauses(page, values)
  const isSparse = window.isSparse && stream.source.selectInSparseWindow !== undefined
  return {
    name: `stream ${stream.name} ${visibility} ${clauses.name}, ${isSparse ? 'sparse' : 'window'}`,
    maxRows: clauses.maxRows,
    selectPosts(columns) {
      const method = isSparse ? 'selectInSparseWindow' : 'selectInWindow'
      const selectPosts = stream.source[method]?.(clauses, visibility, windowEnd)
      if (selectPosts === undefined) throw new Error(`The stream ${stream.name} has no statement for a window.`)
      return selectPosts(columns)
    },
    values,
  }
}

/** The statements of the newest page of the main stream, without the columns of posts; docs/main-stream.md shows them. */
export function mainStreamStatements(): Readonly<Record<string, string>> {
  const query = { visibility: 'readable', page: { limit: 15 } } as const
  const stream = { name: 'main', source: streams.main, values: [] }
  const window = { end: new Date(0), isSparse: false }
  const queries = [
    fullStreamQuery(query, stream),
    windowQuery(query, stream, window),
    windowQuery(query, stream, { ...window, isSparse: true }),
  ]
  return Object.fromEntries(queries.map(({ name, selectPosts }) => [name, selectPosts('posts.*')]))
}

function postClauses(page: TimePage, values: unknown[]): KeysetClauseBuilder {
  const clauses = keysetClausesFor(page, values, { firstValue: 3 })
  return { ...clauses, limit: opaqueParam(clauses.limit, 'bigint') }
}

/** Looks up the posts of rows of `id` and `time` by primary key. `offset 0` keeps the planner from joining by a scan of all posts. */
function lookUpPosts(page: KeysetClauseBuilder, rows: string, condition = 'true'): SelectPosts {
  return (columns) => `
    select ${columns}
    from (${rows}) as stream_entry
    cross join lateral (select * from posts where posts.id = stream_entry.id and ${condition} offset 0) as posts
    ${page.orderBy('stream_entry.time', 'stream_entry.id')} limit ${page.limit}`
}

const ASPECT_IDS_SQL = opaqueParam('$3', 'bigint[]')

/** People in any aspect: a user shares with exactly these. Index `contacts_receiving`. */
const PEOPLE_IN_ANY_ASPECT_SQL = `select person_id from contacts where user_id = ${VIEWER_USER_ID_SQL} and receiving`

const PEOPLE_IN_ASPECTS_SQL = `
  select person_id from contacts
  where user_id = ${VIEWER_USER_ID_SQL}
    and id = any(array(select contact_id from aspect_memberships where aspect_id = any(${ASPECT_IDS_SQL}::bigint[])))`

const IS_PUBLIC_OR_IN_ASPECTS_SQL = `(posts.public or (
  select true from post_aspects where post_aspects.post_id = posts.id and post_aspects.aspect_id = any(${ASPECT_IDS_SQL}::bigint[]) limit 1
) is true)`

const IS_OWN_POST_VISIBLE_SQL: Readonly<Record<Visibility, string>> = { public: 'posts.public', readable: 'true' }

/** `main-stream-members.ts` states the same rules of the main stream from the side of the posts. */
const streams = {
  main: peopleSource((visibility) => ({
    authors: PEOPLE_IN_ANY_ASPECT_SQL,
    ownCondition: IS_OWN_POST_VISIBLE_SQL[visibility],
    hasTagsAndMentions: true,
  })),
  'all aspects': peopleSource((visibility) => ({
    authors: PEOPLE_IN_ANY_ASPECT_SQL,
    ownCondition: IS_OWN_POST_VISIBLE_SQL[visibility],
    hasTagsAndMentions: false,
  })),
  activity: singleScanSource(postsWithActivity),
  mentions: singleScanSource(mentioningPosts),
  tags: {
    selectPosts: (page, visibility) => lookUpPosts(page, tagStream(page, visibility)),
    selectInWindow: tagStreamInWindow,
  },
  liked: singleScanSource(likedPosts),
  commented: {
    selectPosts: (page, visibility) => lookUpPosts(page, firstPostsSql(page, commentedPosts(visibility))),
  },
} as const satisfies Readonly<Record<string, StreamSource>>

const aspectStream = peopleSource(() => ({
  authors: PEOPLE_IN_ASPECTS_SQL,
  ownCondition: IS_PUBLIC_OR_IN_ASPECTS_SQL,
  hasTagsAndMentions: false,
}))

const singleTagStream = singleScanSource((visibility) =>
  taggedPosts(visibility, '(select tags.id from tags where tags.name = $3)'),
)

function peopleSource(streamFor: (visibility: Visibility) => PeopleStream): StreamSource {
  return {
    selectPosts: (page, visibility) => lookUpPosts(page, peopleStreamSql(page, visibility, streamFor(visibility))),
    selectInWindow: (page, visibility, windowEnd) =>
      peopleStreamInWindow(page, visibility, streamFor(visibility), windowEnd),
    selectInSparseWindow: (page, visibility, windowEnd) =>
      peopleStreamInSparseWindow(page, visibility, streamFor(visibility), windowEnd),
  }
}

/** A stream in the order of one index of a table that refers to posts: it reads rows until enough posts meet the condition. */
function singleScanSource(scanFor: (visibility: Visibility) => PostReferenceScan): StreamSource {
  return {
    selectPosts(page, visibility) {
      const { from, time, id, postCondition } = scanFor(visibility)
      return lookUpPosts(
        page,
        `select ${id} as id, ${time} as time from ${from} ${page.pastKey(time, id)}`,
        postCondition,
      )
    },
  }
}
