import type { PostQuery } from '../posts/posts-statement.js'
import type { SeekParts } from '../sql/keyset-page.js'
import type { Scan } from '../sql/merged-scan.js'
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
  const within = timeOf(page, moment)
  const found = (name: string) => `(select ${name} from near)::bigint[]`
  const know = (name: string, rows: string) => {
    steps.push(`${name} as materialized (${rows})`)
  }

  return {
    know,
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
        where posts.id = any(${found('ids')}) and cardinality(${found('ids')}) <= ${MOST_NEAR}
          ${page.beyond('posts.created_at', 'posts.id')} and ${condition} and ${mayBeOn(found('ids'))}
        ${page.order('posts.created_at', 'posts.id')} limit ${page.limit}`
    },
  }
}

/** The same where few posts of all were written in that time: each of them is looked at. */
export interface ClosePage {
  /** Who has written these: an array of ids. */
  readonly authors: string
  /** Of some rows in that time an array of ids. No more are read than belong to these few posts. */
  idsOf(places: Places): string
  /** Those posts for which a condition on id, author and `public` holds, and which the reader has not hidden. */
  which(condition: string): PostQuery['which']
}

export function closePage(page: SeekParts, moment: string): ClosePage {
  const within = timeOf(page, moment)
  const few = `
    select id, created_at, author_id, public from posts where ${within('created_at')}
    ${page.order('created_at', 'id')} limit ${MOST_NEAR} + 1`
  return {
    authors: 'array(select author_id from few)',
    idsOf: ({ from, time, id }) => `array(select ${id} from ${from} and ${within(time)})`,
    which: (condition) => (columns) =>
      `
      with few as materialized (${few})
      select ${columns} from posts
      where posts.id = any(array(select posts.id from few as posts where ${condition}))
        and (select count(*) from few) <= ${MOST_NEAR}
        ${page.beyond('posts.created_at', 'posts.id')} and ${mayBeOn('array(select id from few)')}
      ${page.order('posts.created_at', 'posts.id')} limit ${page.limit}`,
  }
}

/** Between two ends the planner expects few; with one it would expect a third of all, and rather read a whole table. */
function timeOf({ newestFirst, start }: SeekParts, moment: string): (time: string) => string {
  const [from, to] = newestFirst ? [moment, start ?? `'infinity'`] : [start ?? `'-infinity'`, moment]
  return (time) => `${time} between ${from} and ${to}`
}
