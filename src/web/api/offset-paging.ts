import type { FastifyReply, FastifyRequest } from 'fastify'
import { MODERATION_LIMITS } from '../../domain/moderation/limits.js'
import type { OffsetPage } from '../../persistence/sql/keyset-page.js'
import { RequestFault } from '../server/request-faults.js'
import { idPaging } from './id-paging.js'
import { openLinks, sendLinks } from './page-links.js'

/** Query parameters of a list of the admin API that has no order by id. */
export const offsetPaging = idPaging

export function readOffsetPaging({
  cursor,
  per_page = MODERATION_LIMITS.pageItems,
}: {
  readonly cursor?: string
  readonly per_page?: number
}): OffsetPage {
  const limit = Math.min(Math.max(per_page, 1), MODERATION_LIMITS.mostPageItems)
  if (cursor === undefined) return { offset: 0, limit }
  const [, offset] = /^o([0-9]{1,9})$/.exec(cursor) ?? []
  if (offset === undefined) throw new RequestFault(422, '"cursor" must come from a page link.', { field: 'cursor' })
  return { offset: Number(offset), limit }
}

/** Sets the `Link` header to the next and the previous page. */
export function linkOffsetPages(
  request: FastifyRequest,
  reply: FastifyReply,
  { offset, limit }: OffsetPage,
  { more }: { readonly more: boolean },
): void {
  const linkTo = openLinks(request)
  sendLinks(reply, {
    next: more ? linkTo({ cursor: `o${offset + limit}` }) : undefined,
    previous: offset > 0 ? linkTo({ cursor: `o${Math.max(0, offset - limit)}` }) : undefined,
  })
}
