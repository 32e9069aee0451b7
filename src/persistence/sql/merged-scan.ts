import type { SeekParts } from './keyset-page.js'

/** Posts in the order of an index. */
export interface Scan {
  /** Tables and conditions, up to the end of `where`. */
  readonly from: string
  /** Whether the reader is shown one of them; looked at for each that is found. */
  readonly check: string
  /** The last two columns of the index: when, and which post. */
  readonly time: string
  readonly id: string
  /** It may come to one post more than once. */
  readonly repeats?: true
}

interface Bounds {
  readonly within: string
  readonly count: string
}

/**
 * The first of a scan that a page can hold, as rows of `id` and `time`. How many these are must not be seen by the planner:
 * where it expects fewer it would read all there are and sort them, and some have much more than others.
 */
export function firstOf(
  page: SeekParts,
  { from, check, time, id, repeats }: Scan,
  { within = '', count = page.limit }: Partial<Bounds> = {},
): string {
  return `
    select ${repeats ? 'distinct' : ''} ${id} as id, ${time} as time from ${from} and ${check} ${within} ${page.beyond(time, id)}
    ${page.order(time, id)} limit ${count}`
}

/**
 * A statement that gathers one page from many places, each of which is read in the order of an index. One `or` for all of them
 * would read whole tables; here each place gives a page at most, and what the first of them give tells how far the next ones
 * have to look. Every set of posts is one of rows of `id` and `time`.
 */
export interface MergedScan {
  /** Names rows for the steps that follow. */
  know(name: string, rows: string): void
  /** Names a set of posts, each of which may be on the page: the first of a scan, or rows. */
  find(name: string, posts: Scan | string): void
  /**
   * Those of any number of authors or tags: a first look at the newest of each tells how far the page can reach, a second one
   * reads no further. The scan names each key `key`; without the condition there is nothing to look for.
   */
  findOfEach(name: string, keys: string, scan: Scan, condition?: string): void
  statement(): string
}

export function gather(page: SeekParts): MergedScan {
  const steps: string[] = []
  const sets: string[] = []
  const know = (name: string, rows: string) => {
    steps.push(`${name} as materialized (${rows})`)
  }
  const find = (name: string, posts: Scan | string) => {
    know(name, typeof posts === 'string' ? posts : firstOf(page, posts))
    sets.push(name)
  }

  return {
    know,
    find,
    findOfEach(name, keys, scan, condition = 'true') {
      const [before, heads, edge] = [`before_${name}`, `${name}_heads`, `${name}_edge`]
      know(before, edgeOf(page, sets))
      // Few keys give more each: the heads of half of them are enough for a page.
      const count = `(select greatest(1, ceil(2.0 * ${page.limit} / nullif(count(*), 0)))::bigint from ${keys})`
      const first = firstOf(page, scan, { within: within(page, scan.time, before), count })
      know(heads, `select key, head.* from ${keys} cross join lateral (${first}) as head where ${condition}`)
      know(edge, edgeOf(page, [...sets, heads]))
      const some = `select distinct key from ${heads} where true ${within(page, 'time', edge)}`
      const all = firstOf(page, scan, { within: within(page, scan.time, edge) })
      find(name, `select found.* from (${some}) as keys cross join lateral (${all}) as found`)
    },
    statement() {
      return `
        with ${steps.join(', ')}
        select id, time from (${together(sets)}) as found ${page.order('time', 'id')} limit ${page.limit}`
    },
  }
}

/** Each of them once. */
function together(sets: readonly string[]): string {
  return `select distinct id, time from (${sets.map((set) => `select id, time from ${set}`).join(' union all ')}) as each`
}

/** Where a page ends that is filled by these alone; infinitely far if it is not. Nothing beyond can be on the page. */
function edgeOf(page: SeekParts, sets: readonly string[]): string {
  const nowhere = `${page.newestFirst ? '-' : ''}infinity`
  if (sets.length === 0) return `select timestamptz '${nowhere}' as time`
  return `
    select coalesce((
      select time from (${together(sets)}) as found
      ${page.order('time', 'id')} offset ${page.limit} - 1 limit 1
    ), '${nowhere}') as time`
}

function within(page: SeekParts, time: string, edge: string): string {
  return `and ${time} ${page.newestFirst ? '>=' : '<='} (select time from ${edge})`
}
