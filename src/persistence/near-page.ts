import type { Scan } from './gather.js'
import type { SeekParts } from './paged.js'
import type { PostQuery } from './posts-statement.js'
import { mayBeOn } from './stream-conditions.js'

/** More than this are not near: somebody has written much in that time, or nobody knows how much. */
const MOST_NEAR = 1_000

/** A scan that is read between two moments. */
export type Places = Pick<Scan, 'from' | 'time' | 'id'>

/**
 * Posts of a page that is likely to be near. All there is in that time is read at once, of any number of authors and tags: that
 * takes a fraction of what it takes to ask each of them for the newest of theirs. The page is right if it is full. If it is not,
 * or if there is too much to read, it says nothing about where the posts are.
 */
export interface NearPage {
  /** Names rows for what follows. */
  know(name: string, rows: string): void
  /** Names the posts of everybody in that time. */
  walk(name: string): void
  /** Finds posts that may be on the page. */
  find(name: string, places: readonly Places[]): void
  /** Of such posts an array of ids. */
  found(name: string): string
  /** What was found, as far as a condition holds and the reader has not hidden it. */
  which(condition: string): PostQuery['which']
}

export function nearPage(page: SeekParts, moment: string): NearPage {
  const steps: string[] = []
  const sets = new Map<string, string>()
  const found = (name: string) => `(select ${name} from near)::bigint[]`
  const limits = [`cardinality(${found('ids')}) <= ${MOST_NEAR}`]
  // Between two ends the planner expects few; with one it would expect a third of all, and rather read a whole table.
  const [from, to] = page.newestFirst ? [moment, page.start ?? `'infinity'`] : [page.start ?? `'-infinity'`, moment]
  const within = (time: string) => `${time} between ${from} and ${to}`
  const know = (name: string, rows: string) => {
    steps.push(`${name} as materialized (${rows})`)
  }

  return {
    know,
    walk(name) {
      know(
        name,
        `select id, created_at, author_id, public from posts where ${within('created_at')}
         ${page.order('created_at', 'id')} limit ${MOST_NEAR} + 1`,
      )
      limits.push(`(select count(*) from ${name}) <= ${MOST_NEAR}`)
    },
    find(name, places) {
      const each = places.map(({ from, time, id }) => `select ${id} from ${from} and ${within(time)}`)
      sets.set(name, `array(${each.join(' union all ')} limit ${MOST_NEAR} + 1)`)
    },
    found,
    which(condition) {
      const names = [...sets.keys()]
      const each = [...sets].map(([name, ids]) => `${ids} as ${name}`)
      know('near', `select *, ${names.join(' || ')} as ids from (select ${each.join(', ')} offset 0) as sets`)
      return (columns) => `
        with ${steps.join(', ')}
        select ${columns} from posts
        where posts.id = any(${found('ids')}) and ${limits.join(' and ')} ${page.beyond('posts.created_at', 'posts.id')}
          and ${condition} and ${mayBeOn(found('ids'))}
        ${page.order('posts.created_at', 'posts.id')} limit ${page.limit}`
    },
  }
}
