import type { Translate } from '../../languages/translate.js'
import { html, type Markup } from '../pages/markup.js'

/** New recovery codes, which are shown once. `next`: the page that follows. */
export function recoveryCodesCard(t: Translate, codes: readonly string[], next: string): Markup {
  return html`<section class="card"><p class="notice" role="status">${t('factor.codes_shown')}</p>
<p>${t('factor.codes_about')}</p>
<ol class="codes">${codes.map((code) => html`<li><code>${code}</code></li>\n`)}</ol>
<p class="actions"><a class="button" href="${next}">${t('factor.codes_stored')}</a></p></section>`
}
