import { languageName } from '../../../languages/languages.js'
import { checkBox, selectList, textArea } from '../controls.js'
import { errorSummary, type FormError, field, hiddenFields } from '../forms.js'
import { page, startLink } from '../html.js'
import { translateMarkup } from '../language/message-markup.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, trustMarkup } from '../markup.js'

export interface SignUpPageData {
  readonly t: PageTexts
  readonly languages: readonly string[]
  readonly language: string
  readonly podName: string
  readonly host: string
  readonly action: string
  readonly signIn: string
  readonly formToken: string
  readonly username: string
  readonly request: string | undefined
  readonly invitation: string | undefined
  /** Signed: when the form was made. */
  readonly formTime: string
  /** Undefined: the pod requires no address. */
  readonly email: string | undefined
  /** Undefined: no moderator decides. */
  readonly reason: string | undefined
  /** Undefined: the pod has no terms. */
  readonly terms: { readonly path: string; readonly version: string; readonly isAccepted: boolean } | undefined
  readonly errors: readonly SignUpError[]
}

export type SignUpField = 'username' | 'email' | 'password' | 'password_again' | 'reason' | 'language' | 'terms'

/** Undefined: the error concerns the whole form. */
export interface SignUpError extends FormError {
  readonly field: SignUpField | undefined
}

export function signUpPage(data: SignUpPageData): string {
  const { t, podName, action, signIn, formToken, request, invitation, errors, formTime, terms } = data
  const title = t('sign_up.title')
  return page({
    t,
    title: `${errors.length === 0 ? title : t('common.error_title', { title })} · ${podName}`,
    site: podName,
    content: html`<h1>${title}</h1>
${trustMarkup(errorSummary(t, errors, t('sign_up.enter_again')))}<form method="post" action="${action}" novalidate>
${trustMarkup(hiddenFields({ form: formToken, form_time: formTime, request, invitation, terms_version: terms?.version }))}
${honeypotField(t)}
${signUpFields(data)}${termsBox(data)}
<p class="actions"><button>${t('sign_up.button')}</button></p>
</form>
<nav aria-label="${t('common.more_pages')}"><a href="${signIn}">${t('sign_up.sign_in')}</a></nav>`.text,
  })
}

function signUpFields({ t, host, username, email, reason, errors, languages, language }: SignUpPageData) {
  const errorOf = (name: SignUpField) => errors.find((error) => error.field === name)?.message
  const firstWrong = errors.find((error) => error.field !== undefined)?.field ?? 'username'
  const common = (name: SignUpField) => ({ name, error: errorOf(name), focus: firstWrong === name })
  const usernameField = field({
    ...common('username'),
    label: t('sign_up.username'),
    type: 'text',
    autocomplete: 'username',
    value: username,
    hint: t('sign_up.username_hint', { host }),
  })
  const emailField = field({
    ...common('email'),
    label: t('sign_up.email'),
    type: 'text',
    autocomplete: 'email',
    value: email ?? '',
    hint: t('sign_up.email_hint'),
  })
  const password = field({
    ...common('password'),
    label: t('sign_up.password'),
    type: 'password',
    autocomplete: 'new-password',
    hint: email === undefined ? t('sign_up.password_hint_without_mail') : t('sign_up.password_hint'),
  })
  const again = field({
    ...common('password_again'),
    label: t('sign_up.password_again'),
    type: 'password',
    autocomplete: 'new-password',
  })
  const languageList = selectList({
    name: 'language',
    label: t('sign_up.language'),
    chosen: language,
    error: errorOf('language'),
    options: languages.map((each) => [each, languageName(each)] as const),
  })
  const reasonField = { name: 'reason', label: t('sign_up.reason'), rows: 3, error: errorOf('reason') }
  return html`${trustMarkup(usernameField)}
${email !== undefined && trustMarkup(emailField)}
${trustMarkup(password)}
${trustMarkup(again)}
${languageList}
${reason !== undefined && textArea({ ...reasonField, value: reason })}`
}

function termsBox({ t, podName, terms, errors }: SignUpPageData) {
  if (terms === undefined) return html``
  const label = translateMarkup(t, 'sign_up.terms', { link: terms.path, pod: podName })
  const error = errors.find(({ field: name }) => name === 'terms')?.message
  return checkBox({ name: 'terms', label, checked: terms.isAccepted, error })
}

/** Programs fill it in; people do not see it. */
function honeypotField(t: PageTexts) {
  return html`<div hidden><label for="website">${t('sign_up.trap')}</label><input id="website" name="website" type="text" tabindex="-1" autocomplete="off"></div>`
}

/** The missing steps for an account. */
export function waitingPage(
  t: PageTexts,
  podName: string,
  needs: { readonly confirmation: boolean; readonly approval: boolean },
): string {
  const title = t('sign_up.waiting')
  return page({
    t,
    title: `${title} · ${podName}`,
    site: podName,
    content: html`<h1>${title}</h1>
${needs.confirmation && html`<p role="status">${t('sign_up.confirm')}</p>\n`}${
  needs.approval && html`<p role="status">${t('sign_up.wait_for_moderator')}</p>\n`
}${trustMarkup(startLink(t))}`.text,
  })
}

export function noSignUpPage(t: PageTexts, podName: string, message: string): string {
  return page({
    t,
    title: `${t('sign_up.title')} · ${podName}`,
    site: podName,
    content: html`<h1>${t('sign_up.refused')}</h1>
<p>${message}</p>
${trustMarkup(startLink(t))}`.text,
  })
}
