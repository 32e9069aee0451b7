import { escapeHtml } from './html.js'

export interface PreviewImage {
  /** Address on this pod: link previews load the picture. */
  readonly url: string
  readonly width?: number | null
  readonly height?: number | null
  readonly alt?: string | null
}

export interface PageHeadData {
  /** The canonical URL of the page. */
  readonly url: string
  readonly title: string
  readonly description: string
  readonly site: string
  /** Whether search engines may show the page. */
  readonly isIndexed: boolean
  readonly type: 'article' | 'profile' | 'website'
  readonly image?: PreviewImage | undefined
  /** Publication time of an article. */
  readonly publishedAt?: Date
  readonly feed?: { readonly title: string; readonly url: string }
  /** The URL that describes the page as oEmbed. */
  readonly oembedUrl?: string
}

/** Metadata for search engines, link previews (OpenGraph, oEmbed) and feed readers. */
export function pageHead(data: PageHeadData): string {
  const { url, title, description, site, isIndexed, type, image, publishedAt, feed, oembedUrl } = data
  const properties: readonly (readonly [name: string, content: string])[] = [
    ['og:type', type],
    ['og:title', title],
    ['og:url', url],
    ['og:site_name', site],
    ['og:description', description],
    ['og:image', image?.url ?? ''],
    ['og:image:width', String(image?.width ?? '')],
    ['og:image:height', String(image?.height ?? '')],
    ['og:image:alt', image?.alt ?? ''],
    ['article:published_time', publishedAt?.toISOString() ?? ''],
  ]
  return [
    `<link rel="canonical" href="${escapeHtml(url)}">`,
    ...(description === '' ? [] : [`<meta name="description" content="${escapeHtml(description)}">`]),
    ...properties
      .filter(([, content]) => content !== '')
      .map(([name, content]) => `<meta property="${name}" content="${escapeHtml(content)}">`),
    `<meta name="twitter:card" content="${image?.width ? 'summary_large_image' : 'summary'}">`,
    ...(feed === undefined ? [] : [alternateLink('application/atom+xml', feed.url, feed.title)]),
    ...(oembedUrl === undefined ? [] : [alternateLink('application/json+oembed', oembedUrl, title)]),
    ...(isIndexed ? [] : ['<meta name="robots" content="noindex">']),
    '',
  ].join('\n')
}

function alternateLink(type: string, url: string, title: string): string {
  return `<link rel="alternate" type="${type}" href="${escapeHtml(url)}" title="${escapeHtml(title)}">`
}
