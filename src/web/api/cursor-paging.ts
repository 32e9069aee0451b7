import { Type } from 'typebox'
import { MODERATION_LIMITS } from '../../domain/moderation/limits.js'
import { RequestFault } from '../server/request-faults.js'

/** Query parameters of a list of the admin API. */
export const cursorPaging = {
  cursor: Type.Optional(Type.String({ description: 'Part of page links; its content may change.' })),
  per_page: Type.Optional(
    Type.Integer({
      default: MODERATION_LIMITS.pageItems,
      description: `Items per page, 1 to ${MODERATION_LIMITS.maxPageItems}. Out-of-range values are clamped.`,
    }),
  ),
}

export interface CursorQuery {
  readonly cursor?: string
  readonly per_page?: number
}

/** The number of items, and the groups of the cursor; undefined: the first page. Refuses a cursor of another kind. */
export function readCursor({ cursor, per_page = MODERATION_LIMITS.pageItems }: CursorQuery, kind: RegExp) {
  const limit = Math.min(Math.max(per_page, 1), MODERATION_LIMITS.maxPageItems)
  if (cursor === undefined) return { limit, groups: undefined }
  const groups = kind.exec(cursor)
  if (groups === null) throw new RequestFault(422, '"cursor" must come from a page link.', { field: 'cursor' })
  return { limit, groups }
}
