import { createHash } from 'node:crypto'
import type { Config } from '../../config/config.js'
import { languageName, textDirection } from '../../languages/languages.js'
import type { Translate } from '../../languages/translate.js'
import { escapeHtml } from '../../protocol/escape-html.js'
import type { PodAddresses } from '../presenters/picture-urls.js'
import { type LanguageChoice, type PageTexts, withChoice } from './language/page-texts.js'
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
export function formatPolicy(rules: Readonly<Record<string, string>>): string {
  return Object.entries(rules)
    .map(([rule, sources]) => `${rule} ${sources}`)
    .join('; ')
}

/** The data of the pod that pages need. They are copied into the rendering thread, so there are no others. */
export type PagePod = PodAddresses & Pick<Config, 'podName'>

export interface Page {
  readonly t: PageTexts
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

export function page({ t, title, content, head = '', site, layout = 'single' }: Page): string {
  return `<!doctype html>
<html lang="${t.language}" dir="${textDirection(t.language)}">
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
${t.choice === undefined ? '' : languageChoice(t, t.choice)}</body>
</html>
`
}

function siteHeader(site: string): string {
  return `<header class="site"><a href="/"><img src="${ICON_PATH}" alt="" width="24" height="24"><bdi>${escapeHtml(site)}</bdi></a></header>\n`
}

/** Links, because a form would need a token, and with it a cookie. */
function languageChoice(t: PageTexts, { languages, returnTo }: LanguageChoice): string {
  const links = languages.map((language) => {
    const query = new URLSearchParams({ to: language, return_to: returnTo })
    const current = language === t.language ? ' aria-current="true"' : ''
    return `<a rel="nofollow" href="/language?${escapeHtml(query.toString())}" lang="${language}" hreflang="${language}"${current}>${escapeHtml(languageName(language))}</a>`
  })
  return `<footer class="site"><nav aria-label="${escapeHtml(t('common.language'))}">${links.join('')}</nav></footer>\n`
}

/** A page without a choice of languages, whose links name the path. */
export function errorPage(texts: Translate, status: number, message: string): string {
  const t = withChoice(texts, undefined)
  return page({
    t,
    title: message,
    content: `<h1>${escapeHtml(message)}</h1>\n<p class="soft">${escapeHtml(t('common.error_status', { status }))}</p>\n${startLink(t)}`,
  })
}

/** The navigation of pages that lead nowhere else. */
export function startLink(t: PageTexts): string {
  return `<nav aria-label="${escapeHtml(t('common.more_pages'))}"><a href="/">${escapeHtml(t('common.start_page'))}</a></nav>`
}
