import type { FastifyRequest } from 'fastify'
import type { Translate } from '../../languages/translate.js'
import type { PagePosition } from '../../persistence/posts/public-posts.js'
import type { ListPage } from '../../persistence/sql/id-page.js'
import { queryText } from '../schemas/query-text.js'
import { escapeHtml } from './html.js'

/** `1714721400000-42`: milliseconds since 1970, and the id of the item. */
const POSITION = /^([0-9]{1,14})-([0-9]{1,15})$/

/** The position in the query of a page. A position that cannot be read is the first page. */
export function readPosition(request: FastifyRequest): PagePosition | undefined {
  for (const side of ['before', 'after', 'from'] as const) {
    const [, time, id] = POSITION.exec(queryText(request, side) ?? '') ?? []
    if (time !== undefined) return { side, time: new Date(Number(time)), id: Number(id) }
  }
  return undefined
}

export function positionQuery(position: PagePosition | undefined): string {
  return position === undefined ? '' : `?${position.side}=${position.time.getTime()}-${position.id}`
}

interface Item {
  readonly id: number
  readonly createdAt: Date
}

export interface PageLinkData {
  readonly path: string
  readonly list: ListPage<Item>
  readonly position: PagePosition | undefined
  /** The beginning of the page without a position. */
  readonly first: 'newest' | 'oldest'
  /** The items of the list, in the plural; also the id of the list if the page has more than the list. */
  readonly noun: 'comments' | 'posts'
}

/** Links to the neighbouring pages of a list; empty if the page shows all of it. */
export function pageLinks(t: Translate, { path, list, position, first, noun }: PageLinkData): string {
  const { items, hasOlder, hasNewer } = list
  const [newest, oldest] = first === 'newest' ? [items[0], items.at(-1)] : [items.at(-1), items[0]]
  const fragment = noun === 'comments' ? '#comments' : ''
  const link = (query: string, rel: string, text: string) =>
    `<a href="${escapeHtml(`${path}${query}${fragment}`)}"${rel === '' ? '' : ` rel="${rel}"`}>${escapeHtml(text)}</a>`
  const toSide = (side: PagePosition['side'], item: Item) => positionQuery({ side, time: item.createdAt, id: item.id })

  const older =
    hasOlder && oldest
      ? link(toSide('before', oldest), first === 'newest' ? 'next' : 'prev', t(`page.older_${noun}`))
      : ''
  const newer =
    hasNewer && newest
      ? link(toSide('after', newest), first === 'newest' ? 'prev' : 'next', t(`page.newer_${noun}`))
      : ''
  const start =
    position === undefined ? '' : link('', '', t(noun === 'posts' ? 'page.newest_posts' : 'page.first_comments'))
  const links = first === 'newest' ? [start, newer, older] : [start, older, newer]
  const present = links.filter((html) => html !== '')
  const label = escapeHtml(t(`page.pages_of_${noun}`))
  return present.length === 0 ? '' : `<nav class="pages" aria-label="${label}">${present.join('')}</nav>\n`
}
