import { errorSummary, type FormError, field, hidden } from '../forms.js'
import { page } from '../html.js'
import { html, type MarkupValue, trusted } from '../markup.js'

interface LinkPage {
  readonly podName: string
  readonly title: string
  readonly content: MarkupValue
  readonly errors?: readonly FormError[]
}

/** A page around a link that a mail has brought, or that asks for one. */
export function linkPage({ podName, title, content, errors = [] }: LinkPage): string {
  return page({
    title: `${errors.length === 0 ? '' : 'Error: '}${title} · ${podName}`,
    site: podName,
    content: html`<h1>${title}</h1>
${trusted(errorSummary(errors))}${content}
<nav aria-label="More pages"><a href="/">Start page</a></nav>`.text,
  })
}

interface FormFacts {
  readonly podName: string
  readonly action: string
  readonly formToken: string
  readonly token: string
}

/** Only the button acts: programs that check mails open every link. */
export function buttonPage(
  facts: FormFacts & { readonly title: string; readonly text: string; readonly button: string },
) {
  const { podName, action, formToken, token, title, text, button } = facts
  return linkPage({
    podName,
    title,
    content: html`<p>${text}</p>
<form method="post" action="${action}">
${trusted(hidden({ form: formToken, token }))}
<p class="actions"><button>${button}</button></p>
</form>`,
  })
}

export function newPasswordPage({
  podName,
  action,
  formToken,
  token,
  errors,
}: FormFacts & { readonly errors: readonly FormError[] }): string {
  const errorOf = (name: string) => errors.find((error) => error.field === name)?.message
  return linkPage({
    podName,
    title: 'Set a new password',
    errors,
    content: html`<form method="post" action="${action}" novalidate>
${trusted(hidden({ form: formToken, token }))}
${trusted(
  field({
    ...{ name: 'password', label: 'New password', type: 'password', autocomplete: 'new-password', focus: true },
    hint: 'At least 10 characters. All browsers and applications are signed out.',
    error: errorOf('password'),
  }),
)}
${trusted(
  field({
    ...{ name: 'password_again', label: 'Repeat the new password', type: 'password', autocomplete: 'new-password' },
    error: errorOf('password_again'),
  }),
)}
<p class="actions"><button>Set the password</button></p>
</form>`,
  })
}

export function requestResetPage(facts: Omit<FormFacts, 'token'>): string {
  return linkPage({
    podName: facts.podName,
    title: 'Reset your password',
    content: html`<form method="post" action="${facts.action}" novalidate>
${trusted(hidden({ form: facts.formToken }))}
${trusted(
  field({
    ...{ name: 'username', label: 'Username or e-mail address', type: 'text', autocomplete: 'username', focus: true },
    hint: 'The link to set a new password goes to the confirmed e-mail address of the account.',
  }),
)}
<p class="actions"><button>Send the link</button></p>
</form>`,
  })
}
