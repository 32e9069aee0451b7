import { errorSummary, type FormError, field, hiddenFields } from '../forms.js'
import { page, startLink } from '../html.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, type MarkupValue, trustMarkup } from '../markup.js'

interface LinkPage {
  readonly t: PageTexts
  readonly podName: string
  readonly title: string
  readonly content: MarkupValue
  readonly errors?: readonly FormError[]
}

/** A page to which a link in a mail leads, or that requests such a mail. */
export function linkPage({ t, podName, title, content, errors = [] }: LinkPage): string {
  return page({
    t,
    title: `${errors.length === 0 ? title : t('common.error_title', { title })} · ${podName}`,
    site: podName,
    content: html`<h1>${title}</h1>
${trustMarkup(errorSummary(t, errors))}${content}
${trustMarkup(startLink(t))}`.text,
  })
}

interface FormPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly action: string
  readonly formToken: string
  readonly token: string
}

/** Only the button acts: programs that check mails open every link. */
export function buttonPage(
  data: FormPageData & { readonly title: string; readonly text: string; readonly button: string },
) {
  const { t, podName, action, formToken, token, title, text, button } = data
  return linkPage({
    t,
    podName,
    title,
    content: html`<p>${text}</p>
<form method="post" action="${action}">
${trustMarkup(hiddenFields({ form: formToken, token }))}
<p class="actions"><button>${button}</button></p>
</form>`,
  })
}

export function newPasswordPage({
  t,
  podName,
  action,
  formToken,
  token,
  errors,
}: FormPageData & { readonly errors: readonly FormError[] }): string {
  const errorOf = (name: string) => errors.find((error) => error.field === name)?.message
  return linkPage({
    t,
    podName,
    title: t('link.new_password_title'),
    errors,
    content: html`<form method="post" action="${action}" novalidate>
${trustMarkup(hiddenFields({ form: formToken, token }))}
${trustMarkup(
  field({
    name: 'password',
    label: t('link.new_password'),
    type: 'password',
    autocomplete: 'new-password',
    focus: true,
    hint: t('link.new_password_hint'),
    error: errorOf('password'),
  }),
)}
${trustMarkup(
  field({
    name: 'password_again',
    label: t('link.new_password_again'),
    type: 'password',
    autocomplete: 'new-password',
    error: errorOf('password_again'),
  }),
)}
<p class="actions"><button>${t('link.new_password_button')}</button></p>
</form>`,
  })
}

export function requestResetPage(data: Omit<FormPageData, 'token'>): string {
  const { t } = data
  return linkPage({
    t,
    podName: data.podName,
    title: t('link.reset_title'),
    content: html`<form method="post" action="${data.action}" novalidate>
${trustMarkup(hiddenFields({ form: data.formToken }))}
${trustMarkup(
  field({
    name: 'username',
    label: t('link.reset_name'),
    type: 'text',
    autocomplete: 'username',
    focus: true,
    hint: t('link.reset_hint'),
  }),
)}
<p class="actions"><button>${t('link.reset_button')}</button></p>
</form>`,
  })
}
