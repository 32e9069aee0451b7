import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OffsetPage } from '../../persistence/sql/keyset-page.js'
import { type CursorQuery, readCursor } from './cursor-paging.js'
import { createPageLinks, sendLinks } from './page-links.js'

export function readOffsetPaging(query: CursorQuery): OffsetPage {
  const { limit, groups } = readCursor(query, /^o([0-9]{1,9})$/)
  return { offset: groups === undefined ? 0 : Number(groups[1]), limit }
}

/** Sets the `Link` header to the next and the previous page. */
export function linkOffsetPages(
  request: FastifyRequest,
  reply: FastifyReply,
  { offset, limit }: OffsetPage,
  { hasMore }: { readonly hasMore: boolean },
): void {
  const linkTo = createPageLinks(request)
  sendLinks(reply, {
    next: hasMore ? linkTo({ cursor: `o${offset + limit}` }) : undefined,
    previous: offset > 0 ? linkTo({ cursor: `o${Math.max(0, offset - limit)}` }) : undefined,
  })
}
