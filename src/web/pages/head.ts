import { escapeHtml } from './html.js'

export interface HeadFacts {
  /** Where the page is, whatever way led to it. */
  readonly url: string
  readonly title: string
  readonly description: string
  readonly site: string
  /** Whether the person wants search engines to show it. */
  readonly indexed: boolean
}

/** What machines read that show a link to a page. */
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
