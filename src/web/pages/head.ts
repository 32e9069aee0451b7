import { escapeHtml } from './html.js'

export interface HeadFacts {
  /** The canonical URL of the page. */
  readonly url: string
  readonly title: string
  readonly description: string
  readonly site: string
  /** Whether search engines may show the page. */
  readonly indexed: boolean
}

/** Metadata for search engines and link previews. */
export function pageHead({ url, title, description, site, indexed }: HeadFacts): string {
  const properties = [
    ['og:type', 'article'],
    ['og:title', title],
    ['og:url', url],
    ['og:site_name', site],
    ['og:description', description],
  ].filter(([, content]) => content !== '')
  return [
    `<link rel="canonical" href="${escapeHtml(url)}">`,
    ...(description === '' ? [] : [`<meta name="description" content="${escapeHtml(description)}">`]),
    ...properties.map(([name, content = '']) => `<meta property="${name}" content="${escapeHtml(content)}">`),
    ...(indexed ? [] : ['<meta name="robots" content="noindex">']),
    '',
  ].join('\n')
}
