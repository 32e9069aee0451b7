import { shownText } from '../../../domain/moderation/filters/shown-text.js'
import { readWebLinks } from '../../../domain/moderation/filters/web-links.js'
import { html, type Markup } from '../../pages/markup.js'

/** A text of another person as it was written, with the addresses in it as plain text. Their hosts are shown in ASCII. */
export function evidenceBlock(text: string | null): Markup {
  if (text === null) return html`<p class="soft">The text is not stored.</p>`
  if (text === '') return html`<p class="soft">There is no text.</p>`
  const links = [
    ...new Set([text, shownText(text)].flatMap(readWebLinks).map(({ host, rest }) => `${host}${rest}`)),
  ].slice(0, SHOWN)
  return html`<div class="evidence" tabindex="0" role="region" aria-label="Text"><bdi>${text}</bdi></div>${
    links.length > 0 &&
    html`<p class="small">Links in the text:</p><ul class="small">${links.map((link) => html`<li><bdi>${link}</bdi></li>`)}</ul>`
  }`
}

const SHOWN = 20
