import type { SelectPosts } from '../posts/posts-statement.js'
import type { KeysetClauseBuilder } from '../sql/keyset-page.js'
import type { PostScan } from '../sql/merged-scan.js'
import { notHiddenOrBlockedSql } from './stream-conditions.js'

/** Posts of a window beyond which the statement returns none, and the page is read in another way. */
const MAX_POSTS_OF_WINDOW = 1_000

/** A scan that reads all rows of the window. */
export type WindowScan = Pick<PostScan, 'from' | 'time' | 'id'>

/**
 * Builds a statement that reads a page from a time window in which the page is likely to lie (see `page-windows.ts`).
 *
 * It reads all candidates of the window at once, for any number of authors and tags. That takes a fraction of reading the newest posts of
 * each author. The page is right if it is full. Otherwise, and if the window has too many posts, the caller reads the whole stream.
 */
export interface WindowPage {
  /** Adds a CTE for the steps that follow. */
  defineRows(name: string, rows: string): void
  /** Adds a set of posts that may be on the page: the posts of these scans in the window. */
  addCandidates(name: string, scans: readonly WindowScan[]): void
  /** The ids of a set of candidates, as an array expression. */
  candidateIds(name: string): string
  /** Selects the candidates that meet the condition and are neither hidden nor by a blocked author. */
  selectPosts(condition: string): SelectPosts
}

export function createWindowPage(page: KeysetClauseBuilder, windowEnd: string): WindowPage {
  const steps: string[] = []
  const candidateSets = new Map<string, string>()
  const inWindow = windowCondition(page, windowEnd)
  const candidateIds = (name: string) => `(select ${name} from candidates)::bigint[]`
  const defineRows = (name: string, rows: string) => {
    steps.push(`${name} as materialized (${rows})`)
  }

  return {
    defineRows,
    addCandidates(name, scans) {
      const selects = scans.map(({ from, time, id }) => `select ${id} from ${from} and ${inWindow(time)}`)
      candidateSets.set(name, `array(${selects.join(' union all ')} limit ${MAX_POSTS_OF_WINDOW} + 1)`)
    },
    candidateIds,
    selectPosts(condition) {
      const names = [...candidateSets.keys()]
      const columnsOfSets = [...candidateSets].map(([name, ids]) => `${ids} as ${name}`)
      defineRows(
        'candidates',
        `select *, ${names.join(' || ')} as all_ids from (select ${columnsOfSets.join(', ')} offset 0) as candidate_sets`,
      )
      const allIds = candidateIds('all_ids')
      return (columns) => `
        with ${steps.join(', ')}
        select ${columns} from posts
        where posts.id = any(${allIds}) and cardinality(${allIds}) <= ${MAX_POSTS_OF_WINDOW}
          ${page.pastKey('posts.created_at', 'posts.id')} and ${condition} and ${notHiddenOrBlockedSql(allIds)}
        ${page.orderBy('posts.created_at', 'posts.id')} limit ${page.limit}`
    },
  }
}

/**
 * Builds a statement for a sparse window, one in which the whole pod has few posts. It reads all of these by `posts_newest`, and checks
 * each for the stream. Authors and tags are not read one by one.
 */
export interface SparseWindowPage {
  /** The authors of the posts of the window, as an array expression of person ids. */
  readonly authorIds: string
  /** The posts of a scan in the window, as an array expression of ids. */
  idsInWindow(scan: WindowScan): string
  /**
   * Selects the posts of the window that meet the condition and are neither hidden nor by a blocked author. The condition may use the
   * columns id, author_id and public of `posts`.
   */
  selectPosts(condition: string): SelectPosts
}

export function createSparseWindowPage(page: KeysetClauseBuilder, windowEnd: string): SparseWindowPage {
  const inWindow = windowCondition(page, windowEnd)
  const windowPosts = `
    select id, created_at, author_id, public from posts where ${inWindow('created_at')}
    ${page.orderBy('created_at', 'id')} limit ${MAX_POSTS_OF_WINDOW} + 1`
  return {
    authorIds: 'array(select author_id from window_posts)',
    idsInWindow: ({ from, time, id }) => `array(select ${id} from ${from} and ${inWindow(time)})`,
    selectPosts: (condition) => (columns) =>
      `
      with window_posts as materialized (${windowPosts})
      select ${columns} from posts
      where posts.id = any(array(select posts.id from window_posts as posts where ${condition}))
        and (select count(*) from window_posts) <= ${MAX_POSTS_OF_WINDOW}
        ${page.pastKey('posts.created_at', 'posts.id')} and ${notHiddenOrBlockedSql('array(select id from window_posts)')}
      ${page.orderBy('posts.created_at', 'posts.id')} limit ${page.limit}`,
  }
}

/**
 * The condition that a time is in the window. It always has two bounds: with one, the planner expects a third of all rows and may read
 * a whole table.
 */
function windowCondition(
  { isNewestFirst, startTime }: KeysetClauseBuilder,
  windowEnd: string,
): (time: string) => string {
  const [from, to] = isNewestFirst ? [windowEnd, startTime ?? `'infinity'`] : [startTime ?? `'-infinity'`, windowEnd]
  return (time) => `${time} between ${from} and ${to}`
}
