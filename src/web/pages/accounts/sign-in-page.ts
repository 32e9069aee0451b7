import { alert, errorSummary, type FormError, field, hidden } from '../forms.js'
import { escapeHtml, page } from '../html.js'

export interface SignInFacts {
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
}

export interface SignInErrors {
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** The two do not match. */
  readonly both?: string | undefined
  /** The form may be right, but cannot be accepted now. */
  readonly notNow?: string | undefined
}

export function signInPage(facts: SignInFacts): string {
  const {
    podName,
    host,
    action,
    formToken,
    username,
    request,
    returnTo,
    clientName,
    errors,
    signUp,
    resetPassword,
    passkey,
  } = facts
  const passwordError = errors.password ?? errors.both
  const listed: readonly FormError[] = [
    { field: 'username', message: errors.username },
    { field: 'password', message: passwordError },
  ].flatMap(({ field: name, message }) => (message === undefined ? [] : [{ field: name, message }]))
  const isUsernameFirst = errors.username !== undefined || username === ''
  const client =
    clientName === undefined ? '' : `<p class="soft">to continue to <b><bdi>${escapeHtml(clientName)}</bdi></b></p>\n`
  const links = [
    ...(passkey === undefined ? [] : [`<a href="${escapeHtml(passkey)}">Sign in with a passkey</a>`]),
    ...(resetPassword === undefined ? [] : [`<a href="${resetPassword}">I have lost my password</a>`]),
    ...(signUp === undefined ? [] : [`<a href="${escapeHtml(signUp)}">Create an account</a>`]),
  ]
  return page({
    title: `${listed.length === 0 ? '' : 'Error: '}Sign in · ${podName}`,
    site: podName,
    content: `<h1>Sign in</h1>
${client}${alert(errors.notNow)}${errorSummary(listed)}<form method="post" action="${action}" novalidate>
${hidden({ form: formToken, request, return_to: returnTo })}
${field({
  name: 'username',
  label: 'Username',
  type: 'text',
  autocomplete: 'username',
  value: username,
  hint: `The part of your address before @${host}.`,
  error: errors.username,
  errorAt: errors.both === undefined ? undefined : 'password',
  focus: isUsernameFirst,
})}
${field({
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'current-password',
  error: passwordError,
  focus: !isUsernameFirst,
})}
<p class="actions"><button>Sign in</button></p>
</form>
${resetPassword === undefined ? '<p class="soft">Ask the operator of this pod if you have lost your password: it sends no mail.</p>\n' : ''}${links.length === 0 ? '' : `<nav aria-label="More pages">${links.join(' ')}</nav>`}`,
  })
}
