import { errorSummary, type FormError, hidden } from '../forms.js'
import { page } from '../html.js'
import { html, trusted } from '../markup.js'
import { passkeyForm } from '../passkey-form.js'

export interface PasskeyPageFacts {
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
export function passkeyPage(facts: PasskeyPageFacts): string {
  const { podName, action, signIn, formToken, request, returnTo, options, error } = facts
  const form = passkeyForm({
    ...{ kind: 'use', action, options, button: 'Use a passkey', answer: 'passkey' },
    fields: trusted(hidden({ form: formToken, request, return_to: returnTo })),
  })
  return page({
    title: `${error === undefined ? '' : 'Error: '}Sign in with a passkey · ${podName}`,
    site: podName,
    content: html`<h1>Sign in with a passkey</h1>
<p class="soft">Your browser asks which passkey to use. No password or code is needed.</p>
${trusted(errorSummary(error === undefined ? [] : [error]))}${form}
<nav aria-label="More pages"><a href="${signIn}">Sign in with a password</a></nav>`.text,
  })
}
