import type { FastifyRequest } from 'fastify'
import { MODERATION_LIMITS } from '../../domain/moderation/limits.js'
import { inEnglish } from '../../languages/locales.js'
import type { IdPage, ListPage } from '../../persistence/sql/id-page.js'
import { neighbourLinks } from '../pages/list-navigation.js'
import type { Markup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'

/** Links to the neighbouring pages of a list in the order of ids, newest first. */
export function idNavigation(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  { items, hasOlder, hasNewer }: ListPage<{ readonly id: number }>,
): Markup | '' {
  const [first, last] = [items[0], items.at(-1)]
  if (first === undefined || last === undefined) return ''
  return neighbourLinks(inEnglish, path, query, {
    previous: hasNewer && { after: String(first.id) },
    next: hasOlder && { before: String(last.id) },
  })
}

/** The page of a list in the order of ids that the address names. */
export function idPageIn(request: FastifyRequest, limit: number = MODERATION_LIMITS.pageItems): IdPage {
  const idIn = (name: string) => {
    const id = Number(queryText(request, name) ?? 0)
    return Number.isSafeInteger(id) && id > 0 ? id : undefined
  }
  return { before: idIn('before'), after: idIn('after'), limit }
}

/** Links to the neighbouring pages of a list whose addresses have a `cursor`. */
export function cursorNavigation(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  { previous, next }: { readonly previous: string | undefined; readonly next: string | undefined },
): Markup | '' {
  const to = (cursor: string | undefined) => cursor !== undefined && { cursor }
  return neighbourLinks(inEnglish, path, query, { previous: to(previous), next: to(next) })
}

const LAST_PAGE = 200

/** The page of a numbered list; a number that cannot be read is the first page. */
export function pageNumberIn(request: FastifyRequest): number {
  const page = Number(queryText(request, 'page') ?? 1)
  return Number.isInteger(page) && page >= 1 && page <= LAST_PAGE ? page : 1
}
