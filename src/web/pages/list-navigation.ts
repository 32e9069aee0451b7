import { html, type Markup } from './markup.js'

/** Links to the neighbouring pages of a list. */
export function listNavigation(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  { page, hasMore }: { readonly page: number; readonly hasMore: boolean },
): Markup | '' {
  const link = (to: number, text: string, rel: string) => {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries({ ...query, page: to === 1 ? undefined : String(to) })) {
      if (value !== undefined) search.set(name, value)
    }
    return html`<a rel="${rel}" href="${path}${search.size === 0 ? '' : `?${search}`}">${text}</a>`
  }
  if (page === 1 && !hasMore) return ''
  return html`<nav class="pages" aria-label="Pages of the list">${page > 1 && link(page - 1, 'Previous page', 'prev')}${
    hasMore && link(page + 1, 'Next page', 'next')
  }</nav>\n`
}
