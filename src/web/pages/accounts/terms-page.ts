import type { Terms } from '../../../services/services.js'
import { type Names, writeHtml } from '../../text/write-html.js'
import { page, startLink } from '../html.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, trustMarkup } from '../markup.js'

const NO_NAMES: Names = { personOf: () => undefined, entityOf: () => undefined }

/** The text of the terms as HTML, below the heading of the page. */
export function termsHtml({ text }: Terms): string {
  return writeHtml(text, NO_NAMES)
}

export interface TermsPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly version: string
  /** HTML. */
  readonly text: string
}

export function termsPage({ t, podName, version, text }: TermsPageData): string {
  const title = t('terms.title', { pod: podName })
  return page({
    t,
    title,
    site: podName,
    content: html`<h1>${title}</h1>
<p class="soft small">${t('terms.version', { version })}</p>
<div class="text" dir="auto">
${trustMarkup(text)}
</div>
${trustMarkup(startLink(t))}`.text,
  })
}
