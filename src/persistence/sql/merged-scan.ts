import type { KeysetClauseBuilder } from './keyset-page.js'

/** Posts in the order of an index, as parts of a statement. */
export interface PostScan {
  /** Tables and conditions, up to the end of `where`. */
  readonly from: string
  /** A condition that is checked for each post the index returns, such as visibility. */
  readonly check: string
  /** The last two columns of the index: the time and the id of a post. */
  readonly time: string
  readonly id: string
  /** The scan may return a post more than once. */
  readonly hasDuplicates?: true
}

interface ScanBounds {
  /** `and` with a bound on the time, or empty. */
  readonly timeBound: string
  readonly maxRows: string
}

/**
 * Selects the first posts of a scan that a page can hold, as rows of `id` and `time`.
 *
 * The limit has to be opaque to the planner: see `opaqueParam`. Where it expects few rows it would read all of them and sort, and some
 * authors and tags have many.
 */
export function firstPostsSql(
  page: KeysetClauseBuilder,
  { from, check, time, id, hasDuplicates }: PostScan,
  { timeBound = '', maxRows = page.limit }: Partial<ScanBounds> = {},
): string {
  return `
    select ${hasDuplicates ? 'distinct' : ''} ${id} as id, ${time} as time from ${from} and ${check} ${timeBound} ${page.pastKey(time, id)}
    ${page.orderBy(time, id)} limit ${maxRows}`
}

/**
 * Builds a statement that merges the first posts of several index scans into one page.
 *
 * One `or` over all conditions would read whole tables. Here each scan returns a page at most, and the posts found by earlier scans bound
 * how far the later ones read. Each set of posts is a materialized CTE with rows of `id` and `time`.
 */
export interface MergedScans {
  /** Adds a CTE for the steps that follow. */
  defineRows(name: string, rows: string): void
  /** Adds a set of posts that may be on the page: the first posts of a scan, or a select. */
  addPosts(name: string, posts: PostScan | string): void
  /**
   * Adds the first posts of each of any number of authors or tags: the rows of the CTE `keys`, each named `key` in the scan. The first step
   * reads a few of the newest posts of each key; these show where the page ends at the latest. The second step reads up to there.
   * Without the condition nothing is read.
   */
  addPostsOfEachKey(name: string, keys: string, scan: PostScan, condition?: string): void
  toSql(): string
}

export function mergeScans(page: KeysetClauseBuilder): MergedScans {
  const steps: string[] = []
  const postSets: string[] = []
  const defineRows = (name: string, rows: string) => {
    steps.push(`${name} as materialized (${rows})`)
  }
  const addPosts = (name: string, posts: PostScan | string) => {
    defineRows(name, typeof posts === 'string' ? posts : firstPostsSql(page, posts))
    postSets.push(name)
  }

  return {
    defineRows,
    addPosts,
    addPostsOfEachKey(name, keys, scan, condition = 'true') {
      const [endBefore, heads, end] = [`${name}_end_before`, `${name}_heads`, `${name}_end`]
      defineRows(endBefore, pageEndSql(page, postSets))
      // With few keys each gives more: together the heads of half of the keys fill a page.
      const maxRows = `(select greatest(1, ceil(2.0 * ${page.limit} / nullif(count(*), 0)))::bigint from ${keys})`
      const headsOfKey = firstPostsSql(page, scan, { timeBound: withinPageEndSql(page, scan.time, endBefore), maxRows })
      defineRows(heads, `select key, head.* from ${keys} cross join lateral (${headsOfKey}) as head where ${condition}`)
      defineRows(end, pageEndSql(page, [...postSets, heads]))
      const keysOnPage = `select distinct key from ${heads} where true ${withinPageEndSql(page, 'time', end)}`
      const postsOfKey = firstPostsSql(page, scan, { timeBound: withinPageEndSql(page, scan.time, end) })
      addPosts(
        name,
        `select posts_of_key.* from (${keysOnPage}) as keys cross join lateral (${postsOfKey}) as posts_of_key`,
      )
    },
    toSql() {
      return `
        with ${steps.join(', ')}
        select id, time from (${unionSql(postSets)}) as merged ${page.orderBy('time', 'id')} limit ${page.limit}`
    },
  }
}

/** Selects the posts of all sets, each post once. */
function unionSql(postSets: readonly string[]): string {
  return `select distinct id, time from (${postSets.map((set) => `select id, time from ${set}`).join(' union all ')}) as all_sets`
}

/**
 * Selects the time of the last post of a page made of these sets alone; infinity if they do not fill it. No later post can be on the
 * page.
 */
function pageEndSql(page: KeysetClauseBuilder, postSets: readonly string[]): string {
  const noEnd = `${page.isNewestFirst ? '-' : ''}infinity`
  if (postSets.length === 0) return `select timestamptz '${noEnd}' as time`
  return `
    select coalesce((
      select time from (${unionSql(postSets)}) as merged
      ${page.orderBy('time', 'id')} offset ${page.limit} - 1 limit 1
    ), '${noEnd}') as time`
}

/** The condition that a time is not past a page end, which is the row of a CTE. */
function withinPageEndSql(page: KeysetClauseBuilder, time: string, pageEnd: string): string {
  return `and ${time} ${page.isNewestFirst ? '>=' : '<='} (select time from ${pageEnd})`
}
