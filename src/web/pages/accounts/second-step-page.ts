import { errorSummary, type FormError, field, hiddenFields } from '../forms.js'
import { escapeHtml, page } from '../html.js'
import { messageHtml } from '../language/message-markup.js'
import type { PageTexts } from '../language/page-texts.js'
import type { Markup } from '../markup.js'

export interface SecondStepPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly action: string
  readonly signIn: string
  readonly formToken: string
  readonly address: string
  readonly request: string | undefined
  readonly hasApp: boolean
  readonly hasRecoveryCodes: boolean
  /** The page to use a passkey instead; undefined: the account has none. */
  readonly passkey: string | undefined
  readonly error: FormError | undefined
  /** How to reach the operator. */
  readonly contact: Markup
}

/** The page for the code, after the password. */
export function secondStepPage(data: SecondStepPageData): string {
  const { t, podName, action, signIn, formToken, address, request, hasApp, hasRecoveryCodes, passkey, error } = data
  const hints = [...(hasApp ? [t('second_step.app')] : []), ...(hasRecoveryCodes ? [t('second_step.recovery')] : [])]
  const title = t('second_step.title')
  const passkeyLink =
    passkey === undefined ? '' : `<a href="${escapeHtml(passkey)}">${escapeHtml(t('passkey.use'))}</a> `
  return page({
    t,
    title: `${error === undefined ? title : t('common.error_title', { title })} · ${podName}`,
    site: podName,
    content: `<h1>${escapeHtml(title)}</h1>
<p class="soft">${messageHtml(t, 'second_step.about', { address })}</p>
${errorSummary(t, error === undefined ? [] : [error])}<form method="post" action="${action}" novalidate>
${hiddenFields({ form: formToken, request })}
${field({
  name: 'code',
  label: t('second_step.code'),
  type: 'text',
  autocomplete: 'one-time-code',
  hint: hints.join(' '),
  error: error?.message,
  focus: true,
})}
<p class="actions"><button>${escapeHtml(t('sign_in.button'))}</button></p>
</form>
${data.contact.text}<nav aria-label="${escapeHtml(t('common.more_pages'))}">${passkeyLink}<a href="${escapeHtml(signIn)}">${escapeHtml(t('sign_in.other_account'))}</a></nav>`,
  })
}
