import { opaqueParam } from './opaque-param.js'

/** A place between two rows of a list by time; without an id, the rows of that very millisecond are passed over. */
export interface PageKey {
  readonly time: Date
  readonly id?: number
}

/** Which part of a list by time: older than one place, or newer than another; `before` counts where both are given. */
export interface TimePage {
  readonly before?: PageKey
  readonly after?: PageKey
  readonly limit: number
}

/** Which part of a list that has another order. */
export interface IndexPage {
  readonly offset: number
  readonly limit: number
}

export interface Page<Item> {
  readonly items: readonly Item[]
  /** There are others behind the last of these. */
  readonly more: boolean
}

/** What was found when one more than the page holds was looked for. */
export function pageOf<Item>(found: readonly Item[], { limit }: { readonly limit: number }): Page<Item> {
  return { items: found.slice(0, limit), more: found.length > limit }
}

export type TimeOrder = 'newest first' | 'oldest first'

/** From the place a page names, in the direction it names; lists differ in what comes first where none is named. */
export function orderOf({ before, after }: TimePage, otherwise: TimeOrder = 'newest first'): TimeOrder {
  if (before !== undefined) return 'newest first'
  return after === undefined ? otherwise : 'oldest first'
}

/** The end of a statement that finds a page and one row more; places in the list become values of the statement. */
export interface Seek {
  /** Belongs into the name of the statement: each form has a text of its own. */
  readonly name: string
  /**
   * No page of this form has more rows. Written around a statement it tells the planner that there are few: a limit that is a
   * value could be any, and a list that looks long is planned anew for each request.
   */
  readonly most: number
  readonly condition: string
  readonly order: string
}

/** With the row that tells whether there are others. */
const ORDINARY_PAGE = 16
const LONGEST_PAGE = 101

/** As many rows as a page of about this size can have, for the planner: see `Seek.most`. */
export function mostOf({ limit }: { readonly limit: number }): number {
  return limit < ORDINARY_PAGE ? ORDINARY_PAGE : LONGEST_PAGE
}

const BEHIND_EVERY_ID = '9223372036854775807'
const BEFORE_EVERY_ID = '0'

interface SeekBy {
  /** Columns. */
  readonly time: string
  readonly id: string
  /** What comes first where the page names no place. */
  readonly otherwise?: TimeOrder
  /** The number of the first of the values, where others come before them. */
  readonly firstValue?: number
}

/** Adds what it needs to the values. The id decides between rows of one millisecond, so that none is lost between two pages. */
export function seek(page: TimePage, values: unknown[], { time, id, ...place }: SeekBy): Seek {
  const { name, most, beyond, order, limit } = seekParts(page, values, place)
  return { name, most, condition: beyond(time, id), order: `${order(time, id)} limit ${limit}` }
}

/** The same for a statement that finds a page in several places, each with columns of its own. */
export interface SeekParts extends Pick<Seek, 'name' | 'most'> {
  readonly newestFirst: boolean
  /** The moment at which the page begins; undefined: with the first post there is. */
  readonly start: string | undefined
  /** The condition. */
  beyond(time: string, id: string): string
  order(time: string, id: string): string
  /** A row more than the page holds. */
  readonly limit: string
}

export function seekParts(
  page: TimePage,
  values: unknown[],
  { otherwise, firstValue = 1 }: Omit<SeekBy, 'time' | 'id'>,
): SeekParts {
  const { before, after, limit } = page
  const place = (value: unknown) => `$${values.push(value) + firstValue - 1}`
  const newestFirst = orderOf(page, otherwise) === 'newest first'
  const direction = newestFirst ? 'desc' : 'asc'
  const key = before ?? after
  const start = key && opaqueParam(place(key.time), 'timestamptz')
  const startId = key && opaqueParam(place(key.id ?? (newestFirst ? BEFORE_EVERY_ID : BEHIND_EVERY_ID)), 'bigint')
  const most = mostOf(page)
  return {
    name: `${orderOf(page, otherwise)}${key === undefined ? '' : ' beyond'}${most === ORDINARY_PAGE ? '' : ', long'}`,
    most,
    newestFirst,
    start,
    beyond: (time, id) =>
      key === undefined ? '' : `and (${time}, ${id}) ${newestFirst ? '<' : '>'} (${start}, ${startId})`,
    order: (time, id) => `order by ${time} ${direction}, ${id} ${direction}`,
    limit: place(limit + 1),
  }
}

/** Conditions that a list may have; those that it has name its statement, so that each set is planned for the index it needs. */
interface Conditions {
  readonly conditions: readonly string[]
  readonly names: readonly string[]
  narrow(name: string, condition: (...places: string[]) => string, ...more: readonly unknown[]): void
}

/** Adds what the conditions need to the values. */
export function openConditions(values: unknown[]): Conditions {
  const conditions: string[] = []
  const names: string[] = []
  return {
    conditions,
    names,
    narrow(name, condition, ...more) {
      const places = more.map((value) => `$${values.push(value)}`)
      conditions.push(`and ${condition(...places)}`)
      names.push(name)
    },
  }
}
