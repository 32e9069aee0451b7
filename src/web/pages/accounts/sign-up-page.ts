import { errorSummary, type FormError, field, hidden } from '../forms.js'
import { escapeHtml, page } from '../html.js'

export interface SignUpFacts {
  readonly podName: string
  readonly host: string
  readonly action: string
  readonly signIn: string
  readonly formToken: string
  readonly username: string
  readonly request: string | undefined
  readonly invitation: string | undefined
  readonly errors: readonly SignUpError[]
}

export type SignUpField = 'username' | 'password' | 'password_again'

/** Undefined: the error concerns the whole form. */
export interface SignUpError extends FormError {
  readonly field: SignUpField | undefined
}

export function signUpPage(facts: SignUpFacts): string {
  const { podName, host, action, signIn, formToken, username, request, invitation, errors } = facts
  const errorOf = (name: SignUpField) => errors.find((error) => error.field === name)?.message
  const firstWrong = errors.find((error) => error.field !== undefined)?.field ?? 'username'
  return page({
    title: `${errors.length === 0 ? '' : 'Error: '}Create an account · ${podName}`,
    site: podName,
    content: `<h1>Create an account</h1>
${errorSummary(errors, 'Please enter the password again, too.')}<form method="post" action="${action}" novalidate>
${hidden({ form: formToken, request, invitation })}
${field({
  name: 'username',
  label: 'Username',
  type: 'text',
  autocomplete: 'username',
  value: username,
  hint: `Lower-case letters (a to z), digits, dots, hyphens and underscores. Your address will be username@${host}; it cannot be changed later.`,
  error: errorOf('username'),
  focus: firstWrong === 'username',
})}
${field({
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'new-password',
  hint: 'At least 10 characters. Keep it safe: this pod cannot reset it by e-mail.',
  error: errorOf('password'),
  focus: firstWrong === 'password',
})}
${field({
  name: 'password_again',
  label: 'Repeat the password',
  type: 'password',
  autocomplete: 'new-password',
  error: errorOf('password_again'),
  focus: firstWrong === 'password_again',
})}
<p class="actions"><button>Create account</button></p>
</form>
<nav aria-label="More pages"><a href="${escapeHtml(signIn)}">Sign in to an existing account</a></nav>`,
  })
}

export function noSignUpPage(podName: string, message: string): string {
  return page({
    title: `Create an account · ${podName}`,
    site: podName,
    content: `<h1>You cannot create an account here</h1>
<p>${escapeHtml(message)}</p>
<nav aria-label="More pages"><a href="/">Start page</a></nav>`,
  })
}
