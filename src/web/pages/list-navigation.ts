import type { Translate } from '../../languages/translate.js'
import { html, type Markup } from './markup.js'

type Query = Readonly<Record<string, string | undefined>>

/** An address with these parameters; undefined ones are left out. */
export function withQuery(path: string, query: Query): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, value)
  return search.size === 0 ? path : `${path}${path.includes('?') ? '&' : '?'}${search}`
}

/** Links to the neighbouring pages of a list with page numbers. */
export function listNavigation(
  t: Translate,
  path: string,
  query: Query,
  { page, hasMore }: { readonly page: number; readonly hasMore: boolean },
): Markup | '' {
  const to = (number: number) => ({ page: number === 1 ? undefined : String(number) })
  return neighbourLinks(t, path, query, { previous: page > 1 && to(page - 1), next: hasMore && to(page + 1) })
}

/** Links to the neighbouring pages of a list, which keep its filters. `false`: there is no such page. */
export function neighbourLinks(
  t: Translate,
  path: string,
  query: Query,
  { previous, next }: { readonly previous?: Query | false; readonly next?: Query | false },
): Markup | '' {
  const link = (to: Query, text: string, rel: string) =>
    html`<a rel="${rel}" href="${withQuery(path, { ...query, ...to })}">${text}</a>`
  if (!previous && !next) return ''
  return html`<nav class="pages" aria-label="${t('common.list_pages')}">${previous && link(previous, t('common.previous_page'), 'prev')}${
    next && link(next, t('common.next_page'), 'next')
  }</nav>\n`
}
