import type { Scan } from './gather.js'
import type { SeekParts } from './paged.js'
import type { PostQuery } from './posts-statement.js'
import type { Sight } from './sight.js'
import { mayBeOn } from './stream-conditions.js'

/** More than this are not near: somebody has written much in that time, or nobody knows how much. */
const MOST_NEAR = 1_000

const isPrivatelyThere = `exists (select from near where near.id = posts.id and near.counts)`

/**
 * Posts of a page that is likely to lie between its beginning and a moment. All there is in that time is read at once, of any
 * number of authors and tags: that takes a fraction of what it takes to ask each of them for the newest of theirs. The page is
 * right if it is full. If it is not, or there is too much to read, it says nothing about where the posts are.
 */
export interface NearPage {
  /** Names rows for what follows. */
  know(name: string, rows: string): void
  /** A scan is read up to the moment, if a condition holds; of some only what is public counts. */
  read(
    scan: Pick<Scan, 'from' | 'time' | 'id'>,
    options?: { readonly whether?: string; readonly onlyPublic?: true },
  ): void
  /** The same of every post there is, if these conditions hold for it; it is row `recent`. */
  walk(conditions: { readonly whether: string; readonly which: string }): void
  which: PostQuery['which']
}

export function nearPage(page: SeekParts, sight: Sight, moment: string): NearPage {
  const steps: string[] = []
  const sets: string[] = []
  const limits = [`(select count(*) from near) <= ${MOST_NEAR}`]
  // Between two ends the planner expects few; with one it would expect a third of all, and rather read a whole table.
  const [from, to] = page.newestFirst ? [moment, `'infinity'`] : [`'-infinity'`, moment]
  const within = ({ time, id }: Pick<Scan, 'time' | 'id'>) =>
    `and ${time} between ${from} and ${to} ${page.beyond(time, id)}`
  const know = (name: string, rows: string) => {
    steps.push(`${name} as materialized (${rows})`)
  }

  return {
    know,
    read(scan, { whether = 'true', onlyPublic } = {}) {
      sets.push(
        `select ${scan.id} as id, ${scan.time} as time, ${!onlyPublic} as counts from ${scan.from} and ${whether} ${within(scan)}`,
      )
    },
    walk({ whether, which }) {
      know(
        'recent',
        `select id, created_at as time, author_id, public from posts
         where ${whether} ${within({ time: 'created_at', id: 'id' })}
         ${page.order('created_at', 'id')} limit ${MOST_NEAR}`,
      )
      sets.push(`select id, time, true from recent where ${which}`)
      limits.push(`(select count(*) from recent) < ${MOST_NEAR}`)
    },
    which(columns) {
      know('near', `${sets.join(' union all ')} limit ${MOST_NEAR} + 1`)
      return `
        with ${steps.join(', ')}
        select ${columns}
        from (select distinct id, time from near) as place
        cross join lateral (
          select * from posts
          where posts.id = place.id and (posts.public or ${isPrivatelyThere}) and ${mayBeOn(sight, 'near')}
          offset 0
        ) as posts
        where ${limits.join(' and ')}
        ${page.order('place.time', 'place.id')} limit ${page.limit}`
    },
  }
}
