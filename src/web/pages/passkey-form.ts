import type { Translate } from '../../languages/translate.js'
import { html, type Markup, type MarkupValue } from './markup.js'

/** The script that makes and uses passkeys. Pages with it need a policy with `hasScript`. */
export const PASSKEY_SCRIPT = '/assets/passkeys.js'

export interface PasskeyForm {
  readonly kind: 'make' | 'use'
  readonly action: string
  /** WebAuthn options for the browser, as JSON. */
  readonly options: object
  /** Hidden fields, and those of the person. */
  readonly fields: MarkupValue
  readonly button: string
  /** The field for the answer of the browser. */
  readonly answer: string
}

/** A form that the browser sends with a new or a used passkey. */
export function passkeyForm(t: Translate, { kind, action, options, fields, button, answer }: PasskeyForm): Markup {
  return html`<form method="post" action="${action}" novalidate data-passkey="${kind}" data-options="${JSON.stringify(options)}">
${fields}<input type="hidden" name="${answer}" value="" data-passkey-answer>
<p class="alert" role="alert" data-passkey-failed hidden>${t('passkey.failed')}</p>
<noscript><p class="soft">${t('passkey.needs_script')}</p></noscript>
<p class="actions"><button>${button}</button></p>
</form>
<script src="${PASSKEY_SCRIPT}" defer></script>
`
}
