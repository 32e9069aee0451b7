import type { Knex } from 'knex'
import type { ListedPost } from './listed-posts.js'
import type { TimePage } from './paged.js'

/** So many streams are remembered; of others it is learnt anew. */
const MOST_STREAMS = 20_000
/** A few posts may have gone since then. */
const SLACK = 0.25
/** Elsewhere people may have written at another pace. */
const SLACK_ELSEWHERE = 1

interface Place {
  readonly userId: number
  readonly stream: string
  readonly page: TimePage
}

/**
 * How far a page of a stream reached when this process last read one. It only tells where to look first: what is there is read
 * from the database each time, and a page that is not full there is looked for everywhere.
 */
export interface StreamReach {
  /** The moment at which a page is likely to end; undefined: nobody knows. */
  momentOf(place: Place): Date | undefined
  /** These were found, the last of them behind the page. */
  learn(place: Place, found: readonly Pick<ListedPost, 'createdAt'>[]): void
}

export function reachOf(db: Knex): StreamReach {
  const known = reaches.get(db) ?? openReach()
  reaches.set(db, known)
  return known
}

const reaches = new WeakMap<Knex, StreamReach>()

function openReach(): StreamReach {
  /** By stream, those used last at the end: of the newest page where it ended, of others how many milliseconds they took up. */
  const known = new Map<string, number>()

  return {
    momentOf(place) {
      const reach = known.get(keyOf(place))
      if (reach === undefined) return undefined
      const start = startOf(place.page)
      return new Date(start === undefined ? reach : start + (isForward(place.page) ? reach : -reach))
    },
    learn(place, found) {
      const [first, last] = [found[0]?.createdAt.getTime(), found.at(-1)?.createdAt.getTime()]
      if (first === undefined || last === undefined) return
      const start = startOf(place.page)
      const key = keyOf(place)
      known.delete(key)
      known.set(
        key,
        start === undefined ? last - SLACK * (first - last) : (1 + SLACK_ELSEWHERE) * Math.abs(start - last),
      )
      if (known.size <= MOST_STREAMS) return
      for (const oldest of known.keys()) {
        known.delete(oldest)
        return
      }
    },
  }
}

function keyOf({ userId, stream, page }: Place): string {
  return `${userId} ${stream} ${page.limit} ${startOf(page) === undefined ? 'newest' : 'elsewhere'}`
}

/** Undefined: it begins with the newest post there is. */
function startOf({ before, after }: TimePage): number | undefined {
  return (before ?? after)?.time.getTime()
}

function isForward({ before }: TimePage): boolean {
  return before === undefined
}
