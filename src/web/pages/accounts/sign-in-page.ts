import { alert, errorSummary, type FormError, field, hiddenFields } from '../forms.js'
import { page } from '../html.js'
import { translateMarkup } from '../language/message-markup.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, type Markup, trustMarkup } from '../markup.js'

export interface SignInPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly host: string
  readonly action: string
  readonly formToken: string
  readonly username: string
  /** The request of a client that continues afterwards, and the name of the client. */
  readonly request: string | undefined
  readonly clientName: string | undefined
  /** The page of this pod that continues afterwards. */
  readonly returnTo: string | undefined
  readonly errors: SignInErrors
  /** The page to sign in with a passkey; undefined: browsers offer none here. */
  readonly passkey: string | undefined
  /** The page to reset a password; undefined: this pod sends no mail. */
  readonly resetPassword: string | undefined
  /** The page to create an account; undefined: this pod is not open for new accounts. */
  readonly signUp: string | undefined
  /** How to reach the operator. */
  readonly contact: Markup
}

export interface SignInErrors {
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** The two do not match. */
  readonly both?: string | undefined
  /** The form may be right, but is not accepted: the account has moved, or there were too many attempts. */
  readonly notNow?: string | undefined
}

export function signInPage(data: SignInPageData): string {
  const { t, podName, action, formToken, request, returnTo, clientName, errors, signUp, resetPassword, passkey } = data
  const formErrors: readonly FormError[] = [
    { field: 'username', message: errors.username },
    { field: 'password', message: errors.password ?? errors.both },
  ].flatMap(({ field: name, message }) => (message === undefined ? [] : [{ field: name, message }]))
  const title = t('sign_in.title')
  const links = [
    ...(passkey === undefined ? [] : [html`<a href="${passkey}">${t('passkey.sign_in')}</a>`]),
    ...(resetPassword === undefined ? [] : [html`<a href="${resetPassword}">${t('sign_in.lost_password')}</a>`]),
    ...(signUp === undefined ? [] : [html`<a href="${signUp}">${t('sign_in.create_account')}</a>`]),
  ]
  return page({
    t,
    title: `${formErrors.length === 0 ? title : t('common.error_title', { title })} · ${podName}`,
    site: podName,
    content: html`<h1>${title}</h1>
${clientName !== undefined && html`<p class="soft">${translateMarkup(t, 'sign_in.for_client', { client: clientName })}</p>\n`}${trustMarkup(
  alert(errors.notNow),
)}${trustMarkup(errorSummary(t, formErrors))}<form method="post" action="${action}" novalidate>
${trustMarkup(hiddenFields({ form: formToken, request, return_to: returnTo }))}
${trustMarkup(signInFields(data))}
<p class="actions"><button>${t('sign_in.button')}</button></p>
</form>
${resetPassword === undefined && html`<p class="soft">${t('sign_in.lost_without_mail')}</p>\n`}${data.contact}${
  links.length > 0 && html`<nav aria-label="${t('common.more_pages')}">${links}</nav>`
}`.text,
  })
}

function signInFields({ t, host, username, errors }: SignInPageData): string {
  const isUsernameFirst = errors.username !== undefined || username === ''
  return `${field({
    name: 'username',
    label: t('sign_in.username'),
    type: 'text',
    autocomplete: 'username',
    value: username,
    hint: t('sign_in.username_hint', { host }),
    error: errors.username,
    errorAt: errors.both === undefined ? undefined : 'password',
    focus: isUsernameFirst,
  })}
${field({
  name: 'password',
  label: t('sign_in.password'),
  type: 'password',
  autocomplete: 'current-password',
  error: errors.password ?? errors.both,
  focus: !isUsernameFirst,
})}`
}
