import type { Knex } from 'knex'

/** A page of a list in the order of ids, newest first: the rows before or after an id. */
export interface IdPage {
  readonly before?: number | undefined
  readonly after?: number | undefined
  readonly limit: number
}

/** The rows of a page, and whether the list continues in each direction. */
export interface ListPage<Item> {
  readonly items: readonly Item[]
  readonly hasOlder: boolean
  readonly hasNewer: boolean
}

/** Reads a page with one row more, which shows whether the list continues. */
export async function readIdPage<Item extends { readonly id: number }>(
  query: Knex.QueryBuilder,
  { before, after, limit }: IdPage,
  id = 'id',
): Promise<ListPage<Item>> {
  const isTowardsNewer = before === undefined && after !== undefined
  query.orderBy(id, isTowardsNewer ? 'asc' : 'desc').limit(limit + 1)
  if (before !== undefined) query.where(id, '<', before)
  else if (after !== undefined) query.where(id, '>', after)
  const rows: readonly Item[] = await query
  const items = rows.slice(0, limit)
  const hasMore = rows.length > limit
  if (isTowardsNewer) return { items: items.reverse(), hasOlder: true, hasNewer: hasMore }
  return { items, hasOlder: hasMore, hasNewer: before !== undefined }
}
