import type { Translate } from '../../../languages/translate.js'
import { translateMarkup } from '../language/message-markup.js'
import { html, type Markup } from '../markup.js'

/** The next steps for a new user. */
export function nextSteps(t: Translate, address: string): Markup {
  const [username = '', host = ''] = address.split('@')
  return html`<section class="card"><h2>${t('next.title')}</h2>
<ol class="steps">
<li>${translateMarkup(t, 'next.profile', { link: '/settings/profile' })}</li>
<li>${translateMarkup(t, 'next.public_page', { link: `/u/${username}` })}</li>
<li>${translateMarkup(t, 'next.app', { link: '/apps', host })}</li>
<li>${translateMarkup(t, 'next.tag', { link: '/settings/following' })}</li>
<li>${translateMarkup(t, 'next.person', { link: '/settings/following', address })}</li>
</ol>
<p class="soft small">${translateMarkup(t, 'next.own_app', { link: '/api/docs' })}</p>
</section>`
}
