import type { KeptForm } from '../../../persistence/accounts/kept-forms.js'
import { errorSummary, type FormError, field } from '../forms.js'
import { page } from '../html.js'
import { html, trusted } from '../markup.js'
import { passkeyForm } from '../passkey-form.js'

export interface ConfirmAccessFacts {
  readonly podName: string
  readonly address: string
  readonly formToken: string
  readonly action: string
  /** Fields of the form that continues afterwards. */
  readonly fields: KeptForm['fields']
  readonly needsCode: boolean
  /** For the browser; undefined: the person has no passkey. */
  readonly passkeyOptions: object | undefined
  readonly error: FormError | undefined
}

/** Asks the signed-in person for the password, and the code, before a change. */
export function confirmAccessPage(facts: ConfirmAccessFacts): string {
  const { podName, address, formToken, action, fields, needsCode, passkeyOptions, error } = facts
  const errorOf = (name: string) => (error?.field === name ? error.message : undefined)
  const kept = Object.entries<string | readonly string[]>({ form: formToken, ...fields }).flatMap(([name, value]) =>
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
    label: 'Code',
    type: 'text',
    autocomplete: 'one-time-code',
    hint: 'The code of your authenticator app, or a recovery code.',
    error: errorOf('current_code'),
    focus: isCodeFirst,
  })
  const password = field({
    name: 'current_password',
    label: 'Password',
    type: 'password',
    autocomplete: 'current-password',
    error: errorOf('current_password'),
    focus: !isCodeFirst,
  })
  return page({
    title: `${error === undefined ? '' : 'Error: '}Confirm that it is you · ${podName}`,
    site: podName,
    content: html`<h1>Confirm that it is you</h1>
<p class="soft">You are signed in as <bdi>${address}</bdi>. The next step needs your password, because you gave it more than ten minutes ago.
Nothing has been changed yet.</p>
${trusted(errorSummary(error === undefined ? [] : [error]))}<form method="post" action="${action}" novalidate>
${kept}<input type="hidden" value="${address}" autocomplete="username">
${trusted(password)}
${needsCode && trusted(code)}
<p class="actions"><button>Continue</button></p>
</form>
${
  passkeyOptions !== undefined &&
  passkeyForm({
    ...{ kind: 'use', action, options: passkeyOptions, button: 'Use a passkey', answer: 'current_passkey' },
    fields: kept,
  })
}<nav aria-label="More pages"><a href="/settings">Settings</a></nav>`.text,
  })
}
