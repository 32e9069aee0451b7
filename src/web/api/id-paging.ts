import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { MODERATION_LIMITS } from '../../domain/moderation/limits.js'
import type { IdPage, IdPageResult } from '../../persistence/sql/id-page.js'
import { RequestFault } from '../server/request-faults.js'
import { openLinks, sendLinks } from './page-links.js'

/** Query parameters of a list of the admin API. */
export const idPaging = {
  cursor: Type.Optional(Type.String({ description: 'Part of page links; its content may change.' })),
  per_page: Type.Optional(
    Type.Integer({
      default: MODERATION_LIMITS.pageItems,
      description: `Items per page, 1 to ${MODERATION_LIMITS.mostPageItems}. Out-of-range values are clamped.`,
    }),
  ),
}

export function readIdPaging({
  cursor,
  per_page = MODERATION_LIMITS.pageItems,
}: {
  readonly cursor?: string
  readonly per_page?: number
}): IdPage {
  const limit = Math.min(Math.max(per_page, 1), MODERATION_LIMITS.mostPageItems)
  if (cursor === undefined) return { limit }
  const [, side, id] = /^([ba])([0-9]{1,15})$/.exec(cursor) ?? []
  if (id === undefined) throw new RequestFault(422, '"cursor" must come from a page link.', { field: 'cursor' })
  return side === 'b' ? { before: Number(id), limit } : { after: Number(id), limit }
}

/** Sets the `Link` header to the older and the newer page. */
export function linkIdPages(
  request: FastifyRequest,
  reply: FastifyReply,
  { items, hasOlder, hasNewer }: IdPageResult<{ readonly id: number }>,
): void {
  const [first, last] = [items[0], items.at(-1)]
  if (first === undefined || last === undefined) return
  const linkTo = openLinks(request)
  sendLinks(reply, {
    next: hasOlder ? linkTo({ cursor: `b${last.id}` }) : undefined,
    previous: hasNewer ? linkTo({ cursor: `a${first.id}` }) : undefined,
  })
}
