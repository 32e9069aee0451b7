import { FACTOR_LIMITS } from '../../../domain/accounts/factors/limits.js'
import type { StoredForm } from '../../../persistence/accounts/stored-forms.js'
import { errorSummary, type FormError, field } from '../forms.js'
import { page } from '../html.js'
import { translateMarkup } from '../language/message-markup.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, trustMarkup } from '../markup.js'
import { passkeyForm } from '../passkey-form.js'

export interface ConfirmAccessPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly address: string
  readonly formToken: string
  readonly action: string
  /** Fields of the form that continues afterwards. */
  readonly fields: StoredForm['fields']
  readonly needsCode: boolean
  /** WebAuthn options for the browser; undefined: the person has no passkey. */
  readonly passkeyOptions: object | undefined
  readonly error: FormError | undefined
}

/** The page on which the signed-in user enters the password, and the code, before a change. */
export function confirmAccessPage(data: ConfirmAccessPageData): string {
  const { t, podName, address, formToken, action, fields, needsCode, passkeyOptions, error } = data
  const minutes = FACTOR_LIMITS.authenticatedSeconds / 60
  const errorOf = (name: string) => (error?.field === name ? error.message : undefined)
  const hiddenFields = Object.entries<string | readonly string[]>({ form: formToken, ...fields }).flatMap(
    ([name, value]) =>
      typeof value === 'string'
        ? html`<input type="hidden" name="${name}" value="${value}">
`
        : value.map(
            (item) => html`<input type="hidden" name="${name}[]" value="${item}">
`,
          ),
  )
  const isCodeFirst = error?.field === 'current_code'
  const code = field({
    name: 'current_code',
    label: t('second_step.code'),
    type: 'text',
    autocomplete: 'one-time-code',
    hint: t('confirm_access.code_hint'),
    error: errorOf('current_code'),
    focus: isCodeFirst,
  })
  const password = field({
    name: 'current_password',
    label: t('sign_in.password'),
    type: 'password',
    autocomplete: 'current-password',
    error: errorOf('current_password'),
    focus: !isCodeFirst,
  })
  const title = t('confirm_access.title')
  return page({
    t,
    title: `${error === undefined ? title : t('common.error_title', { title })} · ${podName}`,
    site: podName,
    content: html`<h1>${title}</h1>
<p class="soft">${translateMarkup(t, 'confirm_access.about', { address, minutes })}</p>
${trustMarkup(errorSummary(t, error === undefined ? [] : [error]))}<form method="post" action="${action}" novalidate>
${hiddenFields}<input type="hidden" value="${address}" autocomplete="username">
${trustMarkup(password)}
${needsCode && trustMarkup(code)}
<p class="actions"><button>${t('common.continue')}</button></p>
</form>
${
  passkeyOptions !== undefined &&
  passkeyForm(t, {
    kind: 'use',
    action,
    options: passkeyOptions,
    button: t('passkey.use'),
    answer: 'current_passkey',
    fields: hiddenFields,
  })
}<nav aria-label="${t('common.more_pages')}"><a href="/settings">${t('settings.title')}</a></nav>`.text,
  })
}
