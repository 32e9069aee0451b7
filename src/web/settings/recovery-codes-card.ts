import { html, type Markup } from '../pages/markup.js'

/** New recovery codes, which are shown once. `next`: the page that follows. */
export function recoveryCodesCard(codes: readonly string[], next: string): Markup {
  return html`<section class="card"><p class="notice" role="status">Your second factor is on. Store these codes in a safe place: they are shown only now.</p>
<p>Each code signs you in once if you do not have your second factor. Earlier codes are no longer valid.</p>
<ol class="codes">${codes.map((code) => html`<li><code>${code}</code></li>\n`)}</ol>
<p class="actions"><a class="button" href="${next}">I have stored the codes</a></p></section>`
}
