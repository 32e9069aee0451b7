import type { Config } from '../../../config/config.js'
import { translateMarkup } from '../language/message-markup.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, type Markup } from '../markup.js'

/** A sentence for people who cannot sign in. Without PODMIN_CONTACT it names the page of PODMIN_ACCOUNT; without both it is empty. */
export function operatorContact(
  t: PageTexts,
  { podminContact, podminAccount, host }: Pick<Config, 'podminContact' | 'podminAccount' | 'host'>,
): Markup {
  const contact = podminContact ?? (podminAccount && `${podminAccount}@${host}`)
  if (contact === undefined || contact === '') return html``
  const ofContact = contact.includes('://') ? contact : `mailto:${contact}`
  const link = podminContact === undefined ? `/u/${podminAccount}` : ofContact
  return html`<p class="soft">${translateMarkup(t, 'sign_in.ask_operator', { link, contact })}</p>\n`
}
