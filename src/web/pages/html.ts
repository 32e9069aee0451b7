import { createHash } from 'node:crypto'
import { PAGE_STYLE } from './page-style.js'

/** Pages run nothing and load nothing; their one style is allowed by its hash. */
export const PAGE_RULES = {
  'default-src': "'none'",
  'style-src': `'sha256-${createHash('sha256').update(PAGE_STYLE).digest('base64')}'`,
  'img-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
}

export const ICON_PATH = '/favicon.svg'

/** As a header says it. */
export function policyOf(rules: Readonly<Record<string, string>>): string {
  return Object.entries(rules)
    .map(([rule, sources]) => `${rule} ${sources}`)
    .join('; ')
}

export interface Page {
  readonly title: string
  /** HTML: whatever comes from outside must have gone through `escapeHtml`. */
  readonly content: string
  /** HTML as well: what machines read about the page. */
  readonly head?: string
  /** For what people wrote: a column that begins at the top, below the name of the pod. */
  readonly below?: string
}

export function page({ title, content, head = '', below }: Page): string {
  const isWide = below !== undefined
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
${head}<link rel="icon" href="${ICON_PATH}">
<style>${PAGE_STYLE}</style>
</head>
<body${isWide ? ' class="wide"' : ''}>
${isWide ? `<header class="site"><a href="/">${escapeHtml(below)}</a></header>\n` : ''}<main>
${content}
</main>
</body>
</html>
`
}

export function errorPage(status: number, message: string): string {
  return page({
    title: message,
    content: `<h1>${escapeHtml(message)}</h1>\n<p class="soft">${status}</p>\n<nav><a href="/">Start page</a></nav>`,
  })
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
