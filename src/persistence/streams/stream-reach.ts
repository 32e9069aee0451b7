import type { Knex } from 'knex'
import { LRUCache } from 'lru-cache'
import type { ListedPost } from '../posts/list-posts.js'
import type { TimePage } from '../sql/keyset-page.js'

/** So many streams are remembered; of others it is learnt anew. */
const MOST_STREAMS = 20_000
/** A few posts may have gone since then. */
const SLACK = 0.25
/** Elsewhere people may have written at another pace. */
const SLACK_ELSEWHERE = 1
/** Among so many posts of all a page is found by looking at each of them. */
const FEW_POSTS = 100

interface Place {
  readonly userId: number
  readonly stream: string
  readonly page: TimePage
}

/** Where a page of a stream is likely to be. */
export interface Reach {
  /** It ends there; undefined: it is the newest one, and holds all there is. */
  readonly moment: Date | undefined
  /** Few posts of all were written in that time. */
  readonly close: boolean
}

type Found = readonly Pick<ListedPost, 'id' | 'createdAt'>[]

/**
 * How far pages of streams reached when this process last read them. It only tells where to look first: what is there is read
 * from the database each time, and what is no page is looked for everywhere.
 */
export interface StreamReaches {
  /** Undefined: nobody knows. */
  of(place: Place): Reach | undefined
  /** These were found, one more than the page holds or all there are; first there may have been too much to read. */
  learn(place: Place, found: Found, tooMuch: boolean): void
}

export function reachesOf(db: Knex): StreamReaches {
  const known = reaches.get(db) ?? openReaches()
  reaches.set(db, known)
  return known
}

const reaches = new WeakMap<Knex, StreamReaches>()

interface Known {
  /** Of the newest page when it ended, of others how many milliseconds they took up. */
  readonly reach: { readonly end: number | undefined; readonly close: boolean } | undefined
  /** What is not shown lies between, or posts have come in another order than they were written: nothing is tried but a moment. */
  readonly crowded: boolean
}

function openReaches(): StreamReaches {
  const known = new LRUCache<string, Known>({ maxSize: MOST_STREAMS, sizeCalculation: () => 1 })

  return {
    of(place) {
      const { reach, crowded } = known.get(keyOf(place)) ?? { reach: undefined, crowded: false }
      if (reach === undefined || (crowded && reach.end === undefined)) return undefined
      const moment = momentOf(place.page, reach.end)
      if (moment !== undefined && !isTold(moment)) return undefined
      return { moment, close: reach.close && !crowded }
    },
    learn(place, found, tooMuch) {
      const key = keyOf(place)
      const before = known.get(key)
      known.set(key, { reach: learnt(place.page, found, before), crowded: tooMuch || before?.crowded === true })
    },
  }
}

function momentOf(page: TimePage, end: number | undefined): Date | undefined {
  if (end === undefined) return undefined
  const start = startOf(page)
  return new Date(start === undefined ? end : start + (isForward(page) ? end : -end))
}

/** Clients page from any time that can be written, and beyond its end there is none. */
function isTold(moment: Date): boolean {
  const year = moment.getUTCFullYear()
  return year >= 1 && year <= 9_999
}

/** Where a stream ends says nothing of its other pages. */
function learnt(page: TimePage, found: Found, before: Known | undefined): Known['reach'] {
  if (found.length > page.limit) return { end: endOf(page, found), close: areClose(found) }
  if (startOf(page) !== undefined) return before?.reach
  return found.length === 0 ? undefined : { end: undefined, close: false }
}

function endOf(page: TimePage, found: Found): number {
  const times = found.map(({ createdAt }) => createdAt.getTime())
  const [earliest, latest] = [Math.min(...times), Math.max(...times)]
  const start = startOf(page)
  if (start === undefined) return earliest - SLACK * (latest - earliest)
  return (isForward(page) ? latest - start : start - earliest) + SLACK_ELSEWHERE * (latest - earliest)
}

/** Ids are given in the order in which posts come. */
function areClose(found: Found): boolean {
  const ids = found.map(({ id }) => id)
  return Math.max(...ids) - Math.min(...ids) < FEW_POSTS
}

function keyOf({ userId, stream, page }: Place): string {
  const direction = isForward(page) ? 'after' : 'before'
  return `${userId} ${stream} ${page.limit} ${startOf(page) === undefined ? 'newest' : direction}`
}

/** Undefined: it begins with the newest post there is. */
function startOf({ before, after }: TimePage): number | undefined {
  return (before ?? after)?.time.getTime()
}

function isForward({ before }: TimePage): boolean {
  return before === undefined
}
