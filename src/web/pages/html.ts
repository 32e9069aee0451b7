import { createHash } from 'node:crypto'
import type { Config } from '../../config/config.js'
import { escapeHtml } from '../../protocol/escape-html.js'
import type { PodAddresses } from '../presenters/picture-urls.js'
import { PAGE_STYLE } from './page-style.js'

export { escapeHtml }

/** The content security policy: pages run and load nothing; their style is allowed by its hash. */
export const PAGE_RULES = {
  'default-src': "'none'",
  'style-src': `'sha256-${createHash('sha256').update(PAGE_STYLE).digest('base64')}'`,
  'img-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
}

export const ICON_PATH = '/favicon.svg'

/** The policy as a header value. */
export function policyOf(rules: Readonly<Record<string, string>>): string {
  return Object.entries(rules)
    .map(([rule, sources]) => `${rule} ${sources}`)
    .join('; ')
}

/** What pages need to know of the pod, and no more: it is copied into the thread that renders them. */
export type PagePod = PodAddresses & Pick<Config, 'podName'>

export interface Page {
  readonly title: string
  /** HTML. Texts of people and other pods must be escaped with `escapeHtml`. */
  readonly content: string
  /** HTML of the page's metadata. */
  readonly head?: string
  /** The name of the pod, shown at the top as a link to the start page. */
  readonly site?: string
  /** `column`: cards in a column. `single`: all content in one card. */
  readonly layout?: 'single' | 'column'
}

export function page({ title, content, head = '', site, layout = 'single' }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
${head}<link rel="icon" href="${ICON_PATH}">
<style>${PAGE_STYLE}</style>
</head>
<body class="${layout}">
${site === undefined ? '' : siteHeader(site)}<main>
${content}
</main>
</body>
</html>
`
}

function siteHeader(site: string): string {
  return `<header class="site"><a href="/"><img src="${ICON_PATH}" alt="" width="24" height="24"><bdi>${escapeHtml(site)}</bdi></a></header>\n`
}

export function errorPage(status: number, message: string): string {
  return page({
    title: message,
    content: `<h1>${escapeHtml(message)}</h1>\n<p class="soft">Error ${status}</p>\n<nav aria-label="More pages"><a href="/">Start page</a></nav>`,
  })
}
