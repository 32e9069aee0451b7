import { textArea } from '../controls.js'
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
  /** Signed: when the form was made. */
  readonly formTime: string
  /** Undefined: the pod asks for no address. */
  readonly email: string | undefined
  /** Undefined: no moderator decides. */
  readonly reason: string | undefined
  readonly errors: readonly SignUpError[]
}

export type SignUpField = 'username' | 'email' | 'password' | 'password_again' | 'reason'

/** Undefined: the error concerns the whole form. */
export interface SignUpError extends FormError {
  readonly field: SignUpField | undefined
}

export function signUpPage(facts: SignUpFacts): string {
  const { podName, host, action, signIn, formToken, username, request, invitation, errors, formTime, email, reason } =
    facts
  const errorOf = (name: SignUpField) => errors.find((error) => error.field === name)?.message
  const firstWrong = errors.find((error) => error.field !== undefined)?.field ?? 'username'
  return page({
    title: `${errors.length === 0 ? '' : 'Error: '}Create an account · ${podName}`,
    site: podName,
    content: `<h1>Create an account</h1>
${errorSummary(errors, 'Please enter the password again, too.')}<form method="post" action="${action}" novalidate>
${hidden({ form: formToken, form_time: formTime, request, invitation })}
${TRAP}
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
${
  email === undefined
    ? ''
    : field({
        name: 'email',
        label: 'E-mail address',
        type: 'text',
        autocomplete: 'email',
        value: email,
        hint: 'For a link that confirms it, for a lost password, and for notices that you can switch off. Nobody else sees it.',
        error: errorOf('email'),
        focus: firstWrong === 'email',
      })
}
${field({
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'new-password',
  hint: `At least 10 characters.${email === undefined ? ' Keep it safe: this pod cannot reset it by e-mail.' : ''}`,
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
${reason === undefined ? '' : textArea({ name: 'reason', label: 'Why do you want an account here? A moderator reads it.', value: reason, rows: 3, error: errorOf('reason') }).text}
<p class="actions"><button>Create account</button></p>
</form>
<nav aria-label="More pages"><a href="${escapeHtml(signIn)}">Sign in to an existing account</a></nav>`,
  })
}

/** Programs fill it in; people do not see it. */
const TRAP =
  '<div hidden><label for="website">Leave this empty</label><input id="website" name="website" type="text" tabindex="-1" autocomplete="off"></div>'

/** What is still missing for an account. */
export function waitingPage(
  podName: string,
  needs: { readonly confirmation: boolean; readonly approval: boolean },
): string {
  const sentences = [
    ...(needs.confirmation
      ? ['Look into your mailbox: the link in our mail confirms your e-mail address. It is valid for three days.']
      : []),
    ...(needs.approval ? ['A moderator of this pod decides about your sign-up. You cannot sign in before.'] : []),
  ]
  return page({
    title: `Your account is not open yet · ${podName}`,
    site: podName,
    content: `<h1>Your account is not open yet</h1>
${sentences.map((sentence) => `<p role="status">${escapeHtml(sentence)}</p>`).join('\n')}
<nav aria-label="More pages"><a href="/">Start page</a></nav>`,
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
