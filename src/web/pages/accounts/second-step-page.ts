import { errorSummary, type FormError, field, hidden } from '../forms.js'
import { escapeHtml, page } from '../html.js'

export interface SecondStepFacts {
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
}

/** Asks for the code after the password. */
export function secondStepPage(facts: SecondStepFacts): string {
  const { podName, action, signIn, formToken, address, request, hasApp, hasRecoveryCodes, passkey, error } = facts
  const hints = [
    ...(hasApp ? ['The code that your authenticator app shows for this site.'] : []),
    ...(hasRecoveryCodes ? ['A recovery code works, too.'] : []),
  ]
  return page({
    title: `${error === undefined ? '' : 'Error: '}Enter your code · ${podName}`,
    site: podName,
    content: `<h1>Enter your code</h1>
<p class="soft">The password of <bdi>${escapeHtml(address)}</bdi> is right. The account has a second factor.</p>
${errorSummary(error === undefined ? [] : [error])}<form method="post" action="${action}" novalidate>
${hidden({ form: formToken, request })}
${field({
  name: 'code',
  label: 'Code',
  type: 'text',
  autocomplete: 'one-time-code',
  hint: hints.join(' '),
  error: error?.message,
  focus: true,
})}
<p class="actions"><button>Sign in</button></p>
</form>
<nav aria-label="More pages">${passkey === undefined ? '' : `<a href="${escapeHtml(passkey)}">Use a passkey</a> `}<a href="${escapeHtml(signIn)}">Sign in with another account</a></nav>`,
  })
}
