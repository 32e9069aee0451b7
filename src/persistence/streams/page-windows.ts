import type { Knex } from 'knex'
import { LRUCache } from 'lru-cache'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import type { ListedPost } from '../posts/list-posts.js'
import type { TimePage } from '../sql/keyset-page.js'

/** Streams in the cache, of all readers and page sizes. */
const MAX_STREAMS = 20_000
/** The newest page: the window is longer by a quarter, because some of its posts may be deleted in the meantime. */
const NEWEST_PAGE_SLACK = 0.25
/** Other pages: the window has twice the length, because people may have posted less at that time. */
const OTHER_PAGE_SLACK = 1
/** A window is sparse if the ids of its page are closer than this: then the whole pod has few posts in it. */
const MAX_ID_RANGE_OF_SPARSE_WINDOW = 100

interface StreamPage {
  readonly userId: number
  readonly stream: string
  readonly page: TimePage
}

/** The time window in which a page is likely to lie, from the page key on. */
export interface PageWindow {
  /** The other end of the window. Undefined: no bound, because the newest page held the whole stream. */
  readonly end: Date | undefined
  /** The whole pod has few posts in the window. */
  readonly isSparse: boolean
}

type FoundPosts = readonly Pick<ListedPost, 'id' | 'createdAt'>[]

/**
 * Remembers, in this process, the time windows in which pages of streams were found. A window only selects where to read first: each
 * page is read from the database, and a page that its window does not fill is read from the whole stream.
 */
export interface PageWindowCache {
  /** Undefined: the stream is not in the cache, or no window is useful. */
  find(streamPage: StreamPage): PageWindow | undefined
  /**
   * Records the posts found, one more than the page holds or all there are. `hadTooMany`: the window was tried first and returned
   * nothing, because it held too many posts.
   */
  record(streamPage: StreamPage, posts: FoundPosts, hadTooMany: boolean): void
}

/** One cache per database handle. */
export function getPageWindows(db: Knex): PageWindowCache {
  return cacheByHandle(db, createPageWindowCache)
}

const cacheByHandle = stateByOwner<Knex, PageWindowCache>()

interface RecordedStream {
  readonly window: RecordedWindow | undefined
  /**
   * A window of the stream once held too many posts: most of them are not shown, or they arrived late. From then on no window is sparse,
   * and none is without an end.
   */
  readonly isCrowded: boolean
}

interface RecordedWindow {
  /** The newest page: the end, in milliseconds since 1970. Other pages: the length in milliseconds. Undefined: no bound. */
  readonly end: number | undefined
  readonly isSparse: boolean
}

function createPageWindowCache(): PageWindowCache {
  const streams = new LRUCache<string, RecordedStream>({ maxSize: MAX_STREAMS, sizeCalculation: () => 1 })

  return {
    find(streamPage) {
      const { window, isCrowded } = streams.get(keyOf(streamPage)) ?? { window: undefined, isCrowded: false }
      if (window === undefined || (isCrowded && window.end === undefined)) return undefined
      const end = endOfWindow(streamPage.page, window.end)
      if (end !== undefined && !isFourDigitYear(end)) return undefined
      return { end, isSparse: window.isSparse && !isCrowded }
    },
    record(streamPage, posts, hadTooMany) {
      const key = keyOf(streamPage)
      const before = streams.get(key)
      streams.set(key, {
        window: windowAfterRead(streamPage.page, posts, before),
        isCrowded: hadTooMany || before?.isCrowded === true,
      })
    },
  }
}

function endOfWindow(page: TimePage, end: number | undefined): Date | undefined {
  if (end === undefined) return undefined
  const start = startOf(page)
  return new Date(start === undefined ? end : start + (isForward(page) ? end : -end))
}

/** Clients may page from the first or the last time that can be written. PostgreSQL does not read the times beyond. */
function isFourDigitYear(time: Date): boolean {
  const year = time.getUTCFullYear()
  return year >= 1 && year <= 9_999
}

/** A page that is not full shows the end of the stream: it says nothing about the windows of other pages. */
function windowAfterRead(
  page: TimePage,
  posts: FoundPosts,
  before: RecordedStream | undefined,
): RecordedWindow | undefined {
  if (posts.length > page.limit) return { end: recordedEnd(page, posts), isSparse: isSparseRange(posts) }
  if (startOf(page) !== undefined) return before?.window
  return posts.length === 0 ? undefined : { end: undefined, isSparse: false }
}

function recordedEnd(page: TimePage, posts: FoundPosts): number {
  const times = posts.map(({ createdAt }) => createdAt.getTime())
  const [earliest, latest] = [Math.min(...times), Math.max(...times)]
  const start = startOf(page)
  if (start === undefined) return earliest - NEWEST_PAGE_SLACK * (latest - earliest)
  return (isForward(page) ? latest - start : start - earliest) + OTHER_PAGE_SLACK * (latest - earliest)
}

/** Ids are in the order in which posts arrive, so their range bounds the number of posts of the whole pod. */
function isSparseRange(posts: FoundPosts): boolean {
  const ids = posts.map(({ id }) => id)
  return Math.max(...ids) - Math.min(...ids) < MAX_ID_RANGE_OF_SPARSE_WINDOW
}

function keyOf({ userId, stream, page }: StreamPage): string {
  const direction = isForward(page) ? 'after' : 'before'
  return `${userId} ${stream} ${page.limit} ${startOf(page) === undefined ? 'newest' : direction}`
}

/** The time of the page key. Undefined: the newest page. */
function startOf({ before, after }: TimePage): number | undefined {
  return (before ?? after)?.time.getTime()
}

function isForward({ before }: TimePage): boolean {
  return before === undefined
}
