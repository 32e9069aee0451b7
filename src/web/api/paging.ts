import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import {
  type OffsetPage,
  type Page,
  type PageKey,
  pageOrder,
  type TimeOrder,
  type TimePage,
} from '../../persistence/sql/keyset-page.js'
import { readTime } from '../schemas/times.js'
import { createPageLinks, sendLinks } from './page-links.js'

const DEFAULT_ITEMS = 15
const MAX_ITEMS = 100
/** More pages than any list has. Larger numbers would overflow the offset in the database. */
const LAST_PAGE = 1_000_000_000

const perPage = Type.Optional(
  Type.Integer({
    default: DEFAULT_ITEMS,
    description: `Items per page, 1 to ${MAX_ITEMS}. Out-of-range values are clamped.`,
  }),
)
const tieBreak = (name: string) =>
  Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: `Part of page links: separates items of the same millisecond as \`${name}\`.`,
    }),
  )

/** Query parameters of a list in order of time; a route spreads them into its own. */
export const timePaging = {
  before: Type.Optional(
    Type.String({
      description: 'Only items older than this time, newest first. Takes precedence over `after`.',
    }),
  ),
  before_id: tieBreak('before'),
  after: Type.Optional(Type.String({ description: 'Only items newer than this time, oldest first.' })),
  after_id: tieBreak('after'),
  per_page: perPage,
}

/** Query parameters of a list in another order. */
export const indexPaging = {
  page: Type.Optional(Type.Integer({ default: 1, description: 'The page, from 1. Smaller values are taken as 1.' })),
  per_page: perPage,
}

const timeQuery = Type.Object(timePaging)
const indexQuery = Type.Object(indexPaging)

interface PageRequest<Query> {
  readonly query: Query
  /** Set on routes with `attachValidation`, which check something else before the query. */
  readonly validationError?: Error
}

export function readTimePage({ query, validationError }: PageRequest<Static<typeof timeQuery>>): TimePage {
  if (validationError) throw validationError
  const { before, after, before_id, after_id, per_page } = query
  return {
    limit: itemsOf(per_page),
    ...(before !== undefined && { before: pageKey(readTime('before', before, 'up'), before_id) }),
    ...(after !== undefined && { after: pageKey(readTime('after', after), after_id) }),
  }
}

export function readIndexPage({ query, validationError }: PageRequest<Static<typeof indexQuery>>): OffsetPage {
  if (validationError) throw validationError
  const { page = 1, per_page } = query
  const limit = itemsOf(per_page)
  return { offset: (clamp(page, 1, LAST_PAGE) - 1) * limit, limit }
}

interface TimeLinks<Item> {
  /** The order of a request without `before` and `after`. */
  readonly order?: TimeOrder
  /** The sort key of an item. Default: when it was created. */
  readonly keyOf?: (item: Item) => PageKey
  /** No `previous` link, as in streams. */
  readonly hasNextOnly?: boolean
}

/**
 * Sets the `Link` header. There is a next page if there are more items. There is always a previous one, so that a client can look
 * for newer items there.
 */
export function linkTimePages<Item extends { readonly id: number; readonly createdAt: Date }>(
  reply: FastifyReply,
  page: TimePage,
  { items, hasMore }: Page<Item>,
  { order, keyOf = creationKey, hasNextOnly = false }: TimeLinks<Item> = {},
): void {
  const [first, last] = [items[0], items.at(-1)]
  if (first === undefined || last === undefined) return
  const [nextSide, previousSide] =
    pageOrder(page, order) === 'newest first' ? (['before', 'after'] as const) : (['after', 'before'] as const)
  const linkTo = createPageLinks(reply.request)
  const link = (side: 'before' | 'after', item: Item) => {
    const { time, id } = keyOf(item)
    return linkTo({
      before: undefined,
      before_id: undefined,
      after: undefined,
      after_id: undefined,
      [side]: time.toISOString(),
      [`${side}_id`]: id,
    })
  }
  sendLinks(reply, {
    next: hasMore ? link(nextSide, last) : undefined,
    previous: hasNextOnly ? undefined : link(previousSide, first),
  })
}

/** Sets the `Link` header. There is a next page if there are more items, and a previous one from the second page on. */
export function linkIndexPages(
  reply: FastifyReply,
  { offset, limit }: OffsetPage,
  { hasMore }: { readonly hasMore: boolean },
): void {
  const page = offset / limit + 1
  if (!hasMore && page === 1) return
  const linkTo = createPageLinks(reply.request)
  sendLinks(reply, {
    next: hasMore ? linkTo({ page: page + 1 }) : undefined,
    previous: page > 1 ? linkTo({ page: page - 1 }) : undefined,
  })
}

function creationKey({ createdAt, id }: { readonly createdAt: Date; readonly id: number }): PageKey {
  return { time: createdAt, id }
}

function pageKey(time: Date, id: number | undefined): PageKey {
  return id === undefined ? { time } : { time, id }
}

function itemsOf(perPage = DEFAULT_ITEMS): number {
  return clamp(perPage, 1, MAX_ITEMS)
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max)
}
