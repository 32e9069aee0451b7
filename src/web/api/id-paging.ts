import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IdPage, ListPage } from '../../persistence/sql/id-page.js'
import { type CursorQuery, readCursor } from './cursor-paging.js'
import { createPageLinks, sendLinks } from './page-links.js'

export function readIdPaging(query: CursorQuery): IdPage {
  const { limit, groups } = readCursor(query, /^([ba])([0-9]{1,15})$/)
  if (groups === undefined) return { limit }
  const [, side, id] = groups
  return side === 'b' ? { before: Number(id), limit } : { after: Number(id), limit }
}

/** Sets the `Link` header to the older and the newer page. */
export function linkIdPages(
  request: FastifyRequest,
  reply: FastifyReply,
  { items, hasOlder, hasNewer }: ListPage<{ readonly id: number }>,
): void {
  const [first, last] = [items[0], items.at(-1)]
  if (first === undefined || last === undefined) return
  const linkTo = createPageLinks(request)
  sendLinks(reply, {
    next: hasOlder ? linkTo({ cursor: `b${last.id}` }) : undefined,
    previous: hasNewer ? linkTo({ cursor: `a${first.id}` }) : undefined,
  })
}
