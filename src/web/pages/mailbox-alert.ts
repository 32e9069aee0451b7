import type { Translate } from '../../languages/translate.js'
import type { MailState } from '../../persistence/models/user.js'
import { translateMarkup } from './language/message-markup.js'
import { html, type Markup } from './markup.js'

/** The alert of a user whose mailbox rejects mails. */
export function mailboxAlert(t: Translate, { mailState }: { readonly mailState: MailState }): Markup | false {
  return (
    mailState === 'suppressed' &&
    html`<p class="alert" role="alert">${translateMarkup(t, 'email.suppressed', { link: '/settings/email' })}</p>\n`
  )
}
