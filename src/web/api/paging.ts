import type { FastifyReply, FastifyRequest } from 'fastify'
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
import { pathOf } from '../server/paths.js'

const DEFAULT_ITEMS = 15
const MOST_ITEMS = 100
/** Nobody has so many of anything; beyond it the database could not count. */
const LAST_PAGE = 1_000_000_000

const perPage = Type.Optional(
  Type.Integer({
    default: DEFAULT_ITEMS,
    description: `Items per page, 1 to ${MOST_ITEMS}. Out-of-range values are clamped.`,
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

/** Parameters of a list by time, to be spread into those of a route. */
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

/** Parameters of a list that has another order. */
export const indexPaging = {
  page: Type.Optional(Type.Integer({ default: 1, description: 'The page, from 1. Smaller values are taken as 1.' })),
  per_page: perPage,
}

const timeQuery = Type.Object(timePaging)
const indexQuery = Type.Object(indexPaging)

interface Asked<Query> {
  readonly query: Query
  /** Set where the route attaches it: what is in the path is looked for before a parameter is found to be wrong. */
  readonly validationError?: Error
}

export function readTimePage({ query, validationError }: Asked<Static<typeof timeQuery>>): TimePage {
  if (validationError) throw validationError
  const { before, after, before_id, after_id, per_page } = query
  return {
    limit: itemsOf(per_page),
    ...(before !== undefined && { before: keyOf(readTime('before', before, 'up'), before_id) }),
    ...(after !== undefined && { after: keyOf(readTime('after', after), after_id) }),
  }
}

export function readIndexPage({ query, validationError }: Asked<Static<typeof indexQuery>>): OffsetPage {
  if (validationError) throw validationError
  const { page = 1, per_page } = query
  const limit = itemsOf(per_page)
  return { offset: (within(page, 1, LAST_PAGE) - 1) * limit, limit }
}

interface TimeLinks<Item> {
  /** What comes first where the request names no place. */
  readonly order?: TimeOrder
  /** By what the list is ordered; not set: by when each was made. */
  readonly placeOf?: (item: Item) => PageKey
  /** Streams go only one way. */
  readonly onlyNext?: boolean
}

/**
 * Says where the list goes on, in both directions: there is a next page if there are more items, and a previous one behind
 * the first of these, so that a client can look there for newer ones.
 */
export function linkTimePages<Item extends { readonly id: number; readonly createdAt: Date }>(
  request: FastifyRequest,
  reply: FastifyReply,
  page: TimePage,
  { items, more }: Page<Item>,
  { order, placeOf = placeInTime, onlyNext = false }: TimeLinks<Item> = {},
): void {
  const [first, last] = [items[0], items.at(-1)]
  if (first === undefined || last === undefined) return
  const [onwards, back] =
    pageOrder(page, order) === 'newest first' ? (['before', 'after'] as const) : (['after', 'before'] as const)
  const linkTo = openLinks(request)
  const link = (side: 'before' | 'after', item: Item) => {
    const { time, id } = placeOf(item)
    return linkTo({
      before: undefined,
      before_id: undefined,
      after: undefined,
      after_id: undefined,
      [side]: time.toISOString(),
      [`${side}_id`]: id,
    })
  }
  sendLinks(reply, { next: more ? link(onwards, last) : undefined, previous: onlyNext ? undefined : link(back, first) })
}

/** There is a next page if there are more items, and a previous one from the second on. */
export function linkIndexPages(
  request: FastifyRequest,
  reply: FastifyReply,
  { offset, limit }: OffsetPage,
  { more }: { readonly more: boolean },
): void {
  const page = offset / limit + 1
  if (!more && page === 1) return
  const linkTo = openLinks(request)
  sendLinks(reply, {
    next: more ? linkTo({ page: page + 1 }) : undefined,
    previous: page > 1 ? linkTo({ page: page - 1 }) : undefined,
  })
}

function placeInTime({ createdAt, id }: { readonly createdAt: Date; readonly id: number }): PageKey {
  return { time: createdAt, id }
}

function keyOf(time: Date, id: number | undefined): PageKey {
  return id === undefined ? { time } : { time, id }
}

type Changes = Readonly<Record<string, string | number | undefined>>

/** The request once more, from another place. Nothing in its query may end the link. */
function openLinks({ url, server }: FastifyRequest): (changes: Changes) => string {
  const path = pathOf(url)
  const [query = ''] = url.slice(path.length).split('#', 1)
  const address = new URL(path, server.pod.config.url).href
  return (changes) => {
    const parameters = new URLSearchParams(query)
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) parameters.delete(name)
      else parameters.set(name, String(value))
    }
    return `${address}?${parameters}`
  }
}

function sendLinks(reply: FastifyReply, links: Readonly<Record<string, string | undefined>>): void {
  const present = Object.entries(links).flatMap(([name, url]) => (url === undefined ? [] : [`<${url}>; rel="${name}"`]))
  if (present.length > 0) reply.header('link', present.join(', '))
}

function itemsOf(perPage = DEFAULT_ITEMS): number {
  return within(perPage, 1, MOST_ITEMS)
}

function within(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}
