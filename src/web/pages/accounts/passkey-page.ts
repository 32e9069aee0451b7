import { errorSummary, type FormError, hiddenFields } from '../forms.js'
import { page } from '../html.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, trustMarkup } from '../markup.js'
import { passkeyForm } from '../passkey-form.js'

export interface PasskeyPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly action: string
  readonly signIn: string
  readonly formToken: string
  readonly request: string | undefined
  readonly returnTo: string | undefined
  readonly options: object
  readonly error: FormError | undefined
}

/** Signs in with a passkey alone. */
export function passkeyPage(data: PasskeyPageData): string {
  const { t, podName, action, signIn, formToken, request, returnTo, options, error } = data
  const form = passkeyForm(t, {
    kind: 'use',
    action,
    options,
    button: t('passkey.use'),
    answer: 'passkey',
    fields: trustMarkup(hiddenFields({ form: formToken, request, return_to: returnTo })),
  })
  const title = t('passkey.sign_in')
  return page({
    t,
    title: `${error === undefined ? title : t('common.error_title', { title })} · ${podName}`,
    site: podName,
    content: html`<h1>${title}</h1>
<p class="soft">${t('passkey.sign_in_about')}</p>
${trustMarkup(errorSummary(t, error === undefined ? [] : [error]))}${form}
<nav aria-label="${t('common.more_pages')}"><a href="${signIn}">${t('passkey.with_password')}</a></nav>`.text,
  })
}
