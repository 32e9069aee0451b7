import { opaqueParam } from './opaque-param.js'

/** The position between two rows of a list by time. Without an id it skips all rows of that millisecond. */
export interface PageKey {
  readonly time: Date
  readonly id?: number
}

/** A page of a list by time: the rows before or after a key. `before` wins if both are given. */
export interface TimePage {
  readonly before?: PageKey
  readonly after?: PageKey
  readonly limit: number
}

/** A page of a list in another order, by row number. */
export interface OffsetPage {
  readonly offset: number
  readonly limit: number
}

export interface Page<Item> {
  readonly items: readonly Item[]
  /** The list continues after the last item. */
  readonly hasMore: boolean
}

/** Builds a page from the rows of a statement that reads one row more than the page holds. */
export function toPage<Item>(rows: readonly Item[], { limit }: { readonly limit: number }): Page<Item> {
  return { items: rows.slice(0, limit), hasMore: rows.length > limit }
}

export type TimeOrder = 'newest first' | 'oldest first'

/** `before` reads backwards in time, `after` forwards. Without a key the list decides. */
export function pageOrder({ before, after }: TimePage, withoutKey: TimeOrder = 'newest first'): TimeOrder {
  if (before !== undefined) return 'newest first'
  return after === undefined ? withoutKey : 'oldest first'
}

/** The end of a statement that reads a page and one row more. */
export interface KeysetClauses {
  /** Part of the name of the prepared statement: each name has one text. */
  readonly name: string
  /**
   * The most rows that a page of this name can have, as a literal `limit` around the statement. It keeps the generic plan: for a limit
   * that is a parameter the planner assumes a long list, and plans each request again.
   */
  readonly maxRows: number
  /** `and (time, id) < (…)`, or empty. */
  readonly condition: string
  /** `order by … limit …`. */
  readonly order: string
}

/** Default page size and largest page size of the API, and one row more. */
const ORDINARY_PAGE_ROWS = 16
const MAX_PAGE_ROWS = 101

/** Rounds the size of a page up to one of two literals: see `KeysetClauses.maxRows`. */
export function maxRowsOfPage({ limit }: { readonly limit: number }): number {
  return limit < ORDINARY_PAGE_ROWS ? ORDINARY_PAGE_ROWS : MAX_PAGE_ROWS
}

const MAX_ID = '9223372036854775807'
const BELOW_MIN_ID = '0'

interface KeysetOptions {
  /** The columns. */
  readonly time: string
  readonly id: string
  /** The order of a page without a key. */
  readonly orderWithoutKey?: TimeOrder
  /** The number of the placeholder of the first value, if other values come before them. */
  readonly firstValue?: number
}

/** Writes the clauses of a page and appends their parameters to the values. The id orders rows of one millisecond. */
export function keysetClauses(
  page: TimePage,
  values: unknown[],
  { time, id, ...options }: KeysetOptions,
): KeysetClauses {
  const { name, maxRows, pastKey, orderBy, limit } = keysetClausesFor(page, values, options)
  return { name, maxRows, condition: pastKey(time, id), order: `${orderBy(time, id)} limit ${limit}` }
}

/** Writes the same clauses for a statement that reads one page from several tables, for the columns of each. */
export interface KeysetClauseBuilder extends Pick<KeysetClauses, 'name' | 'maxRows'> {
  readonly isNewestFirst: boolean
  /** The time of the key, as an expression. Undefined: the page begins at the end of the list. */
  readonly startTime: string | undefined
  /** The condition on rows after the key, or empty. */
  pastKey(time: string, id: string): string
  orderBy(time: string, id: string): string
  /** One row more than the page holds, as an expression. */
  readonly limit: string
}

export function keysetClausesFor(
  page: TimePage,
  values: unknown[],
  { orderWithoutKey, firstValue = 1 }: Omit<KeysetOptions, 'time' | 'id'>,
): KeysetClauseBuilder {
  const { before, after, limit } = page
  const placeholder = (value: unknown) => `$${values.push(value) + firstValue - 1}`
  const order = pageOrder(page, orderWithoutKey)
  const isNewestFirst = order === 'newest first'
  const direction = isNewestFirst ? 'desc' : 'asc'
  const key = before ?? after
  const startTime = key && opaqueParam(placeholder(key.time), 'timestamptz')
  const startId = key && opaqueParam(placeholder(key.id ?? (isNewestFirst ? BELOW_MIN_ID : MAX_ID)), 'bigint')
  const maxRows = maxRowsOfPage(page)
  return {
    name: `${order}${key === undefined ? '' : ' past key'}${maxRows === ORDINARY_PAGE_ROWS ? '' : ', long'}`,
    maxRows,
    isNewestFirst,
    startTime,
    pastKey: (time, id) =>
      key === undefined ? '' : `and (${time}, ${id}) ${isNewestFirst ? '<' : '>'} (${startTime}, ${startId})`,
    orderBy: (time, id) => `order by ${time} ${direction}, ${id} ${direction}`,
    limit: placeholder(limit + 1),
  }
}

/** Optional conditions of a list. Their names are part of the statement's name, so that each combination has a plan of its own. */
interface ConditionList {
  readonly conditions: readonly string[]
  readonly names: readonly string[]
  /** Appends a condition, and its parameters to the values. */
  addCondition(name: string, condition: (...placeholders: string[]) => string, ...parameters: readonly unknown[]): void
}

export function createConditionList(values: unknown[]): ConditionList {
  const conditions: string[] = []
  const names: string[] = []
  return {
    conditions,
    names,
    addCondition(name, condition, ...parameters) {
      const placeholders = parameters.map((value) => `$${values.push(value)}`)
      conditions.push(`and ${condition(...placeholders)}`)
      names.push(name)
    },
  }
}
